package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/arkvory/sidecar/queue/client"
)

const (
	// maxSecretFile bounds files of headers and passwords: a wrong path must not fill the memory.
	maxSecretFile = 1 << 20
	// maxParallel is how many connections one download uses at most.
	maxParallel = 16
	// maxName is the longest name of a file that common file systems take.
	maxName = 255
	// passwordVariable holds the password of --user. Arguments of a process are seen by every user of the machine, its environment is not.
	passwordVariable = "ARKVORYCTL_PASSWORD"
)

// downloadPlan is what is downloaded and how.
type downloadPlan struct {
	options client.Options
	name    string // of the file, without folders
	secrets secrets
}

// plan reads the flags; in is where a URL of "-" is read from, now is what HH:MM is counted from. All faults are reported at once. The
// plan is never nil.
func (d *download) plan(in io.Reader, now time.Time) (*downloadPlan, error) {
	p := &downloadPlan{}
	text, err := d.url(in)
	if err != nil {
		return p, inputError{err}
	}
	address, faults := parseAddress(text)
	p.options.URL = text
	header, err := d.headers(address)
	faults = append(faults, err)
	p.secrets = secretsOf(address, header)
	p.options.Header = header
	p.options.Fresh, p.options.Checkpoint, p.options.NoReplace = d.Fresh, d.Checkpoint, !d.Force
	if d.Class != nil {
		p.options.Class = *d.Class
	}
	for _, f := range downloadOptions {
		if value := strings.TrimSpace(d.given(f.flag)); value != "" && f.set != nil && f.set(&p.options, value) != nil {
			faults = append(faults, faulty("--"+f.flag, value, f.rule, f.example))
		}
	}
	p.options.NotBefore, p.options.NotAfter, err = parseBounds(d.NotBefore, d.NotAfter, now)
	faults = append(faults, err)
	if address != nil {
		p.options.Output, err = d.output(address)
		p.name = filepath.Base(p.options.Output)
		faults = append(faults, err)
	}
	p.options.Client, err = httpClient(d.CAFile)
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return p, inputError{err}
	}
	return p, nil
}

// url is the URL as it was given.
func (d *download) url(in io.Reader) (string, error) {
	if d.URL != "-" {
		return d.URL, nil
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxSecretFile)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("cannot read the URL from standard input: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// parseAddress reads a URL. Its complaint does not quote it: it may be a presigned one.
func parseAddress(text string) (*url.URL, []error) {
	address, err := url.Parse(text)
	if err != nil || (address.Scheme != "http" && address.Scheme != "https") || address.Host == "" {
		return nil, []error{errors.New("cannot use the URL: must be http:// or https:// with a host, for example https://store.example/release.tar")}
	}
	return address, nil
}

// output is where the file goes: --output, a folder meaning the default name in it; else the last segment of the URL's path here.
func (d *download) output(address *url.URL) (string, error) {
	to := d.Output
	folder := to != "" && os.IsPathSeparator(to[len(to)-1])
	if info, err := os.Stat(to); to != "" && err == nil && info.IsDir() {
		folder = true
	}
	switch {
	case d.Output == "-" || filepath.Base(to) == "-":
		return "", errors.New("cannot use --output -: must be a file, since a download that is resumed needs one, for example --output release.tar")
	case to == "" || folder:
		name, err := nameOf(address)
		if err != nil {
			return "", err
		}
		to = filepath.Join(to, name)
	}
	if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() {
		return "", fmt.Errorf("cannot write %s: there is no folder %s", to, filepath.Dir(to))
	}
	info, err := os.Lstat(to)
	switch {
	case err != nil: // not there, or what is wrong shows when it is made
		return to, nil
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("cannot write %s: it is no regular file", to)
	case !d.Force && !d.named(to):
		return "", fmt.Errorf("cannot write %s: %w", to, errExists)
	}
	return to, nil
}

// named reports whether an earlier run ended just after it gave the file its name: the checkpoint is there and the part is not. The file is
// its own then, and the download says done.
func (d *download) named(to string) bool {
	checkpoint := d.Checkpoint
	if checkpoint == "" {
		checkpoint = to + ".arkvory"
	}
	_, there := os.Stat(checkpoint)
	_, part := os.Stat(to + ".part")
	return there == nil && errors.Is(part, fs.ErrNotExist)
}

// nameOf is the last segment of the path, refused where a server could choose a file that nobody expects: hidden ones (.bashrc), ones
// that look like options to other programs, or ones with separators and control characters in them.
func nameOf(address *url.URL) (string, error) {
	name := path.Base("/" + address.EscapedPath())
	if strings.HasSuffix(address.EscapedPath(), "/") {
		name = "/"
	}
	name, err := url.PathUnescape(name)
	odd := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(`/\:*?"<>|`, r) }
	if err != nil || name == "" || len(name) > maxName || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, odd) {
		return "", errors.New("cannot name the file after the URL: its last segment is no plain file name; name it, for example --output release.tar")
	}
	return name, nil
}

