package queue

import (
	"fmt"
	"testing"
	"time"
)

// harness drives a scheduler through virtual time and proves the invariants after every event.
type harness struct {
	t   testing.TB
	s   *Scheduler
	now time.Duration
}

func newHarness(t testing.TB, policy Policy) *harness {
	t.Helper()
	s, err := New(policy)
	if err != nil {
		t.Fatal(err)
	}
	return &harness{t: t, s: s}
}

// testPolicy has that many slots, no reserve, no share and no aging, so that each test turns on what it is about.
func testPolicy(sessions int) Policy {
	p := DefaultPolicy(sessions)
	p.Reserve, p.PerPrincipal, p.AgingEvery, p.SessionMinBytes = 0, sessions, 0, 0
	return p
}

const mib = 1 << 20

func askOf(principal, object string) Ask {
	return Ask{Key: Key{principal, object, "c"}, Class: Release, Protocol: true, SizeBytes: 100 * mib, Validator: `"1"`}
}

func (a Ask) in(c Class) Ask            { a.Class = c; return a }
func (a Ask) bytes(r RangeAsk) Ask      { a.Range = r; return a }
func (a Ask) sized(bytes int64) Ask     { a.SizeBytes = bytes; return a }
func (a Ask) valid(etag string) Ask     { a.Validator = etag; return a }
func (h *harness) check()               { h.t.Helper(); h.must(h.s.CheckInvariants()) }
func (h *harness) snap() Snapshot       { return h.s.Snapshot(h.now) }
func (h *harness) pass(d time.Duration) { h.now += d }

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) ask(a Ask) (*Response, Verdict) {
	h.t.Helper()
	r, v := h.s.Ask(h.now, a)
	h.check()
	if (r != nil) != (v.Outcome == Admitted) {
		h.t.Fatalf("response %v with outcome %v", r != nil, v.Outcome)
	}
	return r, v
}

// want asks and fails unless the outcome is that one.
func (h *harness) want(o Outcome, a Ask) (*Response, Verdict) {
	h.t.Helper()
	r, v := h.ask(a)
	if v.Outcome != o {
		h.t.Fatalf("%s at %v: outcome %v, want %v", a.Key.Object, h.now, v.Outcome, o)
	}
	return r, v
}

func (h *harness) hold(a Ask) (*Waiter, *Response, Verdict) {
	h.t.Helper()
	w, r, v := h.s.Hold(h.now, a, a.Key)
	h.check()
	return w, r, v
}

func (h *harness) finish(r *Response, first, end int64, complete bool) {
	h.t.Helper()
	h.s.Finish(h.now, r, first, end, complete)
	h.check()
}

// tick lets that much time pass in ticks.
func (h *harness) tick(d time.Duration) {
	h.t.Helper()
	for end := h.now + d; h.now < end; {
		h.now = min(h.now+TickEvery, end)
		h.s.Tick(h.now)
		h.check()
	}
}

func (h *harness) configure(p Policy) {
	h.t.Helper()
	h.must(h.s.Configure(h.now, p))
	h.check()
}

// starts finishes one session after the other on the only slot and returns who got it, in order.
func (h *harness) starts(r *Response, n int) []Key {
	h.t.Helper()
	var out []Key
	for range n {
		size := r.session.size
		h.finish(r, 0, size, true)
		settled := h.s.TakeSettled()
		if len(settled) != 1 || settled[0].Response == nil {
			h.t.Fatalf("after %d starts one held request should start, settled %v", len(out), settled)
		}
		r = settled[0].Response
		out = append(out, settled[0].Owner.(Key))
		h.now += time.Second
	}
	return out
}

func (h *harness) reasons() []Reason {
	var out []Reason
	for _, e := range h.s.TakeEnded() {
		out = append(out, e.Reason)
	}
	return out
}

func name(prefix string, i int) string { return fmt.Sprintf("%s%d", prefix, i) }

// session returns the session of a key, nil when there is none.
func (h *harness) session(k Key) *session {
	return h.s.sessions.find(&k)
}
