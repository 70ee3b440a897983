package client

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const maxRedirects = 10

// ownFields are set by the package alone: what a caller gives for them would break the ranges or the queue.
var ownFields = []string{"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
	"Accept-Encoding", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Connection", "Host", fieldID, fieldClass, fieldTicket}

// requester sends the requests of one download. It is immutable and used by several goroutines.
type requester struct {
	client *http.Client
	own    bool // the transport is ours to close
	url    *url.URL
	host   string // virtual host, when the caller's fields name one
	header http.Header
	id     string
	class  string
	vouch  bool // a digest vouches for the bytes, however they come
	scrub  *scrubber
}

// ticketed is the latest ticket and who gave it; it goes to nobody else.
type ticketed struct{ ticket, from string }

func newRequester(o *settings, id string) *requester {
	r := &requester{client: o.Client, id: id, class: o.Class, vouch: !o.Digest.IsZero(), header: http.Header{}, scrub: newScrubber(o.address, o.Header)}
	for name, values := range o.Header {
		r.header[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
	}
	r.host = r.header.Get("Host")
	for _, name := range ownFields {
		delete(r.header, name)
	}
	address := *o.address
	address.User, address.Fragment = nil, ""
	r.url = &address
	if user := o.address.User; user != nil && r.header.Get("Authorization") == "" {
		basic := &http.Request{Header: r.header}
		password, _ := user.Password()
		basic.SetBasicAuth(user.Username(), password)
		r.scrub.know(strings.TrimPrefix(r.header.Get("Authorization"), "Basic "))
	}
	if r.client == nil {
		r.client, r.own = &http.Client{Transport: ownTransport()}, true
	}
	return r
}

// ownTransport speaks HTTP/1.1 only: ranges at once are meant to be connections at once, and one broken connection is
// then one broken range.
func ownTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		Protocols:              protocols,
		TLSHandshakeTimeout:    15 * time.Second,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    maxParallel,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// close gives idle connections back.
func (r *requester) close() {
	if r.own {
		r.client.CloseIdleConnections()
	}
}

// originOf is who an address leads to: scheme, host and port.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// answerer is who an answer came from, at the end of redirects.
func (r *requester) answerer(response *http.Response) string {
	if response.Request == nil || response.Request.URL == nil {
		return originOf(r.url)
	}
	return originOf(response.Request.URL)
}

// do asks for a range, or for everything when from is negative; to is exclusive and negative for "to the end".
func (r *requester) do(ctx context.Context, from, to int64, ifRange string, t ticketed) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header = r.header.Clone()
	if r.host != "" {
		request.Host = r.host
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "arkvory-client/1")
	}
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set(fieldID, r.id)
	if r.class != "" {
		request.Header.Set(fieldClass, r.class)
	}
	if from >= 0 {
		value := "bytes=" + strconv.FormatInt(from, 10) + "-"
		if to >= 0 {
			value += strconv.FormatInt(to-1, 10)
		}
		request.Header.Set("Range", value)
		if ifRange != "" {
			request.Header.Set("If-Range", ifRange)
		}
	}
	r.lend(request, t)
	client := *r.client
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error { return r.redirect(next, via, t) }
	return client.Do(request)
}

// lend adds the ticket where it came from and takes it off elsewhere.
func (r *requester) lend(request *http.Request, t ticketed) {
	request.Header.Del(fieldTicket)
	if t.ticket != "" && t.from == originOf(request.URL) {
		request.Header.Set(fieldTicket, t.ticket)
	}
}

// redirect prepares the next request of a chain: nobody but the first host gets the caller's fields, and nobody learns
// the query of the address before.
func (r *requester) redirect(next *http.Request, via []*http.Request, t ticketed) error {
	if len(via) >= maxRedirects {
		return errRedirects
	}
	if next.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https" && !r.vouch {
		return errUnprotected
	}
	next.Header.Del("Referer")
	if originOf(next.URL) != originOf(r.url) {
		for name := range r.header {
			next.Header.Del(name)
		}
		next.Header.Set("User-Agent", via[0].Header.Get("User-Agent"))
	}
	r.lend(next, t)
	if r.client.CheckRedirect != nil {
		return r.client.CheckRedirect(next, via)
	}
	return nil
}
