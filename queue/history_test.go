package queue

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A history is a policy and events of plain numbers. What a number means depends on the state it meets (the third of
// the running responses, say), so any part of a history is a history too: that is what makes failures shrink.
type history struct {
	policy uint64
	events []event
}

type event struct {
	kind     eventKind
	wait     uint8 // time before it
	who      uint8 // key, response or waiter
	x, y     uint8 // what is special about it
	policyTo uint64
}

type eventKind uint8

const (
	evAsk eventKind = iota
	evHold
	evProgress
	evFinish
	evAbandon
	evWithdraw
	evDepart
	evLeave
	evTick
	evConfigure
	evDrain
	evGrace
	evShuffle
	evWindows
	evAct
	evGate
	eventKinds
)

var eventNames = [eventKinds]string{"ask", "hold", "progress", "finish", "abandon", "withdraw", "depart", "leave", "tick", "configure", "drain", "grace", "shuffle", "windows", "act", "gate"}

// eventWeights say how often each kind comes, of their sum.
var eventWeights = [eventKinds]int{70, 34, 18, 34, 6, 6, 8, 5, 44, 8, 1, 3, 1, 1, 6, 2}

func (h history) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %#x = %+v\n", h.policy, policyOf(h.policy))
	var now time.Duration
	for i, e := range h.events {
		now += e.pause()
		fmt.Fprintf(&b, "%3d %v %s", i, now, eventNames[e.kind])
		switch e.kind {
		case evAsk, evHold:
			a := askFrom(e, now)
			fmt.Fprintf(&b, " %v %v protocol=%v size=%d validator=%s range=%v", a.Key, a.Class, a.Protocol, a.SizeBytes, a.Validator, a.Range)
			if a.Ticketed {
				fmt.Fprintf(&b, " ticket=%v", a.Arrival)
			}
			if a.Bundle {
				fmt.Fprintf(&b, " bundle, member %d", a.Member)
			}
			if a.Peek {
				b.WriteString(" peek")
			}
		case evConfigure:
			fmt.Fprintf(&b, " %+v", policyOf(e.policyTo))
		case evAct:
			fmt.Fprintf(&b, " %v %v %v", askFrom(e, now).Key, actionFrom(e).Kind, actionFrom(e).Class)
		case evWindows:
			fmt.Fprintf(&b, " %+v", planFrom(e, now))
		default:
			fmt.Fprintf(&b, " who=%d x=%d y=%d", e.who, e.x, e.y)
		}
		b.WriteByte('\n')
		now += time.Duration(e.ticks()) * TickEvery
	}
	fmt.Fprintf(&b, "replay: history{%#x, []event{", h.policy)
	for _, e := range h.events {
		fmt.Fprintf(&b, "{%d, %d, %d, %d, %d, %#x}, ", e.kind, e.wait, e.who, e.x, e.y, e.policyTo)
	}
	b.WriteString("}}")
	return b.String()
}

// number draws from 0..n-1; the mass run draws from a seeded generator, rapid from its own.
type number func(n int) int

func (draw number) bits() uint64 {
	return uint64(draw(1<<16)) | uint64(draw(1<<16))<<16 | uint64(draw(1<<16))<<32
}

func (draw number) event() event {
	sum := 0
	for _, w := range eventWeights {
		sum += w
	}
	at, kind := draw(sum), eventKind(0)
	for at >= eventWeights[kind] {
		at -= eventWeights[kind]
		kind++
	}
	e := event{kind: kind, wait: uint8(draw(256)), who: uint8(draw(256)), x: uint8(draw(256)), y: uint8(draw(256))}
	if kind == evConfigure {
		e.policyTo = draw.bits()
	}
	return e
}

