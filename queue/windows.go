package queue

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// WholeShare is the share of a class whose window is open, in per mille.
const WholeShare = 1000

// MaxWindowEdges bounds the edges of a plan, of all classes together.
const MaxWindowEdges = 256

// OpeningShuffle is the time from an opening on in which newcomers of the class get an arrival drawn evenly, see Shuffle.
const OpeningShuffle = 15 * time.Second

// WindowEdge is a moment at which the share of a class changes.
type WindowEdge struct {
	At    time.Duration // on the clock of now
	Class Class
	Share int    // from then on, 0..WholeShare
	Seed  uint64 // of the shuffle at an opening; the same in every process that shares the clients
}

// WindowPlan is what the core knows of the classes' windows: their shares now and the changes to come. After the last edge the last shares stay. The
// zero value shuts every class; OpenPlan opens all.
type WindowPlan struct {
	Shares [Classes]int // now, per mille: WholeShare = open, 0 = nobody starts
	Edges  []WindowEdge // by time, at most MaxWindowEdges
}

// OpenPlan returns the plan of a queue without windows.
func OpenPlan() WindowPlan {
	return WindowPlan{Shares: [Classes]int{WholeShare, WholeShare, WholeShare, WholeShare}}
}

// Validate returns the first fault of the plan; nil when it can be used.
func (p WindowPlan) Validate() error {
	for c, share := range p.Shares {
		if share < 0 || share > WholeShare {
			return fmt.Errorf("cannot use the window plan: the share of %s is %d, it must be 0..%d per mille", Class(c), share, WholeShare)
		}
	}
	if len(p.Edges) > MaxWindowEdges {
		return fmt.Errorf("cannot use the window plan: it has %d edges, at most %d are kept", len(p.Edges), MaxWindowEdges)
	}
	for i, e := range p.Edges {
		if e.Class >= Classes || e.Share < 0 || e.Share > WholeShare || i > 0 && e.At < p.Edges[i-1].At {
			return fmt.Errorf("cannot use the window plan: edge %d (class %d, share %d, at %s) is not one of a class, 0..%d per mille, not before the edge ahead of it",
				i, uint8(e.Class), e.Share, e.At, WholeShare)
		}
	}
	return nil
}

// Equal reports whether two plans are the same.
func (p WindowPlan) Equal(q WindowPlan) bool {
	return p.Shares == q.Shares && slices.Equal(p.Edges, q.Edges)
}

// WindowState is the window of one class at one moment.
type WindowState struct {
	Share     int           // per mille; WholeShare = open
	Outside   int           // active sessions that started while the share was not whole
	Changes   bool          // an edge is known
	ChangesAt time.Duration // when the share changes next, on the clock of now; 0 when no edge is known
}

// gap is a time in which a class was shut.
type gap struct{ from, to time.Duration }

const (
	gapsKept = 8 // of a class, for the judgement of promises that reach over them
	noGroup  = 0 // of a class that is not shut: it stands in the order
)

// calendar is the plan in force. bars, group and some follow from the rest, see rebar and regroup.
type calendar struct {
	share   [Classes]int
	edges   []WindowEdge  // those to come
	next    time.Duration // the first of them, never when there is none
	opened  [Classes]time.Duration
	shutAt  [Classes]time.Duration // start of the present gap
	outside [Classes]int           // active sessions that started outside
	bars    [Classes]bool          // nobody of the class may start now: shut, or as many as its share allows run
	group   [Classes]uint8         // place among the shut classes by when they open, from 1; noGroup = not shut
	gaps    [Classes][gapsKept]gap
	gapNext [Classes]int
	some    bool // a share is not whole, or changes
	turned  bool // shares changed since the last tick

	expects  bool // see ExpectArrival
	expected time.Duration
}

func newCalendar() calendar { return calendar{share: OpenPlan().Shares, next: never} }

// restricted reports whether the class is outside its window, shut or with a share.
func (c *calendar) restricted(class Class) bool { return c.share[class] < WholeShare }

// SetWindows puts another plan of windows in force from now on; edges that are over are carried out at once. A plan that only lacks edges that are over
// changes nothing. Sessions with slots keep them. On an error nothing changed. O(n) of the waiting sessions when a share changes, as at each edge.
func (s *Scheduler) SetWindows(now time.Duration, plan WindowPlan) error {
	if err := plan.Validate(); err != nil {
		return err
	}
	now = s.advance(now)
	c := &s.calendar
	if plan.Equal(WindowPlan{c.share, c.edges}) {
		return nil
	}
	c.edges = slices.Clone(plan.Edges)
	for i := range c.edges {
		c.edges[i].At = max(c.edges[i].At, now) // what is over happens now: ages count from it
	}
	s.setShares(now, plan.Shares)
	s.turnWindows()
	return nil
}

