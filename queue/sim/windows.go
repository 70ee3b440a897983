package sim

import (
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/window"
)

// How far ahead the core knows windows, and how often it is told anew: as the shell does, but for the wall clock, which nobody sets here.
const (
	windowHorizon = 8 * 24 * time.Hour
	windowRenewed = time.Hour
)

// classNames are the classes by index.
func classNames() (names []string) {
	for c := range queue.Class(queue.Classes) {
		names = append(names, c.String())
	}
	return names
}

// compileWindows returns the schedules by class, or a FieldError for each fault.
func (s *Settings) compileWindows() (schedules [queue.Classes]*window.Schedule, faults []error) {
	all, broken := window.CompileAll("Windows", s.Windows, classNames())
	for _, f := range broken {
		faults = append(faults, &FieldError{f.Field, f.Value, f.Rule, f.Example})
	}
	for c := range schedules {
		schedules[c] = all[queue.Class(c).String()]
	}
	return schedules, faults
}

// wall is the time of the wall clock at a moment of the simulation.
func (r *run) wall(at time.Duration) time.Time { return r.set.Begin.Add(at) }

// planWindows tells the core the windows, when it is time.
func (r *run) planWindows() error {
	if len(r.set.Windows) == 0 || r.now < r.nextPlan {
		return nil
	}
	r.nextPlan = r.now + windowRenewed
	wall := r.wall(r.now)
	shares, edges := window.Ahead(r.schedules[:], wall, wall.Add(windowHorizon), queue.MaxWindowEdges/queue.Classes)
	var plan queue.WindowPlan
	copy(plan.Shares[:], shares)
	for _, e := range edges {
		plan.Edges = append(plan.Edges, queue.WindowEdge{At: r.now + e.At.Sub(wall), Class: queue.Class(e.Class), Share: e.Share, Seed: e.Seed})
	}
	return r.core.SetWindows(r.now, plan)
}

// noteStart counts a start outside the window of its class, by the calendar and not by what the core takes it for.
func (r *run) noteStart(c *client) {
	if !r.schedules[c.class].Open(r.wall(r.now)) {
		r.judge.outside++
	}
}

// usable is how many of a class's waiting clients could use a slot now.
func usable(snap *queue.Snapshot, class queue.Class, waiting int) int {
	w := &snap.Windows[class]
	if w.Share == queue.WholeShare {
		return waiting
	}
	return min(waiting, max(0, (w.Share*snap.Slots+queue.WholeShare-1)/queue.WholeShare-w.Outside))
}

// windowed reports whether somebody waits for a window that will open: then nobody is stuck.
func (r *run) windowed(snap *queue.Snapshot) bool {
	for c, n := range r.waiting {
		if w := &snap.Windows[c]; n > 0 && w.Share == 0 && w.Changes {
			return true
		}
	}
	return false
}
