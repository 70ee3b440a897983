package control

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// fataler is what the world needs of a test: *testing.T and *rapid.T have it.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

var (
	errRefused = errors.New("connection refused")
	errTimeout = errors.New("timeout")
)

// origin is one address of the simulated network.
type origin struct {
	up       bool
	hole     bool          // swallows connects: they time out
	stopped  bool          // accepts and never answers
	idleLife time.Duration // closes unused connections, 0: never
	oneShot  bool          // Connection: close
	fails    float64       // share of exchanges that it breaks
	healed   time.Duration // when it last was made healthy
}

// conn is the shell's side of a writer.
type conn struct {
	id       WriterID
	endpoint EndpointID
	addr     netip.AddrPort
	open     bool
	promoted bool
	demoted  bool
	bound    *exchange
	since    time.Duration // unused since
}

// exchange is one request.
type exchange struct {
	number  int
	length  time.Duration
	began   time.Duration
	asked   time.Duration
	conn    *conn
	breaks  int
	waiting bool
}

type happening struct {
	at   time.Duration
	turn int
	do   func()
}

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].turn < a[j].turn
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any     { old := *a; x := old[len(old)-1]; *a = old[:len(old)-1]; return x }

// world is a naive shell with a network in virtual time: it carries commands out late and out of order, loses nothing and never sleeps.
type world struct {
	t       fataler
	c       *Control
	set     Settings
	rng     *rand.Rand
	now     time.Duration
	turn    int
	agenda  agenda
	jitter  time.Duration // longest delay of a command or report, 0: at once
	rtt     time.Duration
	origins map[netip.AddrPort]*origin
	names   []func() Resolved // by group
	conns   map[WriterID]*conn
	peak    map[EndpointID]int
	waiting []*exchange
	bound   int
	number  int
	want    int
	stopped bool

	done, breaks, cut int
	latest            time.Duration // longest wait for a writer
	dialTimes         []time.Duration
	commands          [dos]int
	lastCommand       time.Duration // that was no probe or resolution
	log               []Command
	view              View
	lastOf            map[WriterID]time.Duration // earliest time of the next command of a writer
	instant           time.Duration
	gates             int // activations that checkGate looked at
	atOnce            int // events at one instant
}

func newWorld(t fataler, seed uint64, set Settings, groups ...Group) *world {
	t.Helper()
	if len(groups) == 0 {
		groups = []Group{{Name: "origin"}}
	}
	w := &world{t: t, set: set, rng: rand.New(rand.NewPCG(seed, 1)), origins: map[netip.AddrPort]*origin{}, conns: map[WriterID]*conn{}, peak: map[EndpointID]int{},
		rtt: 5 * time.Millisecond, lastOf: map[WriterID]time.Duration{}}
	c, err := New(groups, set, w.rng.Float64)
	if err != nil {
		t.Fatalf("%v", err)
	}
	w.c, w.view = c, *c.View()
	w.names = make([]func() Resolved, len(groups))
	for i := range groups {
		w.name(i)
	}
	w.every(500*time.Millisecond, w.tick)
	return w
}

// at is the address number i of the network, v6 the same in the other family.
func at(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 80)
}
func v6(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(i >> 8), 15: byte(i)}), 80)
}

// name lets a group's name have the given addresses; their origins are brought up when they are new.
func (w *world) name(group int, addrs ...netip.AddrPort) {
	for _, a := range addrs {
		if w.origins[a] == nil {
			w.origins[a] = &origin{up: true}
		}
	}
	w.names[group] = func() Resolved { return Resolved{Group: GroupID(group), Addrs: slices.Clone(addrs)} }
}

func (w *world) badName(group int, answer Answer) {
	w.names[group] = func() Resolved { return Resolved{Group: GroupID(group), Answer: answer, Cause: "no answer"} }
}

func (w *world) in(d time.Duration, do func()) {
	w.turn++
	heap.Push(&w.agenda, happening{w.now + d, w.turn, do})
}

func (w *world) every(d time.Duration, do func()) {
	w.in(d, func() { do(); w.every(d, do) })
}

func (w *world) delay() time.Duration {
	if w.jitter == 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(w.jitter)))
}

// run lets virtual time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	end := w.now + d
	for {
		at, ticks := w.c.Next()
		if ticks && at <= end && (len(w.agenda) == 0 || at < w.agenda[0].at) {
			w.now = max(w.now, at)
			w.step(Tick{})
			continue
		}
		if len(w.agenda) == 0 || w.agenda[0].at > end {
			break
		}
		h := heap.Pop(&w.agenda).(happening)
		w.now = max(w.now, h.at)
		h.do()
	}
	w.now = end
}

// until lets time pass until a condition holds, and fails the test when it does not within d.
func (w *world) until(d time.Duration, what string, ok func() bool) time.Duration {
	w.t.Helper()
	begin := w.now
	for w.now < begin+d {
		if ok() {
			return w.now - begin
		}
		w.run(max(10*time.Millisecond, d/1000))
	}
	if !ok() {
		w.t.Fatalf("at %v: not within %v: %s\n%s", w.now, d, what, w.dump())
	}
	return w.now - begin
}

