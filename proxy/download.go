package proxy

import (
	"math/rand/v2"
	"time"

	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/wire"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
	"github.com/arkvory/sidecar/queue/memory"
)

// download tells the story of a GET: describe the object, claim what it needs (a session's slot, a place, or nothing), relay, give back.
//
// While slots are free the GET itself describes the object: its response head gives status, size and validator, and the body follows without another round trip.
// While all slots are taken the object is described first (cache, HEAD, GET of one byte), so that a storm costs the origin one small request a new session and a poll of a
// waiting one costs nothing. Refusals of the upstream, 304 and the like take no place.
func (x *exchange) download() {
	if x.polls() {
		x.answerPoll()
		return
	}
	policy := x.p.queue.Policy() // once a request; what the queue decides may already go by a newer one
	if policy.Queues() && !x.mayLook() {
		facts, known, answered := x.describe()
		if answered || known && isSession(&policy, facts) && !x.claim(facts) {
			return
		}
	}
	var facts object.Facts
	for {
		if err := x.origin(ask{}); err != nil {
			x.fail(err)
			return
		}
		status := x.w.Resp.Status
		if status != 200 && status != 206 {
			x.looked()
			if x.grant != nil { // nothing was delivered and nothing will be: the slot is for somebody else
				x.grant.Abandon()
				x.grant = nil
			}
			x.relayResponse()
			return
		}
		facts = object.FromResponse(&x.w.Resp)
		if x.grant != nil || !x.asksQueue(&policy, facts) {
			if x.looks && x.p.looking.Load() > x.p.queue.FreeSlots()/2 {
				x.rememberSmall(facts, status)
			}
			x.looked()
			break
		}
		x.p.metrics.Described(telemetry.DescribeGet)
		x.remember(facts)
		if x.refusedSession(facts) {
			return
		}
		grant, verdict := x.p.queue.Admit(x.askFor(facts))
		x.looked()
		if verdict.Outcome == queue.Admitted {
			x.granted(grant, verdict)
			break
		}
		if verdict.Outcome == queue.PerRequest {
			break
		}
		x.drop(telemetry.DiscardCancelled) // it must wait: its body is not read ahead
		if hasBody(&x.c.Req) {             // what the request itself carried is gone with it: it cannot be sent a second time
			x.refuseSession(verdict)
			return
		}
		if !x.claim(facts) {
			return
		}
	}
	if x.grant != nil {
		x.relaySession(facts)
		return
	}
	x.relayPlaced()
}

// mayLook reports whether this GET may describe its object itself: at most as many do so at once as slots are free, so that the origin never sends more
// bodies of unknown objects at once than there are slots. It is given back by looked, at the latest on release.
func (x *exchange) mayLook() bool {
	if x.p.looking.Add(1) > x.p.queue.FreeSlots() {
		x.p.looking.Add(-1)
		return false
	}
	x.looks = true
	return true
}

// looked ends what mayLook began. It comes after the queue's decision, so that a slot is never counted free twice.
func (x *exchange) looked() {
	if x.looks {
		x.looks = false
		x.p.looking.Add(-1)
	}
}

// isSession reports whether an object of that size is admitted as a session under a policy.
func isSession(policy *queue.Policy, f object.Facts) bool {
	return policy.Queues() && f.Known && f.SizeBytes > policy.SessionMinBytes
}

// asksQueue reports whether the queue is asked about a response: its object is a session, or may be one of an earlier policy that still has its slot. The
// queue answers the latter with a grant, and all else with PerRequest.
func (x *exchange) asksQueue(policy *queue.Policy, f object.Facts) bool {
	return isSession(policy, f) || x.p.outlived.Load() && f.Known && f.SizeBytes > x.p.set.AdmissionMinBytes
}

// relaySession relays a response of an admitted session and reports to the queue what was delivered.
func (x *exchange) relaySession(f object.Facts) {
	g := x.grant
	first, end := f.First, f.Last+1
	x.relayResponse()
	if x.reason == telemetry.OK {
		g.Finish(first, end, end > first)
		x.grant = nil
		return
	}
	if x.reason != telemetry.ClientGone { // the upstream broke: the client will be back for the rest
		g.Finish(first, end, false)
		x.grant = nil
	}
}

