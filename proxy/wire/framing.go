package wire

import "bytes"

func (h *Head) requestFraming() error {
	if h.Chunked && h.ContentLength >= 0 {
		return bad("Content-Length and Transfer-Encoding do not go together")
	}
	if h.Chunked && h.Minor == 0 {
		return bad("an HTTP/1.0 request has no Transfer-Encoding")
	}
	if h.hosts > 1 || h.hosts == 0 && h.Minor == 1 {
		return bad("there is exactly one Host")
	}
	if !validAuthority(h.Authority) {
		return bad("Host is NAME or NAME:PORT")
	}
	return h.target()
}

// target checks the four forms of RFC 9112 section 3.2 and brings absolute-form into origin-form.
func (h *Head) target() error {
	t := h.Target
	switch {
	case string(h.Method) == "CONNECT": // in any form: a 2xx to it turns the connection into a tunnel
		return &Error{Status: 501, Rule: "CONNECT is not served by a reverse proxy"}
	case t[0] == '/':
		return nil
	case len(t) == 1 && t[0] == '*':
		if string(h.Method) != "OPTIONS" {
			return bad("the target * goes with OPTIONS only")
		}
		return nil
	}
	i := bytes.Index(t, []byte("://"))
	if i <= 0 || !(equalFold(t[:i], "http") || equalFold(t[:i], "https")) {
		return bad("the target begins with a slash")
	}
	rest := t[i+3:]
	end := len(rest)
	for k, c := range rest {
		if c == '/' || c == '?' || c == '#' {
			end = k
			break
		}
	}
	auth := rest[:end]
	if len(auth) == 0 || !validAuthority(auth) {
		return bad("an absolute target names NAME or NAME:PORT")
	}
	h.Authority = auth
	if end == len(rest) {
		h.Target = slash
		if string(h.Method) == "OPTIONS" { // RFC 9112 section 3.2.4
			h.Target = asterisk
		}
		return nil
	}
	if rest[end] != '/' {
		return bad("an absolute target has a path")
	}
	h.Target = rest[end:]
	return nil
}

var slash, asterisk = []byte("/"), []byte("*")

func (h *Head) responseFraming() error {
	if h.Chunked && h.ContentLength >= 0 { // RFC 9112 section 6.1: the coding wins, the connection ends
		h.ContentLength = -1
		h.LengthAndChunked = true
	}
	if h.Chunked && h.Minor == 0 { // the same section: faulty framing, whatever HTTP/1.0 says of keep-alive
		h.LengthAndChunked = true
	}
	return nil
}

// NoBody reports whether a response of that status has no body whatever its fields say (RFC 9112 section 6.3).
func NoBody(status int) bool {
	return status == 204 || status == 304 || status >= 100 && status < 200
}
