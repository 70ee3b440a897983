package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	checkpointVersion = 1
	maxCheckpoint     = 1 << 20
	maxSpans          = 1024 // far more than Parallel ranges can leave
)

// checkpoint is what the next process needs to continue the same download in the same place.
type checkpoint struct {
	URL        string     `json:"url"`                 // without user, query and fragment
	Query      string     `json:"queryHash,omitempty"` // keyed with ID; signatures of links left out
	ID         string     `json:"id"`
	Ticket     string     `json:"ticket,omitempty"`
	TicketAt   time.Time  `json:"ticketAt,omitzero"`    // when it came
	TicketFrom string     `json:"ticketFrom,omitempty"` // scheme and host that gave it
	Class      string     `json:"class,omitempty"`      // as the server applied it
	Saved      time.Time  `json:"saved"`
	Size       int64      `json:"size"` // -1 while unknown
	ETag       string     `json:"etag,omitempty"`
	Modified   string     `json:"lastModified,omitempty"`
	Encoding   string     `json:"contentEncoding,omitempty"`
	Done       [][2]int64 `json:"done"`             // ascending [from, to) that are safe on disk
	SHA256     string     `json:"sha256,omitempty"` // of the whole, once verified
}

// envelope is the file: the version is readable whatever a later one puts into the state, and the sum tells a damaged
// file from a right one, so that no flipped digit ever claims bytes that are not there.
type envelope struct {
	Version int             `json:"version"`
	State   json.RawMessage `json:"state"`
	Sum     string          `json:"sum"`
}

var (
	errNewer   = errors.New("it was written by a newer version")
	errDamaged = errors.New("it is damaged")
)

// encode returns the file.
func (c checkpoint) encode() ([]byte, error) {
	state, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	file, err := json.Marshal(envelope{Version: checkpointVersion, State: state, Sum: stateSum(state)})
	return append(file, '\n'), err
}

func stateSum(state []byte) string {
	sum := sha256.Sum256(state)
	return hex.EncodeToString(sum[:16])
}

// decodeCheckpoint reads a file. It returns errNewer, or errDamaged for everything that encode would not have written.
func decodeCheckpoint(file []byte) (checkpoint, error) {
	var e envelope
	if err := json.Unmarshal(file, &e); err != nil {
		return checkpoint{}, errDamaged
	}
	if e.Version > checkpointVersion {
		return checkpoint{}, errNewer
	}
	var c checkpoint
	decoder := json.NewDecoder(bytes.NewReader(e.State))
	decoder.DisallowUnknownFields()
	if e.Version != checkpointVersion || e.Sum != stateSum(e.State) || decoder.Decode(&c) != nil || !c.sound() {
		return checkpoint{}, errDamaged
	}
	return c, nil
}

// sound reports whether the fields fit together.
func (c checkpoint) sound() bool {
	if c.URL == "" || !validID(c.ID) || c.Ticket != parseTicket(c.Ticket) || c.Class != parseClass(c.Class) {
		return false
	}
	if c.Size < -1 || c.Size > 1<<62 || len(c.Done) > maxSpans || c.ETag != "" && !validTag(c.ETag) || len(c.Modified) > maxValidator {
		return false
	}
	end := int64(-1)
	for _, one := range c.Done {
		if one[0] <= end || one[0] >= one[1] || one[1] > c.Size {
			return false
		}
		end = one[1]
	}
	if sum, err := hex.DecodeString(c.SHA256); err != nil || c.SHA256 != "" && len(sum) != sha256.Size {
		return false
	}
	whole := c.SHA256 != "" && c.done().sum() == c.Size
	return len(c.Done) == 0 && c.SHA256 == "" || whole || c.SHA256 == "" && c.representation().validator() != ""
}

// done is the set of bytes that the checkpoint vouches for.
func (c checkpoint) done() (s spans) {
	for _, one := range c.Done {
		s = append(s, span{one[0], one[1]})
	}
	return s
}

// representation is the state of the object that the bytes are of.
func (c checkpoint) representation() representation {
	return representation{size: c.Size, etag: c.ETag, modified: c.Modified, encoding: c.Encoding, ranged: true}
}

// of reports whether the checkpoint belongs to an address.
func (c checkpoint) of(u *url.URL) bool {
	return c.URL == plainURL(u) && c.Query == queryHash(u, c.ID)
}

// plainURL is an address as it may be seen: without user, query and fragment.
func plainURL(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":80")
	} else {
		host = strings.TrimSuffix(host, ":443")
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + host + path
}

// queryHash recognises a query without telling it. Parameters of link signatures change with every signing of one link
// and do not count.
func queryHash(u *url.URL, id string) string {
	query := unsigned(u.RawQuery)
	if query == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id + "\n" + query))
	return hex.EncodeToString(sum[:16])
}

// signatures are the ways links are signed: the parameter that holds the signature, in lower case, and those that go
// with it; a name that ends with - stands for all that begin so.
var signatures = map[string][]string{
	"x-amz-signature":  {"x-amz-"},
	"x-goog-signature": {"x-goog-"},
	"signature":        {"signature", "expires", "key-pair-id", "policy", "awsaccesskeyid", "googleaccessid"},
	"sig":              {"sig", "se", "st", "sp", "sv", "sr", "spr", "sip", "skoid", "sktid", "skt", "ske", "sks", "skv"},
}

// unsigned returns a raw query without the parameters of its signature, the rest in its order.
func unsigned(query string) string {
	parts := strings.Split(query, "&")
	name := func(part string) string {
		key, _, _ := strings.Cut(part, "=")
		return strings.ToLower(key)
	}
	var drop []string
	for _, part := range parts {
		drop = append(drop, signatures[name(part)]...)
	}
	kept := parts[:0]
	for _, part := range parts {
		dropped := false
		for _, one := range drop {
			dropped = dropped || name(part) == one || strings.HasSuffix(one, "-") && strings.HasPrefix(name(part), one)
		}
		if !dropped {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

// validID reports whether an id may be sent as Arkvory-Download-Id.
func validID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("._~-", rune(c)) {
			return false
		}
	}
	return true
}

// refusal words why a checkpoint ends the download.
func refusal(path string, why error) error {
	return fmt.Errorf("%w: %s: %w; remove the file, start afresh or choose another output", ErrCheckpoint, path, why)
}
