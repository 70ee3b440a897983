package proxy

import (
	"hash/fnv"
	"net/url"
	"path"
	"strconv"

	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/profile"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/waitpage"
	"github.com/arkvory/sidecar/proxy/wire"
	"github.com/arkvory/sidecar/queue"
)

// bundle makes an ask one for a member of a bundle (X5): what one plain client fetches from one repository has one place in the queue.
func (x *exchange) bundle(a *queue.Ask) {
	if a.Protocol || !x.p.set.Bundles {
		return
	}
	repository := object.Repository(&x.c.Req, x.name)
	if repository == nil {
		return
	}
	member := fnv.New64a()
	_, _ = member.Write(x.name)
	a.Bundle, a.Member = true, member.Sum64()
	a.Key.Object = "bundle " + string(repository)
}

// pollField is the field by which the waiting page asks how its download stands.
const pollField = "arkvory-waiting-page"

// polls reports whether the request is such a question.
func (x *exchange) polls() bool {
	return x.downloadID == "" && x.c.Req.Count(wire.Arkvory) > 0 && x.c.Req.Lookup(pollField) != nil
}

// answerPoll tells the waiting page how its download stands (V4): 503 with the facts while it waits, 200 when a plain GET would be admitted now. Nothing is taken
// by asking, and it counts as a sign of life of the client that waits.
func (x *exchange) answerPoll() {
	facts, known, answered := x.describe()
	if answered {
		return
	}
	if policy := x.p.queue.Policy(); known && isSession(&policy, facts) {
		if _, _, over := x.overQuota(); over {
			x.match()
			x.profile.Browser, x.profile.Body, x.profile.RefuseStatus = false, profile.Plain, 503
		}
		if x.refusedSession(facts) {
			return
		}
		a := x.askFor(facts)
		a.Peek = true
		switch _, verdict := x.p.queue.Admit(a); verdict.Outcome {
		case queue.Queued, queue.RangesBusy, queue.LimitReached, queue.Draining, queue.Rejected, queue.Kicked:
			x.match()
			x.profile.Browser, x.profile.Body, x.profile.RefuseStatus = false, profile.Plain, 503 // whatever the client: its script reads this
			x.refuseSession(verdict)
			return
		}
	}
	const ready = "{\"ready\":true}\n"
	x.reason = telemetry.OK
	x.needOut()
	b := append(x.out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: "...)
	b = append(strconv.AppendInt(b, int64(len(ready)), 10), '\r', '\n')
	x.out = append(append(x.appendConnection(b), '\r', '\n'), ready...)
	x.c.MarkSent()
	if err := x.c.Write(x.out); err != nil {
		x.keep = false
	}
}

// page is the waiting page for a refusal of a browser's navigation.
func (x *exchange) page(r refusal) []byte {
	f := waitpage.Facts{Name: fileName(x.c.Req.Target), Position: r.verdict.Position, Now: r.wall, RetryAfter: r.retry,
		Language: string(x.c.Req.Lookup("accept-language")), Yielded: r.verdict.Yielded}
	if v := r.verdict; v.EstimateKnown {
		f.StartsAt, f.Earliest, f.Latest = r.wall.Add(v.StartsIn), r.wall.Add(v.EarliestIn), r.wall.Add(v.LatestIn)
	}
	return waitpage.Append(nil, f)
}

// fileName is the last segment of a target's path, as a browser would name the file.
func fileName(target []byte) string {
	u, err := url.ParseRequestURI(string(target))
	if err != nil {
		return ""
	}
	if name := path.Base(u.Path); name != "/" && name != "." {
		return name
	}
	return ""
}