// turnWindows carries out the edges that have come. It is called by advance, so that no event sees a window that is over.
func (s *Scheduler) turnWindows() {
	c := &s.calendar
	for len(c.edges) > 0 && c.edges[0].At <= s.now {
		at, shares := c.edges[0].At, c.share
		for len(c.edges) > 0 && c.edges[0].At == at {
			e := c.edges[0]
			c.edges = c.edges[1:]
			if e.Share == WholeShare && shares[e.Class] < WholeShare {
				s.shuffles[e.Class] = shuffle{at, at + OpeningShuffle, e.Seed}
			}
			shares[e.Class] = e.Share
		}
		s.setShares(at, shares)
	}
	s.regroup()
}

// setShares changes shares at a moment that is not after now.
func (s *Scheduler) setShares(at time.Duration, shares [Classes]int) {
	c := &s.calendar
	if shares == c.share {
		return
	}
	var closes [Classes]bool
	for class, share := range shares {
		was := c.share[class]
		closes[class] = was == WholeShare && share < WholeShare
		switch {
		case was > 0 && share == 0:
			c.shutAt[class] = at
		case was == 0 && share > 0:
			c.gaps[class][c.gapNext[class]] = gap{c.shutAt[class], at}
			c.gapNext[class] = (c.gapNext[class] + 1) % gapsKept
		}
	}
	for ses := range s.waiting.all {
		if closes[ses.class] {
			ses.hasWaited(s.aged(at, ses)) // what it has waited outside will not count
		}
	}
	for class, share := range shares {
		if share == WholeShare && c.share[class] < WholeShare {
			c.opened[class] = at
		}
	}
	c.share = shares
	s.regroup()
	s.rebar()
	for ses := range s.waiting.all {
		s.lift(at, ses)
		s.plan(ses)
	}
	c.turned, s.model.made = true, false
	s.moves.Windows++
	s.activeChanges++
	s.slotChanges++
	s.orderChanges++
}

// settleWindows ends, on a tick, the choices to yield that changed shares made void. An edge itself answers nobody: it may be carried out by a call that no log
// of calls holds.
func (s *Scheduler) settleWindows() {
	if !s.calendar.turned {
		return
	}
	s.calendar.turned = false
	for _, ses := range s.active {
		s.keepYielding(ses)
		s.settleActive(ses)
	}
}

// aged is the part of a session's present wait that aging counts: none of it while the class is outside its window.
func (s *Scheduler) aged(now time.Duration, ses *session) time.Duration {
	if s.calendar.restricted(ses.class) {
		return 0
	}
	return max(0, now-max(ses.since, s.calendar.opened[ses.class]))
}

// agesFrom is when the present wait of a session would have begun if it had waited all that aging counts at a stretch.
func (s *Scheduler) agesFrom(ses *session) time.Duration {
	return max(ses.since, s.calendar.opened[ses.class]) - ses.waited()
}

// liftable returns the class nearest to the wanted one, not above it, in which a session of an open class may stand: nobody stands among those of a class
// outside its window.
func (c *calendar) liftable(class, wanted Class) Class {
	if c.restricted(class) {
		return class
	}
	for wanted < class && c.restricted(wanted) {
		wanted++
	}
	return wanted
}

// nextLift returns when aging lifts a waiting session next, never when it does not.
func (s *Scheduler) nextLift(ses *session) time.Duration {
	every := s.policy.AgingEvery
	if every == 0 || ses.moved || s.calendar.restricted(ses.class) {
		return never
	}
	for to := int(ses.lifted) - 1; to >= int(Release); to-- {
		if !s.calendar.restricted(Class(to)) {
			return s.agesFrom(ses) + time.Duration(int(ses.class)-to)*every
		}
	}
	return never
}

// most is how many active sessions a class outside its window may start.
func (s *Scheduler) most(class int) int {
	return (s.calendar.share[class]*s.slots() + WholeShare - 1) / WholeShare
}

// rebar finds the classes of which nobody may start, after shares, slots or active sessions changed. A class that may start again takes its place between the
// classes as one that becomes non-empty: the time it could not use earns nothing.
func (s *Scheduler) rebar() {
	c := &s.calendar
	if !c.some && c.bars == [Classes]bool{} {
		return
	}
	for class := range c.bars {
		bars := c.share[class] < WholeShare && (c.share[class] == 0 || c.outside[class] >= s.most(class))
		if c.bars[class] && !bars {
			s.lines[class].pass = max(s.lines[class].pass, s.lastPass)
		}
		c.bars[class] = bars
	}
}

