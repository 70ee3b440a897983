package queue

import (
	"testing"
	"time"
)

func TestX9_FinishesTellsRunningSessionsFromAllOthers(t *testing.T) {
	s, err := New(DefaultPolicy(1))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(object string) Ask {
		return Ask{Key: Key{Principal: "p", Object: object, Client: "c"}, Class: Release, Protocol: true, SizeBytes: 1 << 30}
	}
	first, second := ask("a"), ask("b")
	if s.Finishes(&first) {
		t.Error("nobody asked yet")
	}
	r, _ := s.Ask(time.Second, first)
	if _, v := s.Ask(time.Second, second); r == nil || v.Outcome != Queued {
		t.Fatalf("%+v", v)
	}
	before := s.Snapshot(time.Second)
	if !s.Finishes(&first) || s.Finishes(&second) || s.Finishes(&Ask{Key: Key{Principal: "p", Object: "a", Client: "d"}}) {
		t.Error("only the first has a slot")
	}
	if after := s.Snapshot(time.Second); after.Counts != before.Counts {
		t.Error("a look changed something")
	}
	s.Finish(2*time.Second, r, 0, 1<<20, true) // between two ranges it keeps its slot
	if !s.Finishes(&first) {
		t.Error("between two ranges")
	}
	s.Tick(time.Minute) // and loses it by a pause, which is remembered
	if s.Finishes(&first) {
		t.Error("after a pause")
	}
	if err := s.CheckInvariants(); err != nil {
		t.Error(err)
	}
}