// relayPlaced relays a response that is no session: through the per-request admission when it is large or of unknown length.
func (x *exchange) relayPlaced() {
	resp := &x.w.Resp
	small := !resp.Chunked && resp.ContentLength >= 0 && resp.ContentLength <= x.p.set.AdmissionMinBytes
	if small {
		x.relayResponse()
		return
	}
	if x.refusedPlace() {
		return
	}
	place, err := x.place()
	if err != nil {
		x.drop(telemetry.DiscardCancelled)
		x.refusePlace(err)
		return
	}
	defer place.Release()
	x.relayResponse()
}

// place waits for a place of the download direction. A request that was held in the queue before the policy changed has what its client's patience has left
// (X1): the two waits together are no longer than one hold, for behind that clients give up.
func (x *exchange) place() (admission.Place, error) {
	if x.p.passesThrough() {
		return admission.Place{}, nil
	}
	if x.held == 0 {
		return x.p.down.Acquire(x.id.Principal, x.c.Gone())
	}
	answered := make(chan struct{})
	place, wait, err := x.p.down.Enter(x.id.Principal, func(*admission.Wait) { close(answered) })
	if wait == nil {
		return place, err
	}
	rest := time.NewTimer(x.profile.HoldLimit - x.held)
	defer rest.Stop()
	select {
	case <-answered:
		place, _, err = wait.Poll()
		return place, err
	case <-x.c.Gone():
		err = admission.ErrCancelled
	case <-rest.C:
		term := x.p.set.Downloads.Timeout
		err = &admission.BusyError{RetryAfter: term + rand.N(term/4+1), Reason: admission.Timeout}
	}
	wait.Cancel()
	return admission.Place{}, err
}

// nameObject fills x.name and x.key.
func (x *exchange) nameObject() {
	if x.named {
		return
	}
	x.named = true
	x.name = object.Name(&x.c.Req, x.name[:0])
	x.key = object.MakeKey(x.name, x.id.Credentials)
}

// rememberSmall notes near the bound of mayLook that an object needs no slot, so that the next GET of it is not counted there.
func (x *exchange) rememberSmall(f object.Facts, status int) {
	switch {
	case f.Known:
		x.remember(f)
	case status == 200:
		x.rememberNoLength()
	}
}

// rememberNoLength notes an object that comes without a length, a page made anew each time for one: it is no session and is not described again.
func (x *exchange) rememberNoLength() { x.remember(object.Facts{Known: true, SizeBytes: -1}) }

func (x *exchange) remember(f object.Facts) {
	x.nameObject()
	x.p.objects.Put(x.p.queue.Now(), x.key, f)
}

// describe learns an object's size without reading its body: from the cache, by HEAD, or where HEAD is refused by a GET of one byte. Known is false when the plain
// GET must tell. Answered means that the client has its answer.
func (x *exchange) describe() (f object.Facts, known, answered bool) {
	x.nameObject()
	if f, ok := x.p.objects.Get(x.p.queue.Now(), x.key); ok {
		return f, true, false
	}
	f, status, err := x.probe(ask{method: "HEAD", noBody: true})
	if err != nil {
		x.fail(err)
		return f, false, true
	}
	how := telemetry.DescribeHead
	if headRefused(status) && x.c.Req.Get(wire.Range) == nil {
		if f, status, err = x.probe(ask{range1: true, noBody: true}); err != nil {
			x.fail(err)
			return f, false, true
		}
		how = telemetry.DescribeRange
	}
	if !f.Known || status != 200 && status != 206 {
		x.p.metrics.Described(telemetry.DescribeUnread)
		if status == 200 {
			x.rememberNoLength()
		}
		return f, false, false
	}
	x.p.metrics.Described(how)
	x.remember(f)
	return f, true, false
}

// headRefused tells the statuses by which an origin says that it answers GET only: a presigned link covers its method, some origins know no HEAD.
func headRefused(status int) bool {
	switch status {
	case 400, 401, 403, 405, 501:
		return true
	}
	return false
}

