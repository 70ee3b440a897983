package profile

import (
	"strings"
	"time"

	"github.com/arkvory/sidecar/proxy/identity/rulefile"
	"github.com/arkvory/sidecar/proxy/wire"
)

// BodyKind is the form of a refusal's body.
type BodyKind uint8

// Forms of a refusal.
const (
	Plain BodyKind = iota // our JSON
	OCI                   // the error list of the OCI distribution specification
	LFS                   // the JSON of git-lfs
)

func (b BodyKind) String() string {
	return [...]string{"plain", "oci", "lfs"}[min(b, LFS)]
}

// Limits of a silent hold.
const (
	// MaxHold is the longest hold of one request: the first clients give up at 30 s.
	MaxHold = 25 * time.Second
	// shortHold suits clients with a read timeout of 15 s.
	shortHold = 12 * time.Second
)

// Profile is how a client is treated. It holds no memory of the request.
type Profile struct {
	Name         string        // of a closed set: built-in names and those of the file
	HoldLimit    time.Duration // 0..MaxHold
	RefuseStatus int           // 503 or 429
	Body         BodyKind
	Browser      bool // a navigation of a browser
}

// row is one line of the table.
type row struct {
	userAgent string // lower case
	profile   Profile
	byPath    bool // the body follows the path when nothing else decides it
	browser   bool // the file decides Browser, not the look of the request
}

func builtin(name, userAgent string, hold time.Duration, status int, body BodyKind) row {
	return row{userAgent: userAgent, profile: Profile{Name: name, HoldLimit: hold, RefuseStatus: status, Body: body}, byPath: body == Plain}
}

// builtins are the measured clients that need something else than the default, or a name of their own in metrics.
var builtins = []row{
	builtin("skopeo", "skopeo/", MaxHold, 429, OCI),
	builtin("podman", "libpod/", MaxHold, 429, OCI),
	builtin("containers", "containers/", MaxHold, 429, OCI),
	builtin("buildah", "buildah/", MaxHold, 429, OCI), // the library of the three above
	builtin("cri-o", "cri-o/", MaxHold, 429, OCI),
	builtin("oras", "oras/", MaxHold, 429, OCI),
	builtin("containerd", "containerd/", MaxHold, 429, OCI),
	builtin("git-lfs", "git-lfs/", MaxHold, 429, LFS),
	builtin("docker", "docker/", MaxHold, 503, OCI), // a 429 ends its pushes
	builtin("crane", "crane/", MaxHold, 503, OCI),
	builtin("go-containerregistry", "go-containerregistry/", MaxHold, 503, OCI),
	builtin("pip", "pip/", shortHold, 503, Plain),
	builtin("poetry", "poetry/", shortHold, 503, Plain),
	builtin("pdm", "pdm/", shortHold, 503, Plain),
	builtin("apt", "debian apt-http/", MaxHold, 503, Plain),
	builtin("curl", "curl/", MaxHold, 503, Plain),
	builtin("wget", "wget/", MaxHold, 503, Plain),
	builtin("aria2", "aria2/", MaxHold, 503, Plain),
	builtin("axel", "axel/", MaxHold, 503, Plain),
	builtin("git", "git/", MaxHold, 503, Plain),
	builtin("npm", "npm/", MaxHold, 503, Plain),
	builtin("yarn", "yarn/", MaxHold, 503, Plain),
	builtin("pnpm", "pnpm/", MaxHold, 503, Plain),
	builtin("aws", "aws-cli/", MaxHold, 503, Plain),
	builtin("boto3", "boto3/", MaxHold, 503, Plain),
	builtin("botocore", "botocore/", MaxHold, 503, Plain),
	builtin("aws-sdk", "aws-sdk-", MaxHold, 503, Plain),
	builtin("minio-go", "minio ", MaxHold, 503, Plain),
	builtin("rclone", "rclone/", MaxHold, 503, Plain),
	builtin("ostree", "libostree/", MaxHold, 503, Plain),
	builtin("python-requests", "python-requests/", MaxHold, 503, Plain),
	builtin("go-http-client", "go-http-client/", MaxHold, 503, Plain),
	builtin("browser", "mozilla/", MaxHold, 503, Plain),
}

// other is everything that is in no row; protocol is a client that speaks the queue protocol.
var (
	other    = builtin("other", "", MaxHold, 503, Plain)
	protocol = Profile{Name: "protocol", HoldLimit: MaxHold, RefuseStatus: 503, Body: Plain}
)

// rows is an immutable table, indexed by the first byte of User-Agent in lower case.
type rows struct {
	first [128][]row
}

func newRows(file []row) *rows {
	t := &rows{}
	for _, list := range [][]row{file, builtins} {
		for _, r := range list {
			t.first[r.userAgent[0]] = append(t.first[r.userAgent[0]], r)
		}
	}
	return t
}

func (t *rows) find(userAgent []byte) *row {
	if len(userAgent) == 0 {
		return &other
	}
	c := userAgent[0]
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	if c >= 128 {
		return &other
	}
	list := t.first[c]
	for i := range list {
		if r := &list[i]; len(userAgent) >= len(r.userAgent) && wire.EqualFold(userAgent[:len(r.userAgent)], r.userAgent) {
			return r
		}
	}
	return &other
}

// Settings configure a [Table].
type Settings struct {
	File string // path of the YAML additions, "" for none
}

// Table matches requests with profiles.
type Table struct {
	file *rulefile.File[rows]
}

// New reads the file. The error lists all its faults.
func New(s Settings) (*Table, error) {
	f, err := rulefile.Open("ARKVORY_CLIENTS_FILE", s.File, parseRows)
	if err != nil {
		return nil, err
	}
	return &Table{file: f}, nil
}

