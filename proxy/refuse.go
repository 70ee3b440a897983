package proxy

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/arkvory/sidecar/proxy/profile"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/waitpage"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

// drainRetrySeconds is the Retry-After of a stopping process: another one, or its successor, is there by then.
const drainRetrySeconds = 2

// refusal is one answer of the proxy's own.
type refusal struct {
	status  int
	reason  telemetry.Reason
	message string
	retry   int // seconds, 0 = no Retry-After
	verdict *queue.Verdict
	wall    time.Time
	// quotaResetsAt is the end of the period whose quota is used up; zero for all other reasons.
	quotaResetsAt time.Time
}

// refuseAtOnce refuses a request before anything was found out about it.
func (x *exchange) refuseAtOnce(r telemetry.Reason) {
	x.match()
	message := "too many requests are in progress"
	if r == telemetry.Draining {
		message = "this process is stopping"
	}
	x.refuse(refusal{status: x.profile.RefuseStatus, reason: r, message: message, retry: drainRetrySeconds})
}

// refusePlace answers for the per-request admission.
func (x *exchange) refusePlace(err error) {
	x.match()
	var busy *admission.BusyError
	switch {
	case errors.As(err, &busy):
		r := telemetry.Busy
		if busy.Reason == admission.Full {
			r = telemetry.QueueFull
		}
		x.refuse(refusal{status: x.profile.RefuseStatus, reason: r, message: "all places for transfers are taken", retry: wholeSeconds(busy.RetryAfter)})
	case errors.Is(err, admission.ErrDraining):
		x.refuseAtOnce(telemetry.Draining)
	default:
		x.left()
	}
}

// left settles an exchange whose client left before it got an answer.
func (x *exchange) left() {
	x.reason, x.keep, x.bodyOK = telemetry.ClientGone, false, true
	x.p.metrics.ClientError(telemetry.ClientGone)
}

// refuseSession answers a download that waits for its slot, with the facts of Q10.
func (x *exchange) refuseSession(v queue.Verdict) {
	x.match()
	r := refusal{status: x.profile.RefuseStatus, reason: telemetry.DownloadQueued, message: "this download waits in the queue", retry: wholeSeconds(v.CheckIn),
		verdict: &v, wall: wall()}
	if v.Yielded {
		r.message = "this download made way for another one and waits in the queue"
	}
	switch v.Outcome {
	case queue.LimitReached:
		r.reason, r.message = telemetry.QueueFull, "the download queue is full"
	case queue.Draining:
		r.reason, r.message, r.retry = telemetry.Draining, "this process is stopping", drainRetrySeconds
	case queue.Rejected:
		r.reason, r.message = telemetry.RejectingNew, "the operator lets no new download in for now"
	case queue.Kicked:
		r.reason, r.message = telemetry.Kicked, "the operator ended this download; it may be asked for anew"
	case queue.RangesBusy:
		r.message = "this download has as many responses running as it may"
	}
	if v.Outcome == queue.Queued || v.Outcome == queue.RangesBusy {
		x.seated(v)
	}
	x.refuse(r)
}

func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// answerError answers with what went wrong and no promise of a better time.
func (x *exchange) answerError(r telemetry.Reason, message string) {
	retry, status := 0, r.Status()
	switch r {
	case telemetry.UpstreamBusy:
		retry = drainRetrySeconds
	case telemetry.UpstreamUnreachable: // all of it: running downloads go on elsewhere
		if retry = drainRetrySeconds; x.downloadID != "" { // for its client that is "come again", and no fault that it counts
			r = telemetry.UpstreamNotReady
			status = r.Status()
		}
	}
	x.match()
	x.respond(status, r, message, retry)
}

// respond answers with a JSON body. Status overrides that of the reason where the rule says more.
func (x *exchange) respond(status int, r telemetry.Reason, message string, retry int) {
	x.refuse(refusal{status: status, reason: r, message: message, retry: retry})
}

