package memory

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// Bounds of what one hold of the lock does for the operator's view: others wait no longer for it than for a tick.
const (
	listShown   = 64   // sessions that are described, each in some 3 us
	listVisited = 1024 // sessions that are looked at, each in some 0.1 us, or 0.2 us of one principal
	listNamed   = 1024 // names of principals that are copied
)

// SetGate says whether the upstream can serve new sessions; while it cannot nobody gets a slot. See queue.Scheduler.SetGate. Calls that change nothing cost the lock.
func (q *Queue) SetGate(open bool) {
	q.locked(func(now time.Duration) {
		if q.gateShut == !open {
			return
		}
		q.gateShut = !open
		q.core.SetGate(now, open)
		if q.recorder != nil {
			q.recorder.Gate(now, open)
		}
	})
}

// Act carries an operator's action out on the session with that id and returns the session before it and after it; after a kick the latter is the former.
// Held requests that the action concerns are answered, and the responses of a kicked session are cut (see Grant.OnCut), before it returns. The error is one of
// queue.Scheduler.Act's.
func (q *Queue) Act(id queue.SessionID, a queue.Action) (before, after queue.Shown, err error) {
	q.locked(func(now time.Duration) {
		key, known := q.core.KeyOf(id)
		if !known {
			err = queue.ErrUnknownSession
			return
		}
		before, _ = q.core.Show(now, key)
		err = q.core.Act(now, key, a)
		if q.recorder != nil {
			q.recorder.Act(now, key, a, err == nil)
		}
		if err != nil {
			return
		}
		if a.Kind == queue.KickIt {
			q.cutLocked(key)
		}
		q.settleLocked() // so that the session is shown as its requests left it
		if after, known = q.core.Show(now, key); !known {
			after = before
		}
	})
	return before, after, err
}

// cutLocked takes the responses of a kicked session from the core, which knows them no more, and lets them be cut when the lock is free.
func (q *Queue) cutLocked(key queue.Key) {
	key = key.Bounded()
	for g := q.grants.head; g != nil; g = g.next {
		if g.key == key || g.key.Bounded() == key {
			g.kicked = true
			q.cuts = append(q.cuts, g)
		}
	}
}

// Session returns the session with that id; false when there is none.
func (q *Queue) Session(id queue.SessionID) (s queue.Shown, known bool) {
	q.locked(func(now time.Duration) {
		var key queue.Key
		if key, known = q.core.KeyOf(id); known {
			s, known = q.core.Show(now, key)
		}
	})
	return s, known
}

// Overview returns what the operator sees at a glance. The lock is held for O(active sessions).
func (q *Queue) Overview() (o queue.Overview) {
	q.locked(func(now time.Duration) {
		o = q.core.Overview(now)
		o.TickDuration = q.tickDuration
		q.told = totalsOf(o.Snapshot).plus(q.base)
		o.Counts, o.Promises = q.told.counts, q.told.promises
	})
	return o
}

// Sessions lists up to limit sessions behind a mark, and where the listing goes on; More is false at its end. Others get the lock, and the processor, between
// pieces of it, so that what it shows is of different moments: see queue.Mark.
func (q *Queue) Sessions(query queue.ListQuery, from queue.Mark, limit int) (page queue.Page) {
	page.Next, page.More = from, true
	page.Sessions = make([]queue.Shown, 0, min(limit, 2*listShown)) // of a principal there are often few
	for page.More && page.Matched < limit {
		q.listOnce(&query, &page, min(listShown, limit-page.Matched))
	}
	return page
}

// CountSessions returns how many sessions a query matches: from counters or, of a class of one principal, by looking at all of that principal's in pieces as in
// Sessions.
func (q *Queue) CountSessions(query queue.ListQuery) (n int) {
	told := false
	q.locked(func(time.Duration) { n, told = q.core.CountOf(query) })
	if told {
		return n
	}
	page := queue.Page{More: true}
	for page.More {
		q.listOnce(&query, &page, 0)
	}
	return page.Matched
}

// listOnce is one hold of the lock. Limit is how many more sessions it may show, 0 = it counts.
func (q *Queue) listOnce(query *queue.ListQuery, page *queue.Page, limit int) {
	if page.Visited > 0 {
		runtime.Gosched() // a long listing is never the reason why who asks for bytes waits
	}
	page.Sessions = slices.Grow(page.Sessions, limit)
	q.locked(func(now time.Duration) { q.core.ListInto(now, query, page, limit, listVisited) })
}

// Principals calls yield with the names of the principals that have sessions, in no order, until it returns false. The lock is held for 1024 of them at a time and
// free while yield runs; who has sessions all the while is named once, who comes or goes meanwhile may be named, or not.
func (q *Queue) Principals(yield func(principal string) bool) {
	names, on := make([]string, 0, listNamed), true
	q.mu.Lock()
	defer q.mu.Unlock()
	tell := func() bool {
		q.mu.Unlock()
		defer q.mu.Lock()
		for i := 0; on && i < len(names); i++ {
			on = yield(names[i])
		}
		names = names[:0]
		runtime.Gosched()
		return on
	}
	q.core.Principals(func(name string) bool {
		names = append(names, name)
		return len(names) < listNamed || tell()
	})
	tell()
}

// cut is what ends the response of a grant from outside, when an operator kicks its session. Its lock is a leaf but for what the function itself takes.
type cut struct {
	mu    sync.Mutex
	how   func()
	done  bool // the response ended: nothing is cut any more
	asked bool
}

// OnCut names what ends the response when an operator kicks the session; it is called at most once, at once when that has happened before, on the
// operator's goroutine, and never after Finish or Abandon has returned. It must not block, nor call the queue or the grant.
func (g *Grant) OnCut(how func()) {
	g.cut.mu.Lock()
	defer g.cut.mu.Unlock()
	switch {
	case g.cut.done:
	case g.cut.asked:
		how()
	default:
		g.cut.how = how
	}
}

// Kicked reports whether an operator kicked the session of the response.
func (g *Grant) Kicked() bool {
	g.cut.mu.Lock()
	defer g.cut.mu.Unlock()
	return g.cut.asked
}

// now cuts the response.
func (c *cut) now() {
	c.mu.Lock()
	defer c.mu.Unlock()
	how := c.how
	c.asked, c.how = true, nil
	if how != nil && !c.done {
		how()
	}
}

// over says that there is nothing to cut any more.
func (c *cut) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done, c.how = true, nil
}
