package bucket

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawRate(t *rapid.T, name string) Limit {
	return Limit{rapid.OneOf(
		rapid.Int64Range(MinBytesPerSecond, 4<<20), rapid.Int64Range(64<<20, 400<<20),
		rapid.Int64Range(1<<30, MaxBytesPerSecond), rapid.Just(int64(MaxBytesPerSecond)), rapid.Just(int64(0)),
	).Draw(t, name)}
}

func TestB1_RandomHistoriesStayWithinEveryBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawRate(t, "total"), drawRate(t, "perPrincipal"))
		var streams []*Stream
		wants := rapid.OneOf(rapid.Int64Range(1, 2000), rapid.Int64Range(1, 4<<20))
		for range rapid.IntRange(10, 250).Draw(t, "events") {
			action := rapid.IntRange(0, 22).Draw(t, "action")
			if len(streams) == 0 || action == 0 {
				key := fmt.Sprint("p", rapid.IntRange(0, 4).Draw(t, "principal"))
				if group := rapid.IntRange(-1, 2).Draw(t, "group"); group >= 0 {
					streams = append(streams, w.openIn(key, group*3))
				} else {
					streams = append(streams, w.open(key))
				}
				continue
			}
			i := rapid.IntRange(0, len(streams)-1).Draw(t, "stream")
			s := streams[i]
			switch {
			case action <= 8:
				if !s.waiting {
					w.ask(s, wants.Draw(t, "want"))
				}
			case action == 9:
				w.core.cancel(s, w.now)
				w.settle()
			case action == 10:
				w.core.shut(s, w.now)
				w.core.shut(s, w.now)
				w.settle()
				streams = slices.Delete(streams, i, i+1)
			case action == 11:
				w.configure(drawRate(t, "newTotal"), drawRate(t, "newPerPrincipal"))
			case action == 12:
				w.now += time.Duration(rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(t, "idle"))
				w.core.pump(w.now)
				w.settle()
			case action == 13:
				w.configureGroup(rapid.IntRange(0, 2).Draw(t, "whose")*3, drawRate(t, "groupRate"))
			case action == 14:
				w.refuseAndRestore()
			default:
				w.fire(time.Duration(rapid.Int64Range(0, int64(MaxLateness)).Draw(t, "late")))
			}
		}
		for w.fire(0) {
			continue // every request is answered in the end
		}
		if w.core.waiting != 0 {
			t.Fatalf("%d wait for ever", w.core.waiting)
		}
	})
}

// refuseAndRestore takes the right away and gives it back.
func (w *world) refuseAndRestore() {
	w.core.refuse(ErrRevoked)
	w.settle()
	if w.core.waiting != 0 {
		w.t.Fatalf("%d still wait", w.core.waiting)
	}
	w.core.refuse(nil)
	w.core.drain(w.now)
	w.settle()
}

func TestB2_PrincipalsAlternateWhateverTheirStreams(t *testing.T) {
	w := newWorld(t, Limit{10 << 20}, Limit{})
	var streams []*Stream
	for _, key := range []string{"many", "many", "many", "many", "one"} {
		streams = append(streams, w.open(key))
	}
	perStream := map[*Stream]int64{}
	for range 400 {
		for _, s := range streams {
			for !s.waiting {
				perStream[s] += s.granted
				w.ask(s, 1<<30)
			}
		}
		w.fire(time.Millisecond)
	}
	after := slices.IndexFunc(w.trace, func(g grant) bool { return g.principal == "one" })
	for i := after + 1; i < len(w.trace); i++ {
		if w.trace[i].principal == w.trace[i-1].principal {
			t.Fatalf("grants %d and %d both went to %q", i-1, i, w.trace[i].principal)
		}
	}
	quantum := w.core.quantum
	for _, s := range streams[1:4] {
		if d := perStream[s] - perStream[streams[1]]; d > quantum || d < -quantum {
			t.Errorf("streams of one principal differ by %d, more than a quantum", d)
		}
	}
}

func TestB2_SmallWantsAreNoBypass(t *testing.T) {
	w := newWorld(t, Limit{10 << 20}, Limit{})
	big, small := w.open("big"), w.open("small")
	for w.ask(big, 1<<30) {
		continue // spend the burst
	}
	if w.ask(small, 1) {
		t.Fatal("one byte went ahead of a waiting quantum")
	}
	w.fire(0)
	if big.waiting || !small.waiting {
		t.Fatal("the first in turn was not served first")
	}
	w.fire(0)
	if small.waiting || small.granted != 1 {
		t.Fatalf("the small want got %d", small.granted)
	}
}

func TestB2_PrincipalShortOfItsOwnTokensStandsInNobodysWay(t *testing.T) {
	w := newWorld(t, Limit{100 << 20}, Limit{1 << 20})
	first, second := w.open("a"), w.open("b")
	for w.ask(first, 1<<30) {
		continue
	}
	if !w.ask(second, 1<<30) {
		t.Fatal("b waits for a's bucket")
	}
}

func TestB2_CancelOfTheHeadServesTheNext(t *testing.T) {
	w := newWorld(t, Limit{10 << 20}, Limit{})
	a, b := w.open("a"), w.open("b")
	for w.ask(a, 1<<30) {
		continue
	}
	w.ask(b, 1)
	w.now += time.Millisecond
	w.core.cancel(a, w.now)
	w.settle()
	if b.waiting || b.granted != 1 {
		t.Fatal("b still waits behind a cancelled request")
	}
}

