package admin

import (
	"bytes"
	"compress/gzip"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/arkvory/sidecar/proxy/telemetry"
)

// Console returns one file of the console: its bytes, its Content-Type and a strong entity tag in quotes. The path is relative to /console/ and
// without a leading slash; "index.html" is the page, asked for as /console/ too. ok is false for a path that is none. It is safe for concurrent
// use, answers from memory, and returns the same bytes for a path as long as the process lives; the bytes are not changed.
//
// What the page may do is bound by its policy (contentSecurity): scripts, styles, images, fonts and requests of this listener only; no inline script or style
// element, no style attribute in markup, no event-handler attribute, no eval, no data: or blob: addresses, no forms that are sent, no frames. Compression,
// caching by the tag, HEAD and the security headers are the server's work. Package console exports a function of this type; it does not import this package.
type Console func(path string) (body []byte, contentType, etag string, ok bool)

// contentSecurity is the policy of the console's files.
const contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// indexFile is the console's page.
const indexFile = "index.html"

// toConsole leads to the page. The address is relative, so that it is right behind a proxy too.
func (s *Server) toConsole(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, ConsolePath)
	ctx.SetStatusCode(303)
}

// console answers with a file of the console.
func (s *Server) console(ctx *fasthttp.RequestCtx) {
	path := strings.TrimPrefix(string(ctx.Path()), ConsolePath)
	if path == "" {
		path = indexFile
	}
	body, contentType, etag, ok := s.settings.Console(path)
	if !ok {
		s.refuse(ctx, telemetry.NotFound, "the console has no such file; its page is "+ConsolePath)
		return
	}
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", contentSecurity)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-cache") // kept by the browser, and asked for with its tag each time: another version of the binary has other files
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if small := s.packed.of(path, contentType, body); small != nil && takesGzip(ctx) {
		h.SetContentEncoding("gzip")
		body, etag = small, strings.TrimSuffix(etag, `"`)+`-gzip"`
	}
	h.Set(fasthttp.HeaderETag, etag)
	if matches(ctx, etag) {
		h.Del(fasthttp.HeaderContentEncoding)
		ctx.SetStatusCode(304)
		return
	}
	ctx.SetContentType(contentType)
	ctx.Response.SetBodyRaw(body)
}

// navigates reports whether a browser says that a person comes here, by a link or an address, with the page in a tab of its own.
func navigates(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	return len(h.Peek(fasthttp.HeaderOrigin)) == 0 && string(h.Peek("Sec-Fetch-Mode")) == "navigate" && string(h.Peek("Sec-Fetch-Dest")) == "document"
}

// matches reports whether the client has the file already (RFC 9110, section 13.1.2).
func matches(ctx *fasthttp.RequestCtx, etag string) bool {
	for _, line := range ctx.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch) {
		for one := range strings.SplitSeq(string(line), ",") {
			if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == etag || one == "*" {
				return true
			}
		}
	}
	return false
}

// takesGzip reports whether the client says that it takes gzip (RFC 9110, section 12.5.3); whether it likes another better does not matter.
func takesGzip(ctx *fasthttp.RequestCtx) bool {
	for _, line := range ctx.Request.Header.PeekAll(fasthttp.HeaderAcceptEncoding) {
		for one := range strings.SplitSeq(string(line), ",") {
			name, weight, weighted := strings.Cut(one, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			_, q, _ := strings.Cut(weight, "=")
			return !weighted || strings.Trim(strings.TrimSpace(q), "0.") != ""
		}
	}
	return false
}

// packed keeps the files of the console compressed, each once. Safe for concurrent use; the zero value is empty.
type packed struct {
	files sync.Map // path to []byte, empty when compressing is not worth it; as many as the console has files
}

// minPacked is the size below which compressing gains less than a packet.
const minPacked = 1 << 10

// of returns a file compressed, nil when it is better sent as it is.
func (p *packed) of(path, contentType string, body []byte) []byte {
	known, found := p.files.Load(path)
	if !found {
		known, _ = p.files.LoadOrStore(path, compress(contentType, body))
	}
	if small, _ := known.([]byte); len(small) > 0 {
		return small
	}
	return nil
}

// compress returns nothing for what is small, is of a type that is compressed in itself, or does not shrink.
func compress(contentType string, body []byte) []byte {
	kind, _, _ := strings.Cut(contentType, ";")
	text := strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "javascript") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "+xml")
	if !text || len(body) < minPacked {
		return []byte{}
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is one
	_, _ = w.Write(body)                                    // into memory
	_ = w.Close()
	if out.Len() >= len(body) {
		return []byte{}
	}
	return out.Bytes()
}