// probe sends a request whose body is not wanted and returns what its head says.
func (x *exchange) probe(a ask) (object.Facts, int, error) {
	if err := x.origin(a); err != nil {
		return object.Facts{}, 0, err
	}
	resp := &x.w.Resp
	f, status := object.FromResponse(resp), resp.Status
	if a.method == "HEAD" && len(x.w.Buffered()) == 0 {
		x.c.Bind(nil)
		x.w.Release(x.c.Now())
		x.w = nil
	} else {
		x.drop(telemetry.DiscardCancelled)
	}
	return f, status, nil
}

// askFor is the question to the queue.
func (x *exchange) askFor(f object.Facts) queue.Ask {
	x.nameObject()
	client := "id:" + x.downloadID // apart from addresses: an id that looks like one names no other client's session
	if x.downloadID == "" {
		client = "addr:" + x.id.Client.String()
	}
	a := queue.Ask{
		Key:       queue.Key{Principal: x.id.Principal, Object: string(x.name), Client: client},
		Class:     x.class,
		Protocol:  x.downloadID != "",
		SizeBytes: f.SizeBytes,
		Validator: f.Validator,
		Range:     x.rangeAsked(),
	}
	x.bundle(&a)
	x.ticketed(&a)
	return a
}

func (x *exchange) rangeAsked() queue.RangeAsk {
	r, _ := object.ParseRange(x.c.Req.Get(wire.Range))
	switch r.Kind {
	case object.Bounded:
		return queue.Bounded(r.First, r.Last)
	case object.Open:
		return queue.OpenFrom(r.First)
	case object.Suffix:
		return queue.Suffix(r.Suffix)
	case object.Multi:
		return queue.RangeAsk{Kind: queue.RangeMulti}
	}
	return queue.RangeAsk{}
}

// claim gets the session's slot, waiting for it where the client bears that. False: the client has its answer. True without a grant: the policy was changed,
// and the request needs none. A request that is held a second time, because the policy was changed twice, has what is left of the first time.
func (x *exchange) claim(f object.Facts) bool {
	if x.refusedSession(f) {
		return false
	}
	a := x.askFor(f)
	x.match()
	hold := min(x.p.set.Hold, x.profile.HoldLimit) - x.held
	grant, verdict := (*memory.Grant)(nil), queue.Verdict{}
	if a.Protocol { // it is told its place at once; only a place for one more response is waited for
		grant, verdict = x.p.queue.Admit(a)
	}
	if !a.Protocol || verdict.Outcome == queue.RangesBusy {
		grant, verdict = x.hold(a, hold)
	}
	switch verdict.Outcome {
	case queue.Admitted:
		x.granted(grant, verdict)
		return true
	case queue.PerRequest:
		return true
	case queue.Gone:
		x.left()
		return false
	case queue.Queued, queue.RangesBusy:
		if f.Strong && x.mayDrip(&a) && x.drip(a) {
			return false
		}
	}
	x.refuseSession(verdict)
	return false
}

// hold waits in silence for the session's turn, at most that long, while there are places to do so.
func (x *exchange) hold(a queue.Ask, wait time.Duration) (*memory.Grant, queue.Verdict) {
	if wait > 0 && x.p.holds.enter(a.Key.Principal) {
		defer x.p.holds.leave(a.Key.Principal)
	} else {
		wait = 0
	}
	x.freeOut()
	began := x.p.queue.Now()
	grant, verdict := x.p.queue.Hold(a, wait, x.c.Gone())
	x.held += x.p.queue.Now() - began
	return grant, verdict
}

// granted takes the grant over.
func (x *exchange) granted(g *memory.Grant, v queue.Verdict) {
	x.grant = g
	g.OnCut(x.c.Cut)
	x.seated(v)
	if v.Started {
		x.p.metrics.DownloadWait.Update(v.Waited.Seconds())
	}
}

// match finds the client's profile.
func (x *exchange) match() {
	if x.profile.Name == "" {
		x.profile = x.p.clients.Match(&x.c.Req)
	}
}