// step feeds an event, checks everything that must hold after each, and carries the commands out.
func (w *world) step(e Event) {
	w.t.Helper()
	if w.atOnce++; w.now != w.instant {
		w.instant, w.atOnce = w.now, 0
	} else if w.atOnce > 20000 {
		w.t.Fatalf("at %v: events without end, last %T\n%s", w.now, e, w.dump())
	}
	var before *Snapshot
	if w.c.warming != nil {
		s := w.c.Snapshot()
		before = &s
	}
	cmds := slices.Clone(w.c.Step(w.now, e))
	w.checkGate(before, cmds)
	for _, cmd := range cmds {
		w.commands[cmd.Do]++
		w.log = append(w.log, cmd)
		switch cmd.Do {
		case DoDial:
			w.dialTimes = append(w.dialTimes, w.now)
			w.lastCommand = w.now
		case DoProbe, DoResolve, DoActivate, DoRetire:
		default:
			w.lastCommand = w.now
		}
		w.later(cmd)
	}
	if err := w.c.CheckInvariants(); err != nil {
		w.t.Fatalf("at %v after %T %+v: %v\n%s", w.now, e, e, err, w.dump())
	}
	w.checkRevision()
}

// later carries a command out after a random delay; those of one writer stay in order.
func (w *world) later(cmd Command) {
	d := w.now + w.delay()
	if cmd.Writer != 0 {
		d = max(d, w.lastOf[cmd.Writer])
		w.lastOf[cmd.Writer] = d
	}
	if d == w.now {
		w.carryOut(cmd)
		return
	}
	w.in(d-w.now, func() { w.carryOut(cmd) })
}

func (w *world) carryOut(cmd Command) {
	switch cmd.Do {
	case DoResolve:
		w.in(w.rtt+w.delay(), func() { w.step(w.names[cmd.Group]()) })
	case DoDial:
		w.connect(cmd)
	case DoPromote:
		if n := w.conns[cmd.Writer]; n != nil && n.open {
			n.promoted = true
			w.serve()
		}
	case DoDemote:
		if n := w.conns[cmd.Writer]; n != nil {
			n.demoted = true
		}
		w.in(w.delay(), w.report)
	case DoClose:
		w.closeNow(cmd.Writer)
	case DoProbe:
		o := w.origins[cmd.Addr]
		d := w.rtt + w.delay()
		if o.stopped || cmd.Anew && o.hole {
			d = 5 * time.Second
		}
		w.in(d, func() {
			var err error
			if !o.up || cmd.Anew && o.hole {
				err = errRefused
			} else if o.stopped {
				err = errTimeout
			} else if w.rng.Float64() < o.fails {
				err = errors.New("broken")
			}
			w.step(ProbeDone{Endpoint: cmd.Endpoint, Err: err})
		})
	}
}

func (w *world) endpoint(a netip.AddrPort) EndpointStatus {
	for _, g := range w.c.Snapshot().Groups {
		for _, e := range g.Endpoints {
			if e.Addr == a {
				return e
			}
		}
	}
	return EndpointStatus{}
}

func (w *world) group(i int) GroupStatus { return w.c.Snapshot().Groups[i] }

// dialsIn counts dials in a span of time.
func (w *world) dialsIn(from, to time.Duration) int {
	n := 0
	for _, at := range w.dialTimes {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

func (w *world) dump() string {
	s := w.c.Snapshot()
	out := fmt.Sprintf("covered %v (%v) fallback %v open %d: %d dialing %d warm %d active %d draining; %d waiting, %d bound\n", s.Covered, s.Why, s.Fallback, s.Open, s.Dialing,
		s.Warm, s.Active, s.Draining, len(w.waiting), w.bound)
	for _, g := range s.Groups {
		out += fmt.Sprintf("  group %s %v generation %d pending %v problem %q want %d\n", g.Name, g.Why, g.Generation, g.Pending, g.Problem, g.Want)
		for _, gen := range g.Generations {
			out += fmt.Sprintf("    generation %d %v %v have %d need %d writers %d age %v\n", gen.ID, gen.State, gen.Reason, gen.Have, gen.Need, gen.Writers, gen.Age)
		}
		for _, e := range g.Endpoints {
			out += fmt.Sprintf("    endpoint %d %v %v current %v target %d+%d dialing %d warm %d active %d draining %d shadows %d failures %d rests %d weight %d retry %v out %d\n", e.ID, e.Addr,
				e.Health, e.Current, e.Target, e.Lent, e.Dialing, e.Warm, e.Active, e.Draining, e.Shadows, e.Failures, e.Rests, e.Weight, e.Retry, e.Outstanding)
		}
	}
	return out
}

// settled reports whether every endpoint of every active generation stands at its floor and nothing is under way.
func (w *world) settled() bool {
	s := w.c.Snapshot()
	if !s.Covered || s.Dialing > 0 || s.Draining > 0 {
		return false
	}
	for _, g := range s.Groups {
		if g.Generation == 0 && g.Why != CauseOff || len(g.Generations) > 1 || g.Pending {
			return false
		}
		for _, e := range g.Endpoints {
			if e.Current && (e.Active < e.Target || e.Health != Healthy) {
				return false
			}
		}
	}
	return true
}

func start(t *testing.T, set Settings, addrs ...netip.AddrPort) *world {
	t.Helper()
	w := newWorld(t, 1, set)
	w.name(0, addrs...)
	w.step(Tick{})
	w.until(time.Minute, "the pool settles", w.settled)
	return w
}