// randomHistory is history number i of a seed.
func randomHistory(seed, i uint64) history {
	rng := rand.New(rand.NewPCG(seed, i))
	draw := number(rng.IntN)
	h := history{policy: draw.bits() &^ 7, events: make([]event, 20+rng.IntN(21))} // it begins ordered, or below
	if strategy := rng.IntN(4); strategy < 3 {
		h.policy |= uint64([3]int{0, 5, 6}[strategy])
	}
	for j := range h.events {
		h.events[j] = draw.event()
		switch e := &h.events[j]; i % 4 {
		case 0:
			if i%8 == 0 {
				e.ofOperator(draw)
			}
		case 1:
			e.afterRestart(draw, j == 0)
		case 2:
			e.ofBundles(draw)
		case 3:
			e.ofWindows(draw)
		}
	}
	return h
}

// afterRestart makes an event one of a time in which most clients bring tickets.
func (e *event) afterRestart(draw number, first bool) {
	if first {
		e.kind, e.x, e.y = evGrace, e.x%4, 31
	}
	if (e.kind == evAsk || e.kind == evHold) && draw(4) > 0 {
		e.x = 8 // a ticket
	}
	if draw(4) > 0 {
		e.wait %= 11 // little time
	}
}

// ofBundles makes an event one of few clients that fetch several objects each, mostly whole.
func (e *event) ofBundles(draw number) {
	switch e.kind {
	case evAsk, evHold:
		if draw(4) > 0 {
			e.who, e.y = 20+e.who%4, e.y&^8
		}
	case evFinish:
		if draw(4) > 0 {
			e.x, e.y = e.x|1, e.y&^7
		}
	case evGrace, evDrain, evConfigure:
		e.kind = evTick
	}
	if draw(4) > 0 {
		e.wait %= 11
	}
}

// policyOf turns bits into a valid policy of few slots and short times.
func policyOf(bits uint64) Policy {
	take := func(n uint64) int {
		v := bits % n
		bits /= n
		return int(v)
	}
	strategies := [8]Strategy{Ordered, Ordered, Ordered, Ordered, Shared, SmallestFirst, FairSojourn, Ordered}
	p := Policy{Strategy: strategies[take(8)], Sessions: 1 + take(4)}
	p.Reserve = min(take(3), p.Sessions-1)
	p.PerPrincipal = min(1+take(3), p.Sessions)
	p.Weights = [4][Classes]int{{8, 4, 2, 1}, {1, 1, 1, 1}, {3, 5, 1, 7}, {1, 9, 2, 100}}[take(4)]
	p.SessionMinBytes = [4]int64{0, 0, 0, 95}[take(4)]
	p.IdleFor = [4]time.Duration{time.Second, 10 * time.Second, 30 * time.Second, 90 * time.Second}[take(4)]
	p.AgingEvery = [4]time.Duration{0, 15 * time.Minute, time.Minute, 7 * time.Second}[take(4)]
	p.RangesPerSession = [4]int{1, 2, 4, 64}[take(4)]
	p.QueueLimit = p.Sessions + [4]int{2, 4, 10, 1000}[take(4)]
	p.QueuePerPrincipal = [4]int{2, 3, 6, 6}[take(4)]
	p.QueuePerPrincipal = min(p.QueuePerPrincipal, p.QueueLimit)
	p.Preempt = take(2) == 1
	p.SessionsElastic = [4]int{0, p.Sessions, p.Sessions, p.Sessions + 2}[take(4)]
	p.BandBytesPerSecond = [4]int64{0, 0, 0, 50}[take(4)]
	if mode := take(16); mode < 8 {
		p.Mode = [8]Mode{ModeQueueAll, ModePassThrough, ModeRejectNew, ModeRejectNew, ModeDryRun, ModeDryRun, ModeNormal, ModeNormal}[mode]
	}
	return p
}

// pause is the time before the event: often none, seldom minutes.
func (e event) pause() time.Duration {
	steps := [16]time.Duration{
		0, 0, 0, time.Millisecond, 7 * time.Millisecond, 100 * time.Millisecond, 333 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2500 * time.Millisecond, 6 * time.Second, 9 * time.Second, 17 * time.Second, 31 * time.Second, 62 * time.Second,
	}
	step := steps[e.wait%16]
	if step == 62*time.Second && e.wait>>4 == 0 {
		step = 11 * time.Minute
	}
	return step
}

