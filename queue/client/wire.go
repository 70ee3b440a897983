package client

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of what is believed of a server.
const (
	longestWait    = time.Hour // a longer Retry-After is waited for this long and then asked about again
	shortestWait   = time.Second
	unstatedWait   = 5 * time.Second // a queue answer that does not say when to come back
	maxTicket      = 512
	maxValidator   = 512
	maxRefusalBody = 64 << 10
	maxMessage     = 200
	maxPosition    = 1 << 30
	strongAge      = time.Minute // by how much Date must be past Last-Modified (RFC 9110 section 8.8.2.2)
)

// Field names of the queue protocol.
const (
	fieldID       = "Arkvory-Download-Id"
	fieldClass    = "Arkvory-Download-Class"
	fieldTicket   = "Arkvory-Queue-Ticket"
	fieldPosition = "Arkvory-Queue-Position"
	fieldStarts   = "Arkvory-Starts-At"
	fieldWindow   = "Arkvory-Starts-Window"
)

// facts is what a response tells about the queue. Zero fields were not told, or not in a form that can be read.
type facts struct {
	wait                       time.Duration // told by Retry-After, at most longestWait
	told                       bool          // wait was told
	busy                       bool          // the server speaks the queue protocol and says that it is busy
	position                   int
	startsAt, earliest, latest time.Time
	ticket, class              string
	message                    string // for people, from a JSON body, not yet cleaned of secrets
}

// readFacts reads the fields of a response.
func readFacts(h http.Header, now time.Time) facts {
	var f facts
	f.wait, f.told = parseRetryAfter(h.Get("Retry-After"), h.Get("Date"), now)
	f.position = parsePosition(h.Get(fieldPosition))
	f.startsAt = parseTime(h.Get(fieldStarts))
	f.earliest, f.latest = parseWindow(h.Get(fieldWindow))
	f.ticket = parseTicket(h.Get(fieldTicket))
	f.class = parseClass(h.Get(fieldClass))
	f.busy = f.position > 0 || !f.startsAt.IsZero() || h.Get(fieldTicket) != ""
	return f
}

// refusalBody is the JSON of a refusal: the same facts again, for where a proxy between drops response fields.
type refusalBody struct {
	Error         string `json:"error"`
	Reason        string `json:"reason"`
	Message       string `json:"message"`
	RetryAfter    int64  `json:"retryAfterSeconds"`
	QueuePosition int64  `json:"queuePosition"`
	StartsAt      string `json:"startsAt"`
	StartsWindow  struct {
		Earliest string `json:"earliest"`
		Latest   string `json:"latest"`
	} `json:"startsWindow"`
	QueueTicket   string `json:"queueTicket"`
	DownloadClass string `json:"downloadClass"`
}

// addBody completes the facts of a refusal from its body; fields already told stand. It reads a bounded part of the body.
func (f *facts) addBody(h http.Header, body io.Reader) {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	raw, _ := io.ReadAll(io.LimitReader(body, maxRefusalBody)) // what came before a break is not JSON and tells nothing
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return
	}
	var b refusalBody
	if json.Unmarshal(raw, &b) != nil {
		return
	}
	f.message = printable(b.Message)
	f.busy = f.busy || b.Error == "busy"
	if !f.told && b.RetryAfter > 0 {
		f.wait, f.told = seconds(b.RetryAfter), true
	}
	if f.position == 0 && b.QueuePosition > 0 && b.QueuePosition <= maxPosition {
		f.position = int(b.QueuePosition)
	}
	if f.startsAt.IsZero() {
		f.startsAt = parseTime(b.StartsAt)
	}
	if f.earliest.IsZero() {
		f.earliest, f.latest = parseWindow(b.StartsWindow.Earliest + "/" + b.StartsWindow.Latest)
	}
	if f.ticket == "" {
		f.ticket = parseTicket(b.QueueTicket)
	}
	if f.class == "" {
		f.class = parseClass(b.DownloadClass)
	}
}

// parseRetryAfter reads Retry-After, seconds or an HTTP date (RFC 9110 section 10.2.3). A date counts from the response's
// own Date when that can be read, so that a wrong clock on either side does no harm. The result is 0..longestWait.
func parseRetryAfter(value, date string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if digits(value) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil { // more digits than fit are still seconds
			return longestWait, true
		}
		return seconds(n), true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if base, err := http.ParseTime(date); err == nil {
		now = base
	}
	return min(max(at.Sub(now), 0), longestWait), true
}

// seconds is n seconds, at most longestWait.
func seconds(n int64) time.Duration {
	if n > int64(longestWait/time.Second) {
		return longestWait
	}
	return time.Duration(n) * time.Second
}

func digits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

