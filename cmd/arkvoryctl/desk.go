package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

const (
	// deskAddress is where a sidecar's admin listener is unless ARKVORY_ADMIN_LISTEN says otherwise there.
	deskAddress = "http://127.0.0.1:8081"
	// deskPath is where the queue's documents are on it.
	deskPath = "/api/v1/system/downloads"
	// tokenVariable holds the admin token.
	tokenVariable = "ARKVORY_ADMIN_TOKEN"
	// deskTimeout is how long an answer is waited for.
	deskTimeout = "10s"
	// mostAnswer bounds an answer: a page of a thousand sessions is far below.
	mostAnswer = 64 << 20
	// mostToken is the longest token that a sidecar takes.
	mostToken = 4096
)

// connection are the flags that say how to reach the admin listener. The token comes from a file or the environment only: arguments are seen by every user
// of the machine.
type connection struct {
	Admin     string `placeholder:"URL" default:"${desk_address}" env:"ARKVORY_ADMIN_URL" help:"The admin listener of the sidecar (${desk_address})."`
	TokenFile string `placeholder:"FILE" env:"ARKVORY_ADMIN_TOKEN_FILE" help:"File with the admin token, else it is taken from $$ARKVORY_ADMIN_TOKEN; on loopback none is needed."`
	CAFile    string `name:"ca-file" placeholder:"FILE" env:"ARKVORYCTL_CA_FILE" help:"Certificates in PEM form to trust instead of the system's, for https."`
	Timeout   string `placeholder:"DURATION" default:"${desk_timeout}" help:"Longest wait for an answer (${desk_timeout})."`
}

// desk is a sidecar's admin listener as a client sees it.
type desk struct {
	base    *url.URL
	token   string
	timeout time.Duration
	http    *http.Client
}

// open judges the flags. Nothing is asked of the network yet. The desk must be closed.
func (c connection) open() (*desk, error) {
	var faults []error
	base, err := adminURL(c.Admin)
	faults = append(faults, err)
	token, err := c.token()
	faults = append(faults, err)
	var timeout time.Duration
	if positive(&timeout, c.Timeout) != nil {
		faults = append(faults, faulty("--timeout", c.Timeout, "a duration above 0", deskTimeout))
	}
	roots, err := c.roots()
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return nil, inputError{err}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &desk{base: base, token: token, timeout: timeout, http: &http.Client{Transport: transport, CheckRedirect: stay}}, nil
}

// stay follows no redirect: the token is for this host alone, and an admin listener sends none for these paths.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// close lets the connections go.
func (d *desk) close() { d.http.CloseIdleConnections() }

// adminURL reads --admin.
func adminURL(text string) (*url.URL, error) {
	const rule = "an http:// or https:// address without user, query and fragment"
	base, err := url.Parse(strings.TrimSpace(text))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("cannot use --admin (or $ARKVORY_ADMIN_URL): must be %s, for example %s", rule, deskAddress)
	}
	return base, nil
}

// token reads the token, "" when there is none. The file wins over the variable.
func (c connection) token() (string, error) {
	token, from := os.Getenv(tokenVariable), "$"+tokenVariable
	if c.TokenFile != "" {
		from = "--token-file " + clip(c.TokenFile)
		f, err := os.Open(c.TokenFile)
		if err != nil {
			return "", fmt.Errorf("cannot read --token-file: %w", err)
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, mostToken+2))
		if err != nil {
			return "", fmt.Errorf("cannot read --token-file: %w", err)
		}
		token = strings.TrimRight(string(data), "\r\n")
		if token == "" {
			return "", errors.New("cannot use " + from + ": it is empty")
		}
	}
	if len(token) > mostToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("cannot use %s: must be up to %d visible ASCII characters without spaces", from, mostToken)
	}
	return token, nil
}

// roots reads --ca-file, nil for the system's.
func (c connection) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read --ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("cannot use --ca-file %q: must be a file in PEM form with a certificate", clip(c.CAFile))
	}
	return pool, nil
}

// where names the listener in a message.
func (d *desk) where() string { return d.base.Scheme + "://" + d.base.Host + d.base.Path }