func TestB2_CancelInAParkedPrincipalServesItsNext(t *testing.T) {
	w := newWorld(t, Limit{}, Limit{10 << 20})
	first, second := w.open("a"), w.open("a")
	for w.ask(first, 1<<30) {
		continue
	}
	w.ask(second, 1)
	w.now += time.Millisecond
	w.core.cancel(first, w.now)
	w.settle()
	if second.waiting || second.granted != 1 {
		t.Fatal("the next stream of the principal still waits for the cancelled quantum")
	}
}

// Nobody is charged for a time before it asked, however long the tokens had been there.
func TestB1_ChargeIsNeverBeforeTheAsking(t *testing.T) {
	w := newWorld(t, Limit{1_250_000_000}, Limit{})
	head, next := w.open("a"), w.open("b")
	w.ask(head, 1000)
	w.now += 100 * time.Microsecond
	for w.ask(head, 1<<30) {
		continue
	}
	w.now += 100 * time.Microsecond
	asked := w.now
	w.ask(next, 1)
	w.now += 100 * time.Microsecond
	w.core.cancel(head, w.now)
	w.settle()
	if last := w.trace[len(w.trace)-1]; last.principal != "b" || last.shared < asked {
		t.Fatalf("asked at %v: %+v", asked, last)
	}
}

// A principal that was forgotten gets no burst out of a raised limit that one with an open stream would not get.
func TestB1_RaisedLimitFillsByTime(t *testing.T) {
	w := newWorld(t, Limit{}, Limit{MinBytesPerSecond})
	s := w.open("a")
	w.ask(s, 1<<30)
	w.core.shut(s, w.now)
	w.now += time.Second
	w.core.sweep(1, w.now)
	if len(w.core.known) != 0 {
		t.Fatal("the principal is still known")
	}
	w.configure(Limit{}, Limit{10 << 20})
	s = w.open("a")
	if w.ask(s, 1<<20) {
		t.Fatalf("%d bytes at the moment the limit was raised", s.granted)
	}
	w.fire(0)
	w.now += 100 * time.Millisecond
	fresh := w.open("b")
	if !w.ask(fresh, 1<<20) {
		t.Fatal("a newcomer has no burst after the time that fills one")
	}
}

func TestB3_NothingIsGivenBack(t *testing.T) {
	w := newWorld(t, Limit{1 << 20}, Limit{})
	s := w.open("a")
	w.ask(s, 1000)
	level := w.core.total.bucket.level
	w.core.cancel(s, w.now)
	w.core.shut(s, w.now)
	w.settle()
	if w.core.total.bucket.level != level || w.core.granted != 1000 {
		t.Fatalf("level %d after cancelling, %d before", w.core.total.bucket.level, level)
	}
	again := w.open("a")
	w.ask(again, 1000)
	if w.core.granted != 2000 {
		t.Fatalf("repeated bytes: granted %d, want 2000", w.core.granted)
	}
}

// From a bucket that has been full for MaxLateness the releases keep the plain bound even where charges may lag.
func TestB1_FastBucketKeepsThePlainBoundFromFull(t *testing.T) {
	limit := Limit{1_250_000_000}
	w := newWorld(t, limit, Limit{})
	s := w.open("a")
	for round := range 20 {
		w.now += 10 * time.Millisecond
		start, before := w.now, w.core.granted
		for range 50 {
			for !s.waiting {
				w.ask(s, 1<<30)
				used := int64(w.core.granted - before)
				if allowed := int64(w.now-start)*5/4 + limit.Burst(); used > allowed {
					t.Fatalf("round %d: %d released, %d allowed", round, used, allowed)
				}
			}
			w.fire(time.Duration(round) * MaxLateness / 20)
		}
		w.core.cancel(s, w.now)
		w.settle()
	}
	if w.core.total.lag == 0 && w.trace[len(w.trace)-1].shared == w.trace[len(w.trace)-1].released {
		t.Fatal("no charge lagged: the test did not reach its case")
	}
}

func TestL3_ReopeningGivesNoFreshBucket(t *testing.T) {
	perPrincipal := Limit{1 << 20}
	w := newWorld(t, Limit{}, perPrincipal)
	var got int64
	for w.now < 2*time.Second {
		s := w.open("greedy")
		if w.ask(s, 1<<30) {
			got += s.granted
		}
		w.core.shut(s, w.now)
		w.settle()
		w.now += 100 * time.Microsecond
	}
	if limit := 2*perPrincipal.BytesPerSecond + perPrincipal.Burst(); got > limit || got < limit*9/10 {
		t.Fatalf("%d bytes by reopening, the limit is %d", got, limit)
	}
}

func TestL3_PrincipalsAreForgottenWithoutTimers(t *testing.T) {
	w := newWorld(t, Limit{}, Limit{1 << 20})
	most := 0
	for i := range 20_000 {
		s := &Stream{}
		w.core.open(s, fmt.Sprint(i))
		w.core.ask(s, 1<<30, w.now)
		w.core.answered = nil
		w.core.shut(s, w.now)
		most = max(most, len(w.core.known))
		w.now += time.Millisecond
	}
	// A quantum of 16 ms is refilled after 16 ms, in which 16 principals come.
	if most > 20 {
		t.Fatalf("up to %d principals remembered", most)
	}
	w.now += time.Second
	w.core.sweep(sweepBatch, w.now)
	w.core.sweep(1<<30, w.now)
	if len(w.core.known) != 0 || w.core.idle.head != nil {
		t.Fatalf("%d principals left", len(w.core.known))
	}
}