// headers are those of --header-file, then --header, then --user.
func (d *download) headers(address *url.URL) (http.Header, error) {
	header := http.Header{}
	var faults []error
	add := func(from, line string) {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			faults = append(faults, fmt.Errorf("cannot use a header of %s: must be NAME:VALUE, for example X-Team: build", from)) // never the value itself
			return
		}
		header.Add(name, value)
	}
	if d.HeaderFile != "" {
		text, err := readSecret(d.HeaderFile)
		if err != nil {
			faults = append(faults, fmt.Errorf("cannot use --header-file: %w", err))
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				add("--header-file", line)
			}
		}
	}
	for _, line := range d.Header {
		add("--header", line)
	}
	if err := d.authorize(header, address); err != nil {
		faults = append(faults, err)
	}
	return header, errors.Join(faults...)
}

// authorize adds what --user asks for.
func (d *download) authorize(header http.Header, address *url.URL) error {
	if d.User == "" {
		if d.PasswordFile != "" {
			return errors.New("cannot use --password-file without --user")
		}
		return nil
	}
	if strings.Contains(d.User, ":") {
		return fmt.Errorf("cannot use --user with a password in it: other users of this machine see arguments; set %s or --password-file", passwordVariable)
	}
	if len(header.Values("Authorization")) > 0 || address != nil && address.User != nil {
		return errors.New("cannot use --user: the headers or the URL say already who asks")
	}
	password, ok := os.LookupEnv(passwordVariable)
	if d.PasswordFile != "" {
		text, err := readSecret(d.PasswordFile)
		if err != nil {
			return fmt.Errorf("cannot use --password-file: %w", err)
		}
		password, ok = strings.TrimRight(text, "\r\n"), true
	}
	if !ok {
		return fmt.Errorf("cannot use --user without a password: set %s or --password-file", passwordVariable)
	}
	request := http.Request{Header: header}
	request.SetBasicAuth(d.User, password)
	return nil
}

// isToken reports whether a text is a name of a header (RFC 9110, 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// readSecret reads a small file, or a pipe or device that gives no more than one.
func readSecret(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err == nil && len(data) > maxSecretFile {
		return "", fmt.Errorf("%s: must be at most %d bytes", name, maxSecretFile)
	}
	return string(data), err
}

// httpClient makes the client of the requests where the download's own will not do: nil unless other certificates are trusted. Like
// that one it speaks HTTP/1.1 (ranges get connections of their own), sets no limit on a whole answer and lets nothing be compressed.
func httpClient(caFile string) (*http.Client, error) {
	if caFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("cannot use --ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot use --ca-file %s: must hold certificates in PEM form", caFile)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	transport.MaxIdleConnsPerHost = maxParallel
	transport.DisableCompression = true
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}