// get asks for a document below deskPath.
func (d *desk) get(ctx context.Context, name string, query url.Values) ([]byte, error) {
	return d.call(ctx, http.MethodGet, name, query, nil)
}

// call sends one request, and a second one where the server asks for a pause first, and returns the body of a 200. Errors are *deskFault, or the cause of the
// context's end.
func (d *desk) call(ctx context.Context, method, name string, query url.Values, body []byte) ([]byte, error) {
	for again := false; ; again = true {
		status, header, answer, err := d.once(ctx, method, name, query, body)
		if err != nil {
			return nil, err
		}
		if status == http.StatusTooManyRequests && !again {
			if wait, ok := retryAfter(header); ok { // it was refused unread: sending it again does not do it twice
				if err := pause(ctx, wait); err != nil {
					return nil, err
				}
				continue
			}
		}
		switch {
		case status != http.StatusOK:
			return nil, d.faultOf(status, header, answer)
		case !isJSON(header) || !json.Valid(answer):
			return nil, d.foreign(status, header)
		}
		return answer, nil
	}
}

// once sends one request.
func (d *desk) once(parent context.Context, method, name string, query url.Values, body []byte) (int, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(parent, d.timeout)
	defer cancel()
	address := *d.base
	address.Path = path.Join("/", d.base.Path, deskPath, name)
	address.RawPath = ""
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, address.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, failed(err, "cannot ask %s: %v", d.where(), err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "arkvoryctl/"+version)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if d.token != "" {
		request.Header.Set("Authorization", "Bearer "+d.token)
	}
	response, err := d.http.Do(request)
	if err != nil {
		return 0, nil, nil, d.unreached(parent, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	switch {
	case err != nil:
		return 0, nil, nil, d.unreached(parent, err)
	case len(answer) > mostAnswer:
		return 0, nil, nil, failed(nil, "%s answers with more than %s", d.where(), showBytes(mostAnswer))
	}
	return response.StatusCode, response.Header, answer, nil
}

// unreached says why no answer came.
func (d *desk) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var (
		address     *url.Error
		unknown     x509.UnknownAuthorityError
		certificate *tls.CertificateVerificationError
	)
	if errors.As(err, &address) {
		err = address.Err // the URL is said already
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failed(err, "no answer from %s within %v (--timeout)", d.where(), d.timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return failed(err, "nobody listens at %s: the sidecar does not run, or its ARKVORY_ADMIN_LISTEN is another; give it with --admin or $ARKVORY_ADMIN_URL", d.where())
	case errors.As(err, &unknown):
		return failed(err, "the certificate of %s is of no known authority; --ca-file names those to trust", d.where())
	case errors.As(err, &certificate):
		return failed(err, "the certificate of %s does not fit: %v", d.where(), certificate.Err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return failed(err, "%s speaks http, not https", d.where())
	}
	return failed(err, "cannot ask %s: %s", d.where(), oneLine(err.Error()))
}

// isJSON reports whether an answer says that it is JSON.
func isJSON(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// read decodes a document into to. One that lacks a field that must be there is of no admin listener.
func (d *desk) read(body []byte, to any, must ...string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return failed(err, "%s is no admin listener of an Arkvory sidecar: it answers with something else than asked for", d.where())
	}
	for _, name := range must {
		if _, ok := fields[name]; !ok {
			return failed(nil, "%s is no admin listener of an Arkvory sidecar: its answer has no %s", d.where(), name)
		}
	}
	if err := json.Unmarshal(body, to); err != nil {
		return failed(err, "cannot read the answer of %s: %s", d.where(), oneLine(err.Error()))
	}
	return nil
}

// visit opens the desk, does the work under signals, and returns its error without secrets.
func (c connection) visit(to streams, work func(ctx context.Context, d *desk) error) error {
	d, err := c.open()
	if err != nil {
		return err
	}
	defer d.close()
	ctx, release := untilSignalled(context.Background(), to.complaints)
	defer release()
	return d.clean(work(ctx, d))
}

// clean takes the token out of an error's text, should a server repeat it.
func (d *desk) clean(err error) error {
	if err == nil || d.token == "" || !strings.Contains(err.Error(), d.token) {
		return err
	}
	return hiddenError{text: strings.ReplaceAll(err.Error(), d.token, hidden), cause: err}
}
