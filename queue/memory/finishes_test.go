package memory

import (
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
)

func TestX9_FinishesAnswersFromTheCore(t *testing.T) {
	q, err := New(queue.DefaultPolicy(1), Options{Clock: func() time.Duration { return time.Second }})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	a := queue.Ask{Key: queue.Key{Principal: "p", Object: "a", Client: "c"}, Protocol: true, SizeBytes: 1 << 30}
	if q.Finishes(a) {
		t.Error("nobody asked yet")
	}
	g, _ := q.Admit(a)
	if g == nil || !q.Finishes(a) {
		t.Error("it was admitted")
	}
	g.Abandon()
	if q.Finishes(a) {
		t.Error("it was given back")
	}
}