// regroup orders the shut classes by when they open; those that open together stand together, those that never do last.
func (s *Scheduler) regroup() {
	c := &s.calendar
	c.next = never
	if len(c.edges) > 0 {
		c.next = c.edges[0].At
	}
	c.some = c.share != OpenPlan().Shares || len(c.edges) > 0
	var opens [Classes]time.Duration
	c.group = [Classes]uint8{}
	for class := range opens {
		opens[class] = c.opensAt(Class(class))
	}
	for class, at := range opens {
		if c.share[class] > 0 {
			continue
		}
		c.group[class] = 1
		for other, earlier := range opens {
			if c.share[other] == 0 && earlier < at {
				c.group[class]++
			}
		}
	}
}

// opensAt returns when a shut class may start somebody again, never when no edge says so.
func (c *calendar) opensAt(class Class) time.Duration {
	for i := range c.edges {
		if e := &c.edges[i]; e.Class == class && e.Share > 0 {
			return e.At
		}
	}
	return never
}

// contenders counts the waiting sessions of classes that may start somebody now.
func (s *Scheduler) contenders(onlyInteractive bool) (n int) {
	if !s.calendar.some && !onlyInteractive {
		return s.waiting.count
	}
	for class := range s.lines {
		if !s.calendar.bars[class] && (!onlyInteractive || class == int(Interactive)) {
			n += s.lines[class].count
		}
	}
	return n
}

// barredBefore counts, of the sessions ahead of a waiting one, those of classes that have all that their share allows: they do not stand before it at the
// moment of a grant. Those of shut classes are not counted as ahead at all.
func (s *Scheduler) barredBefore(ses *session, onlyInteractive bool) (n int) {
	if !s.calendar.some {
		return 0
	}
	rank, _ := s.rankInLine(ses)
	for class := range s.lines {
		if s.calendar.bars[class] && (!onlyInteractive || class == int(Interactive)) {
			n += s.before(class, int(ses.lifted), rank)
		}
	}
	return n
}

// begins notes that a session takes a slot, ends that it gives it back.
func (c *calendar) begins(ses *session) {
	if ses.stay.outside = c.restricted(ses.class); ses.stay.outside {
		c.outside[ses.class]++
	}
}

func (c *calendar) ends(ses *session) {
	if ses.stay.outside {
		ses.stay.outside = false
		c.outside[ses.class]--
	}
}

// state is the window of a class.
func (c *calendar) state(class Class) WindowState {
	w := WindowState{Share: c.share[class], Outside: c.outside[class]}
	if i := slices.IndexFunc(c.edges, func(e WindowEdge) bool { return e.Class == class && e.Share != c.share[class] }); i >= 0 {
		w.Changes, w.ChangesAt = true, c.edges[i].At
	}
	return w
}

// ExpectArrival is for a replay, which knows keys by their hashes only: until it is called again, an arrival that is drawn at the opening of a
// window is that one, unless it lies outside the time that it is drawn from.
func (s *Scheduler) ExpectArrival(at time.Duration) {
	s.calendar.expected, s.calendar.expects = at, true
}

// drawArrival returns the place in time of a newcomer.
func (s *Scheduler) drawArrival(now time.Duration, a *Ask) time.Duration {
	f := &s.shuffles[a.Class]
	if at := s.calendar.expected; s.calendar.expects && now < f.until && at >= f.from && at <= f.until {
		return at
	}
	return f.arrival(now, hashOf(a.Key))
}

// checkWindows is I8.
func (s *Scheduler) checkWindows() error {
	c := &s.calendar
	var outside [Classes]int
	for _, ses := range s.active {
		if ses.stay.outside {
			outside[ses.class]++
		}
	}
	if outside != c.outside {
		return fmt.Errorf("I8: %v active sessions began outside their windows, counters say %v", outside, c.outside)
	}
	for class := range c.bars {
		if bars := c.share[class] < WholeShare && (c.share[class] == 0 || outside[class] >= s.most(class)); bars != c.bars[class] {
			return fmt.Errorf("I8: class %d with share %d and %d sessions begun outside is barred: %v", class, c.share[class], outside[class], c.bars[class])
		}
		if (c.group[class] != noGroup) != (c.share[class] == 0) {
			return fmt.Errorf("I8: class %d with share %d stands in group %d", class, c.share[class], c.group[class])
		}
	}
	for ses := range s.waiting.all {
		if ses.lifted != ses.class && (c.restricted(ses.class) || c.restricted(ses.lifted)) {
			return fmt.Errorf("I8: session %d of class %d stands in class %d, outside a window", ses.number, ses.class, ses.lifted)
		}
	}
	if len(c.edges) > 0 && (c.next != c.edges[0].At || c.next <= s.now) || len(c.edges) == 0 && c.next != never {
		return fmt.Errorf("I8: the next edge is at %s, now is %s", c.next, s.now)
	}
	if !slices.IsSortedFunc(c.edges, func(a, b WindowEdge) int { return cmp.Compare(a.At, b.At) }) {
		return fmt.Errorf("I8: edges are out of order")
	}
	return nil
}