// Poll reads the file again when it changed; it reports whether a new table came into force. Call it from a tick.
func (t *Table) Poll() bool { return t.file.Poll() }

// Reload reads the file now. On an error the last good table stays in force.
func (t *Table) Reload() error { return t.file.Reload() }

// Problem returns what is wrong with the file as it stands, "" when it is in force.
func (t *Table) Problem() string { return t.file.Problem() }

// Match returns the profile of a request. The form of the body follows User-Agent; for clients without a form of their own it follows
// the request: OCI under /v2/, git-lfs where the request speaks its media type or path, else plain. It allocates nothing.
func (t *Table) Match(h *wire.Head) Profile {
	var userAgent, accept, fetchMode, fetchDest []byte
	for _, f := range h.Fields {
		switch f.ID {
		case wire.UserAgent:
			if userAgent == nil {
				userAgent = h.Value(f)
			}
		case wire.Accept:
			if accept == nil {
				accept = h.Value(f)
			}
		case wire.Arkvory:
			if wire.EqualFold(h.Name(f), "arkvory-download-id") {
				return protocol
			}
		case wire.Other:
			switch name := h.Name(f); {
			case fetchMode == nil && wire.EqualFold(name, "sec-fetch-mode"):
				fetchMode = h.Value(f)
			case fetchDest == nil && wire.EqualFold(name, "sec-fetch-dest"):
				fetchDest = h.Value(f)
			}
		}
	}
	r := t.file.Load().find(userAgent)
	p := r.profile
	if r.byPath {
		p.Body = bodyOf(h, accept)
	}
	if !r.browser {
		p.Browser = hasFold(userAgent, "mozilla/") && navigates(h, accept, fetchMode, fetchDest)
	} else if p.Browser {
		p.Browser = string(h.Method) == "GET"
	}
	return p
}

// navigates tells the loading of a page or a download link from what scripts and elements fetch. Browsers before Sec-Fetch-Mode ask
// for text/html only when they navigate.
func navigates(h *wire.Head, accept, fetchMode, fetchDest []byte) bool {
	if string(h.Method) != "GET" {
		return false
	}
	if fetchMode != nil {
		return wire.EqualFold(fetchMode, "navigate") && (fetchDest == nil || shown(fetchDest))
	}
	return containsFold(accept, "text/html")
}

// shown reports whether what is fetched for a destination is shown as a page. A link that saves (<a download>) navigates too, with an empty destination: a page in answer
// to it ends the download.
func shown(dest []byte) bool {
	return wire.EqualFold(dest, "document") || wire.EqualFold(dest, "iframe") || wire.EqualFold(dest, "frame")
}

func bodyOf(h *wire.Head, accept []byte) BodyKind {
	switch path := pathOf(h.Target); {
	case hasPrefix(path, "/v2/") || string(path) == "/v2":
		return OCI
	case contains(path, "/info/lfs/") || containsFold(accept, "application/vnd.git-lfs"):
		return LFS
	}
	return Plain
}

const maxRows = 256

func parseRows(text []byte) (*rows, error) {
	var f rulefile.Faults
	root := rulefile.Parse(text, &f)
	if root.Kind == rulefile.Null {
		return newRows(nil), f.Err()
	}
	if !root.Only(&f, "the file", "clients") {
		return nil, f.Err()
	}
	items := root.List(&f, "clients")
	if len(items) > maxRows {
		f.Addf(items[maxRows].Line, "clients: %d rows, at most %d are allowed", len(items), maxRows)
		return nil, f.Err()
	}
	var file []row
	userAgents := map[string]int{}
	for _, n := range items {
		if r, ok := parseRow(n, &f); ok {
			if at, twice := userAgents[r.userAgent]; twice {
				f.Addf(n.Line, "the same userAgent is given on line %d already", at)
			}
			userAgents[r.userAgent] = n.Line
			file = append(file, r)
		}
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return newRows(file), nil
}

func parseRow(n rulefile.Node, f *rulefile.Faults) (row, bool) {
	if !n.Only(f, "a client", "name", "userAgent", "holdSeconds", "refuseStatus", "body", "browser") {
		return row{}, false
	}
	r := builtin("", "", MaxHold, 503, Plain)
	name, _ := n.String(f, "name")
	if !validName(name) {
		f.Addf(n.Line, "a client needs a name of 1 to 32 characters a-z 0-9 . _ -, such as corp-fetch")
	}
	r.profile.Name = name
	userAgent, _ := n.String(f, "userAgent")
	if !validUserAgent(userAgent) {
		f.Addf(n.Line, "a client needs a userAgent of 1 to 128 printable ASCII characters, the start of its User-Agent such as CorpFetch/")
		return row{}, false
	}
	r.userAgent = strings.ToLower(userAgent)
	if v, ok := n.Int(f, "holdSeconds", 0, int(MaxHold/time.Second)); ok {
		r.profile.HoldLimit = time.Duration(v) * time.Second
	}
	switch s, ok := n.String(f, "refuseStatus"); {
	case !ok, s == "503":
	case s == "429":
		r.profile.RefuseStatus = 429
	default:
		at, _ := n.Get("refuseStatus")
		f.Addf(at.Line, "refuseStatus must be 503 or 429")
	}
	if s, ok := n.String(f, "body"); ok {
		r.byPath = false
		switch s {
		case "plain":
		case "oci":
			r.profile.Body = OCI
		case "lfs":
			r.profile.Body = LFS
		default:
			at, _ := n.Get("body")
			f.Addf(at.Line, "body must be plain, oci or lfs")
		}
	}
	if v, ok := n.Bool(f, "browser"); ok {
		r.browser, r.profile.Browser = true, v
	}
	return r, true
}

func validName(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

func validUserAgent(s string) bool {
	if s == "" || len(s) > 128 || s[0] == ' ' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
