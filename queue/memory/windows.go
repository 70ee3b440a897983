package memory

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/window"
)

// Times of the translation from the wall clock to the queue's.
const (
	windowHorizon = 8 * 24 * time.Hour // edges that the core knows of ahead
	windowEdges   = queue.MaxWindowEdges / queue.Classes
	windowRenewed = time.Minute            // how old a translation may become
	windowSlack   = 100 * time.Millisecond // by which the clocks may drift apart before it is made anew
)

// windows is what the queue knows of windows. It belongs to the queue's lock, but for shares.
type windows struct {
	set       bool
	schedules [queue.Classes]*window.Schedule
	wall      func() time.Time
	plan      queue.WindowPlan            // as the core got it
	now       time.Duration               // of the last translation
	offset    time.Duration               // of the wall clock then, from the queue's
	shares    [queue.Classes]atomic.Int32 // WholeShare less the share, as of the last tick
	outside   [queue.Classes]int          // share outside
}

// ClassWindow is the window of a class at one moment.
type ClassWindow struct {
	Open      bool
	Share     int       // per mille of slots and band now: queue.WholeShare while Open
	Outside   int       // the same while the window is shut
	Running   int       // active sessions that began outside the window
	Changes   bool      // it is known when the window opens or shuts next
	ChangesAt time.Time // UTC, when
}

// SetWindows puts the windows of the four classes in force, nil for a class that is always open. wall returns the time of the wall clock; it is called under the
// lock and must not block. The core knows no wall clock: edges are translated to its own, for eight days ahead, now, each minute, and when the wall clock was set
// anew (by more than 100 ms, seen at the next tick). A clock that is set changes when windows open; no session is lost, and none that runs is touched.
func (q *Queue) SetWindows(schedules [queue.Classes]*window.Schedule, wall func() time.Time) {
	q.locked(func(now time.Duration) {
		w := &q.windows
		w.set, w.schedules, w.wall = true, schedules, wall
		for c, s := range schedules {
			w.outside[c] = s.OutsideShare()
		}
		q.translateLocked(now, w.read())
		q.publishSharesLocked()
	})
}

// Share returns the share of slots and band that a class has, in per mille; queue.WholeShare while its window is open or it has none. Lock-free; at most a
// tick old.
func (q *Queue) Share(class queue.Class) int {
	return queue.WholeShare - int(q.windows.shares[class.Index()].Load())
}

// Windows returns the windows of the classes.
func (q *Queue) Windows() (out [queue.Classes]ClassWindow) {
	q.locked(func(now time.Duration) {
		snap := q.core.Snapshot(now)
		for c := range out {
			s := &snap.Windows[c]
			out[c] = ClassWindow{Open: s.Share == queue.WholeShare, Share: s.Share, Outside: queue.WholeShare, Running: s.Outside}
			if q.windows.set {
				out[c].Outside = q.windows.outside[c]
			}
			if s.Changes && q.windows.set {
				out[c].Changes, out[c].ChangesAt = true, q.windows.read().Add(s.ChangesAt-now).Round(time.Second).UTC()
			}
		}
	})
	return out
}

// read returns the wall clock without its monotonic reading: what was set is to be seen.
func (w *windows) read() time.Time { return w.wall().Round(0) }

// tickWindowsLocked translates anew when that is due. Near an edge it waits a tick: two translations that differ by milliseconds must not shut again what has just
// opened.
func (q *Queue) tickWindowsLocked(now time.Duration) {
	w := &q.windows
	if !w.set {
		return
	}
	wall := w.read()
	drift := time.Duration(wall.UnixNano()) - now - w.offset
	if jumped := drift > windowSlack || drift < -windowSlack; (jumped || now-w.now >= windowRenewed) && (jumped || !w.nearEdge(now)) {
		q.translateLocked(now, wall)
	}
	q.publishSharesLocked()
}

func (w *windows) nearEdge(now time.Duration) bool {
	return slices.ContainsFunc(w.plan.Edges, func(e queue.WindowEdge) bool { return e.At > now-2*windowSlack && e.At < now+2*windowSlack })
}

// translateLocked gives the core the plan that follows from the wall clock, unless it has it.
func (q *Queue) translateLocked(now time.Duration, wall time.Time) {
	w := &q.windows
	plan := w.planAt(now, wall)
	if drift := time.Duration(wall.UnixNano()) - now - w.offset; w.now > 0 && drift <= windowSlack && drift >= -windowSlack && same(w.plan, plan, now) {
		w.now = now
		return
	}
	w.now, w.offset = now, time.Duration(wall.UnixNano())-now
	w.plan = plan
	q.setPlanLocked(now)
}

func (q *Queue) setPlanLocked(now time.Duration) {
	if err := q.core.SetWindows(now, q.windows.plan); err != nil {
		return // not with a plan that planAt made
	}
	if q.recorder != nil {
		q.recorder.Windows(now, q.windows.plan)
	}
}

// planAt is the plan by the schedules.
func (w *windows) planAt(now time.Duration, wall time.Time) (plan queue.WindowPlan) {
	shares, edges := window.Ahead(w.schedules[:], wall, wall.Add(windowHorizon), windowEdges)
	copy(plan.Shares[:], shares)
	for _, e := range edges {
		plan.Edges = append(plan.Edges, queue.WindowEdge{At: now + e.At.Sub(wall), Class: queue.Class(e.Class), Share: e.Share, Seed: e.Seed})
	}
	return plan
}

// same reports whether the core, which got the old plan, already does what the new one says but for milliseconds of drift.
func same(old, fresh queue.WindowPlan, now time.Duration) bool {
	shares, edges := old.Shares, old.Edges
	for len(edges) > 0 && edges[0].At <= now {
		shares[edges[0].Class], edges = edges[0].Share, edges[1:]
	}
	return shares == fresh.Shares && slices.EqualFunc(edges, fresh.Edges, func(a, b queue.WindowEdge) bool {
		drift := a.At - b.At
		return drift <= windowSlack && drift >= -windowSlack && a.Class == b.Class && a.Share == b.Share && a.Seed == b.Seed
	})
}

func (q *Queue) publishSharesLocked() {
	snap := q.core.Snapshot(q.now)
	for c := range snap.Windows {
		q.windows.shares[c].Store(int32(queue.WholeShare - snap.Windows[c].Share))
	}
}

// Outside reports whether the session got its slot while its class was outside its window.
func (g *Grant) Outside() bool { return g.outside }