// ticks is how many ticks a tick event makes: mostly one, sometimes enough for the grace of shares.
func (e event) ticks() int {
	switch {
	case e.kind != evTick:
		return 0
	case e.x%16 == 0:
		return 25
	case e.x%4 == 1:
		return 4
	}
	return 1
}

// askFrom makes a request: four principals, three objects and two clients of each; a class, size and kind of client that
// mostly stay the same for a key. A quarter of the keys are bundles of up to five objects.
func askFrom(e event, now time.Duration) Ask {
	principal, object, client := int(e.who)%4, int(e.who)/4%3, int(e.who)/12%2
	sizes := [8]int64{60, 90, 97, 150, 151, 300, 407, 640}
	a := Ask{
		Key:       Key{Principal: string(rune('p' + principal)), Object: string(rune('a' + object)), Client: string(rune('0' + client))},
		Class:     Class((principal + object) % Classes),
		Protocol:  (object+client)%2 == 0,
		SizeBytes: sizes[(principal*3+object*5+client)%len(sizes)],
		Validator: `"1"`,
	}
	if object == 2 && client == 1 || object == 1 && client == 0 && principal%2 == 0 {
		a.Bundle, a.Member = true, uint64(e.y>>4)%5
		a.SizeBytes = sizes[(principal*3+int(a.Member)*5)%len(sizes)]
	}
	switch e.x % 32 {
	case 1, 2:
		a.Class = Class(e.y % Classes)
	case 3:
		a.SizeBytes = sizes[e.y%8]
	case 4:
		a.SizeBytes = -1
	case 5:
		a.Validator = `"2"`
	case 6:
		a.Validator = ""
	case 7:
		a.Protocol = !a.Protocol
	case 8, 9:
		a.Ticketed, a.Arrival = true, now-time.Duration(e.y)*time.Second
	case 10, 11, 12:
		a.Peek = true
	case 13:
		a.Bundle = !a.Bundle
	}
	a.Range = rangeFrom(e.y, a.SizeBytes)
	return a
}

func rangeFrom(y uint8, size int64) RangeAsk {
	half := size / 2
	switch y % 16 {
	case 8:
		return OpenFrom(half)
	case 9, 10:
		return Bounded(0, half-1)
	case 11:
		return Bounded(half, size-1)
	case 12:
		return Bounded(half, size-2)
	case 13:
		return Suffix(10)
	case 14:
		return Suffix(size)
	case 15:
		return RangeAsk{Kind: RangeMulti}
	}
	return RangeAsk{}
}

// delivered is what a response of that range delivers when it is sent to its end.
func delivered(asked RangeAsk, size int64) (first, end int64) {
	switch asked.Kind {
	case RangeOpen:
		return asked.First, size
	case RangeBounded:
		return asked.First, asked.Last + 1
	case RangeSuffix:
		return max(0, size-asked.Last), size
	}
	return 0, size
}

// shrink drops events from a failing history as long as it fails. It returns the shortest it finds.
func shrink(h history, fails func(history) error) (history, error) {
	err := fails(h)
	for chunk := max(1, len(h.events)/2); chunk > 0; {
		shorter := false
		for at := 0; at+chunk <= len(h.events); {
			try := history{h.policy, append(append([]event(nil), h.events[:at]...), h.events[at+chunk:]...)}
			if failure := fails(try); failure != nil {
				h, err, shorter = try, failure, true
				continue
			}
			at += chunk
		}
		if !shorter || chunk > len(h.events) {
			chunk /= 2
		}
	}
	return simplify(h, err, fails)
}

// simplify zeroes numbers of a failing history that do not matter.
func simplify(h history, err error, fails func(history) error) (history, error) {
	for i := range h.events {
		for _, field := range []func(*event){
			func(e *event) { e.wait = 0 }, func(e *event) { e.x = 255 }, func(e *event) { e.y = 0 },
			func(e *event) { e.x, e.y = 255, 0 }, func(e *event) { e.wait = 7 },
		} {
			try := history{h.policy, append([]event(nil), h.events...)}
			field(&try.events[i])
			if failure := fails(try); failure != nil {
				h, err = try, failure
			}
		}
	}
	return h, err
}