func parsePosition(s string) int {
	if !digits(s) {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > maxPosition {
		return 0
	}
	return n
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if year := t.UTC().Year(); err != nil || year < 1970 || year > 9998 { // others cannot be written in every zone
		return time.Time{}
	}
	return t
}

// parseWindow reads "<earliest>/<latest>"; a window that ends before it begins is none.
func parseWindow(s string) (earliest, latest time.Time) {
	from, to, _ := strings.Cut(s, "/")
	earliest, latest = parseTime(from), parseTime(to)
	if earliest.IsZero() || latest.IsZero() || latest.Before(earliest) {
		return time.Time{}, time.Time{}
	}
	return earliest, latest
}

// parseTicket accepts any text that can be sent back unchanged.
func parseTicket(s string) string {
	if len(s) > maxTicket {
		return ""
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || c == ',' {
			return ""
		}
	}
	return s
}

// parseClass accepts a short word; it is only shown.
func parseClass(s string) string {
	if len(s) > 32 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return ""
	}
	return s
}

// contentRange is a Content-Range of bytes: [from, to) of total; total is -1 when the server does not know it.
type contentRange struct{ from, to, total int64 }

// parseContentRange reads "bytes 0-99/1000" or "bytes 0-99/*" (RFC 9110 section 14.4) and nothing looser.
func parseContentRange(s string) (contentRange, bool) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	if !ok {
		return contentRange{}, false
	}
	interval, total, ok := strings.Cut(rest, "/")
	if !ok {
		return contentRange{}, false
	}
	first, last, ok := strings.Cut(interval, "-")
	if !ok {
		return contentRange{}, false
	}
	c := contentRange{total: -1}
	var fine [3]bool
	c.from, fine[0] = parseLength(first)
	c.to, fine[1] = parseLength(last)
	fine[2] = total == "*"
	if !fine[2] {
		c.total, fine[2] = parseLength(total)
	}
	c.to++
	if !fine[0] || !fine[1] || !fine[2] || c.from >= c.to || c.total >= 0 && c.to > c.total {
		return contentRange{}, false
	}
	return c, true
}

// parseLength reads a number of bytes, at most 2^62.
func parseLength(s string) (int64, bool) {
	if !digits(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= 1<<62
}

// representation is one state of the object: what must not change while its bytes are put together.
type representation struct {
	size     int64  // -1 while unknown
	etag     string // the entity tag, weak or strong, or empty
	modified string // Last-Modified, only where it is strong and there is no entity tag
	encoding string // Content-Encoding: bytes are kept as they come, and parts must come alike
	ranged   bool   // ranges of it may be fetched one by one
}

// readRepresentation reads the validators of a response; size and ranged are the caller's.
func readRepresentation(h http.Header) representation {
	r := representation{size: -1, encoding: parseEncoding(h)}
	if tag := h.Get("ETag"); validTag(tag) {
		r.etag = tag
		return r
	}
	if h.Get("ETag") == "" {
		r.modified = strongModified(h)
	}
	return r
}

// validator is what If-Range may carry: the strong entity tag, the strong date, or nothing (RFC 9110 section 13.1.5).
func (r representation) validator() string {
	if r.etag != "" && !strings.HasPrefix(r.etag, "W/") {
		return r.etag
	}
	return r.modified
}

// same reports whether a response's fields are of this very representation by a strong comparison.
func (r representation) same(h http.Header) bool {
	if parseEncoding(h) != r.encoding {
		return false
	}
	if r.modified != "" {
		return h.Get("Last-Modified") == r.modified
	}
	return h.Get("ETag") == r.etag
}

// parseEncoding reads Content-Encoding in one form; no encoding is empty.
func parseEncoding(h http.Header) string {
	var all []string
	for _, one := range strings.Split(strings.ToLower(strings.Join(h.Values("Content-Encoding"), ",")), ",") {
		if one = strings.TrimSpace(one); one != "" && one != "identity" {
			all = append(all, one)
		}
	}
	return shorten(strings.Join(all, ","), maxValidator)
}

// validTag reports whether s is an entity tag that can be kept and sent back (RFC 9110 section 8.8.3).
func validTag(s string) bool {
	opaque := strings.TrimPrefix(s, "W/")
	if len(s) > maxValidator || len(opaque) < 2 || opaque[0] != '"' || opaque[len(opaque)-1] != '"' {
		return false
	}
	for _, c := range []byte(opaque[1 : len(opaque)-1]) {
		if c <= ' ' || c == '"' || c >= 0x7f {
			return false
		}
	}
	return true
}

// strongModified returns Last-Modified where two states within one of its seconds cannot share it: the response was made
// at least strongAge later by the same origin's Date.
func strongModified(h http.Header) string {
	value := h.Get("Last-Modified")
	modified, err := http.ParseTime(value)
	if err != nil || len(value) > maxValidator {
		return ""
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || date.Sub(modified) < strongAge {
		return ""
	}
	return value
}

// printable cuts a server's text to one short line.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	return shorten(strings.Join(strings.Fields(s), " "), maxMessage)
}
