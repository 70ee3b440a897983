package profile

import (
	"encoding/json"
	"time"
)

// Refusal is what a client is told when it is refused. Fields with their zero value are left out of the body.
type Refusal struct {
	Status            int    // of the answer
	Error             string // "busy" when empty
	Reason            string // of the closed enumeration, such as download_queued
	Message           string // for people, one sentence
	RetryAfterSeconds int
	Position          int // in the queue, from 1
	// StartsAt is the estimated start; StartsEarliest and StartsLatest its interval. Given in UTC, to the second.
	StartsAt, StartsEarliest, StartsLatest time.Time
	Ticket                                 string // the client's own queue ticket
	Class                                  string // applied class
	// QuotaResetsAt is when the quota that is used up begins anew; given as the others.
	QuotaResetsAt time.Time
}

// facts is the JSON of a refusal; the names are those of the response fields.
type facts struct {
	Error         string  `json:"error"`
	Reason        string  `json:"reason,omitempty"`
	Message       string  `json:"message,omitempty"`
	Status        int     `json:"status,omitempty"`
	RetryAfter    int     `json:"retryAfterSeconds,omitempty"`
	QueuePosition int     `json:"queuePosition,omitempty"`
	StartsAt      string  `json:"startsAt,omitempty"`
	StartsWindow  *window `json:"startsWindow,omitempty"`
	QueueTicket   string  `json:"queueTicket,omitempty"`
	DownloadClass string  `json:"downloadClass,omitempty"`
	QuotaResetsAt string  `json:"quotaResetsAt,omitempty"`
}

type window struct {
	Earliest string `json:"earliest"`
	Latest   string `json:"latest"`
}

type ociError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Detail  facts  `json:"detail"`
}

// Media types of refusals.
const (
	jsonType = "application/json"
	lfsType  = "application/vnd.git-lfs+json"
)

// Body words a refusal in the form of the profile: our JSON, an OCI error list with TOOMANYREQUESTS whose detail is our JSON, or our
// JSON under the media type of git-lfs, which shows its message. The body ends with a newline.
func Body(p Profile, r Refusal) (contentType string, body []byte) {
	f := factsOf(r)
	switch p.Body {
	case OCI:
		message := f.Message
		if message == "" {
			message = f.Error
		}
		f.Message = ""
		return jsonType, encode(struct {
			Errors []ociError `json:"errors"`
		}{[]ociError{{Code: "TOOMANYREQUESTS", Message: message, Detail: f}}})
	case LFS:
		if f.Message == "" { // git-lfs requires one
			f.Message = f.Error
		}
		return lfsType, encode(f)
	}
	return jsonType, encode(f)
}

func factsOf(r Refusal) facts {
	f := facts{Error: r.Error, Reason: r.Reason, Message: r.Message, Status: r.Status, RetryAfter: r.RetryAfterSeconds,
		QueuePosition: r.Position, StartsAt: stamp(r.StartsAt), QueueTicket: r.Ticket, DownloadClass: r.Class,
		QuotaResetsAt: stamp(r.QuotaResetsAt)}
	if f.Error == "" {
		f.Error = "busy"
	}
	if !r.StartsEarliest.IsZero() && !r.StartsLatest.IsZero() {
		f.StartsWindow = &window{stamp(r.StartsEarliest), stamp(r.StartsLatest)}
	}
	return f
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// encode cannot fail on these types: strings that are not UTF-8 get replacement characters.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":"busy"}` + "\n")
	}
	return append(b, '\n')
}
