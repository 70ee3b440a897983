package admin

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/arkvory/sidecar/proxy/wire"
)

// forwarding are the headers by which a proxy makes itself known; one of them is enough to count as remote.
var forwarding = map[string]bool{
	"forwarded": true, "via": true, "x-forwarded-for": true, "x-forwarded-host": true, "x-forwarded-proto": true,
	"x-forwarded-port": true, "x-forwarded-server": true, "x-forwarded-by": true, "x-real-ip": true, "x-client-ip": true,
	"x-cluster-client-ip": true, "true-client-ip": true, "cf-connecting-ip": true, "x-original-forwarded-for": true,
}

// guard decides who is trusted. It is immutable.
type guard struct {
	digest [sha256.Size]byte
	set    bool
}

func newGuard(token string) guard {
	return guard{digest: sha256.Sum256([]byte(token)), set: token != ""}
}

// token compares in constant time: digests have one length, so not even the token's length shows.
func (g guard) token(h *fasthttp.RequestHeader) bool {
	all := h.PeekAll(fasthttp.HeaderAuthorization)
	if !g.set || len(all) != 1 {
		return false
	}
	scheme, value, found := bytes.Cut(all[0], []byte(" "))
	if !found || !strings.EqualFold(string(scheme), "Bearer") {
		return false
	}
	got := sha256.Sum256(bytes.TrimLeft(value, " "))
	return subtle.ConstantTimeCompare(got[:], g.digest[:]) == 1
}

// loopback reports whether the request comes from this machine without a proxy or a rebound name between.
func loopback(ctx *fasthttp.RequestCtx) bool {
	peer, ok := ctx.RemoteAddr().(*net.TCPAddr)
	if !ok || !peer.IP.IsLoopback() {
		return false
	}
	for name := range ctx.Request.Header.All() {
		if forwarding[strings.ToLower(string(name))] {
			return false
		}
	}
	return localName(string(ctx.Host()))
}

// localName reports whether a Host value names loopback itself: localhost or a loopback literal, with or without a port.
func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// crossSite reports whether a browser says that another site caused the request. Without either header it was no browser, or one
// that navigated by itself.
func crossSite(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	switch string(h.Peek("Sec-Fetch-Site")) {
	case "", "same-origin", "none":
	default:
		return true
	}
	origins := h.PeekAll("Origin")
	if len(origins) == 0 {
		return false
	}
	u, err := url.Parse(string(origins[0]))
	return len(origins) > 1 || err != nil || u.Host == "" || !strings.EqualFold(u.Host, string(ctx.Host()))
}

// wellFormed holds the head to the rules of the proxy's own listener. fasthttp is milder: it skips a field whose name has white
// space before the colon, and such a "X-Forwarded-For :" must not pass as absent.
func wellFormed(h *fasthttp.RequestHeader) bool {
	head := make([]byte, 0, maxHeadBytes)
	head = append(head, "GET / "...)
	head = append(head, h.Protocol()...)
	head = append(head, "\r\n"...)
	head = append(head, h.RawHeaders()...)
	if !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		head = append(head, "\r\n"...)
	}
	n, err := new(wire.Head).ParseRequest(head, 0)
	return err == nil && n == len(head)
}