// refuse writes one answer of the proxy's own. When the response has begun already, the client's connection is broken off instead.
func (x *exchange) refuse(r refusal) {
	x.reason = r.reason
	x.p.metrics.Refusal(r.status)
	if u := x.upload; u != nil {
		u.stop()
		x.bodyOK = u.complete.Load()
	}
	x.drop(telemetry.DiscardCancelled)
	if x.c.AnySent() {
		x.keep = false
		x.c.Reset()
		return
	}
	if !x.bodyOK || x.c.Draining() {
		x.keep = false
	}
	contentType, body, policy := "", []byte(nil), ""
	if x.seat && r.verdict != nil && x.profile.Browser {
		x.p.metrics.WaitingPages.Inc()
		contentType, body, policy = waitpage.ContentType, x.page(r), waitpage.ContentSecurityPolicy
	} else {
		contentType, body = profile.Body(x.profile, x.bodyOf(r))
	}
	x.needOut()
	b := append(x.out, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(r.status), 10)
	b = append(b, ' ')
	b = append(b, reasonPhrases[r.status]...)
	b = append(b, "\r\nContent-Type: "...)
	b = append(b, contentType...)
	b = append(b, "\r\nCache-Control: no-store\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, '\r', '\n')
	if policy != "" {
		b = append(append(append(b, "Content-Security-Policy: "...), policy...), '\r', '\n')
	}
	if r.retry > 0 {
		b = append(b, "Retry-After: "...)
		b = strconv.AppendInt(b, int64(r.retry), 10)
		b = append(b, '\r', '\n')
	}
	b = x.appendFacts(b, r)
	b = append(x.appendConnection(b), '\r', '\n')
	if !x.isHead {
		b = append(b, body...)
	}
	x.out = b
	x.c.MarkSent()
	if err := x.c.Write(b); err != nil {
		x.keep = false
	}
}

// appendFacts appends the queue's facts as fields (Q10).
func (x *exchange) appendFacts(b []byte, r refusal) []byte {
	v := r.verdict
	if v == nil {
		return b
	}
	if v.Position > 0 {
		b = append(b, "Arkvory-Queue-Position: "...)
		b = strconv.AppendInt(b, int64(v.Position), 10)
		b = append(b, '\r', '\n')
	}
	if v.EstimateKnown {
		b = append(b, "Arkvory-Starts-At: "...)
		b = r.wall.Add(v.StartsIn).UTC().AppendFormat(b, time.RFC3339)
		b = append(b, "\r\nArkvory-Starts-Window: "...)
		b = r.wall.Add(v.EarliestIn).UTC().AppendFormat(b, time.RFC3339)
		b = append(b, '/')
		b = r.wall.Add(v.LatestIn).UTC().AppendFormat(b, time.RFC3339)
		b = append(b, '\r', '\n')
	}
	b = append(b, "Arkvory-Download-Class: "...)
	b = append(b, v.Class.String()...)
	return x.appendTicketField(append(b, '\r', '\n'))
}

// bodyOf gives the same facts for the body.
func (x *exchange) bodyOf(r refusal) profile.Refusal {
	f := profile.Refusal{Status: r.status, Error: "busy", Reason: r.reason.String(), Message: r.message, RetryAfterSeconds: r.retry, QuotaResetsAt: r.quotaResetsAt}
	switch {
	case r.retry > 0:
	case r.status < 500 || r.reason == telemetry.MalformedRequest:
		f.Error = "bad_request"
	case r.reason == telemetry.Panic:
		f.Error = "internal_error"
	default:
		f.Error = "upstream_error"
	}
	if v := r.verdict; v != nil {
		f.Position, f.Class = v.Position, v.Class.String()
		f.Ticket = string(x.appendTicket(nil))
		if v.EstimateKnown {
			f.StartsAt, f.StartsEarliest, f.StartsLatest = r.wall.Add(v.StartsIn), r.wall.Add(v.EarliestIn), r.wall.Add(v.LatestIn)
		}
	}
	return f
}

var reasonPhrases = map[int]string{
	400: "Bad Request", 405: "Method Not Allowed", 408: "Request Timeout", 417: "Expectation Failed", 429: "Too Many Requests",
	431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
	504: "Gateway Timeout", 505: "HTTP Version Not Supported",
}
