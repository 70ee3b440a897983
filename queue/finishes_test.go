package queue

import "testing"

func TestX9_FinishesTellsTheRestFromMore(t *testing.T) {
	h := newHarness(t, testPolicy(2))
	a := askOf("p", "a")
	if h.s.Finishes(&a) {
		t.Error("nobody asked yet")
	}
	r, _ := h.want(Admitted, a)
	h.s.Progress(h.now, r, a.SizeBytes-1)
	if !h.s.Finishes(&a) {
		t.Error("a byte is to come")
	}
	h.s.Progress(h.now, r, 1)
	if h.s.Finishes(&a) {
		t.Error("it was sent as much as there is")
	}
	layer := func(member uint64) Ask {
		l := askOf("q", "bundle r")
		l.Bundle, l.Protocol, l.Member = true, false, member
		return l
	}
	one, two := layer(1), layer(2)
	h.want(Admitted, one)
	if !h.s.Finishes(&one) || h.s.Finishes(&two) {
		t.Error("the object that runs is told from another one of its bundle")
	}
	for m := range uint64(maxMembers + 3) {
		l := layer(m + 1)
		h.s.Ask(h.now, l)
	}
	lumped, strange := layer(maxMembers+2), layer(200)
	if !h.s.Finishes(&lumped) || h.s.Finishes(&strange) {
		t.Error("of those beyond the ones that are told apart")
	}
	h.check()
}
