package queue

import (
	"fmt"
	"slices"
	"time"
)

// This file is the oracle's windows (W1): who may not start, in which order the shut classes stand, what aging counts.

type oWindows struct {
	share  [Classes]int
	edges  []WindowEdge
	opened [Classes]time.Duration
	bars   [Classes]bool // as of the last look, to see that a class may start again
	turned bool          // since the last tick
}

func (o *oracle) restricted(c Class) bool { return o.windows.share[c] < 1000 }

// barred reports whether nobody of the class may start: it is shut, or as many as its share of the slots allows run that began outside.
func (o *oracle) barred(c Class) bool {
	share := o.windows.share[c]
	if share == 1000 || share == 0 {
		return share == 0
	}
	began := 0
	for _, ses := range o.sessions {
		if ses.state == oActive && ses.class == c && ses.outside {
			began++
		}
	}
	return began*1000 >= share*o.slots // began >= ceil(share x slots)
}

// rebar lets classes that may start again take their place between the classes.
func (o *oracle) rebar() {
	for c := range o.windows.bars {
		bars := o.barred(Class(c))
		if o.windows.bars[c] && !bars {
			o.passes[c] = max(o.passes[c], o.lastPass)
		}
		o.windows.bars[c] = bars
	}
}

// opensAt is when a shut class opens; 1<<62 = never.
func (o *oracle) opensAt(c Class) time.Duration {
	for _, e := range o.windows.edges {
		if e.Class == c && e.Share > 0 {
			return e.At
		}
	}
	return 1 << 62
}

// groups returns the classes in the parts of the order: those that are not shut, then the shut ones by when they open.
func (o *oracle) groups() (out [][]Class) {
	shut := map[time.Duration][]Class{}
	var open []Class
	for c := range Class(Classes) {
		if o.windows.share[c] > 0 {
			open = append(open, c)
		} else {
			shut[o.opensAt(c)] = append(shut[o.opensAt(c)], c)
		}
	}
	out = append(out, open)
	var times []time.Duration
	for at := range shut {
		times = append(times, at)
	}
	slices.Sort(times)
	for _, at := range times {
		out = append(out, shut[at])
	}
	return out
}

// contending is the order without those who may not start because of their windows.
func (o *oracle) contending() []*oSession {
	o.rebar()
	return slices.DeleteFunc(o.merged(), func(ses *oSession) bool { return o.barred(ses.class) })
}

// aged is the part of the present wait that aging counts: only while the window is open, since it opened last.
func (o *oracle) aged(ses *oSession) time.Duration {
	if o.restricted(ses.class) {
		return 0
	}
	return max(0, o.now-max(ses.since, o.windows.opened[ses.class]))
}

func (o *oracle) setWindows(p WindowPlan) {
	o.turn()
	w := &o.windows
	if w.share == p.Shares && slices.Equal(w.edges, p.Edges) {
		return
	}
	w.edges = slices.Clone(p.Edges)
	for i := range w.edges {
		w.edges[i].At = max(w.edges[i].At, o.now)
	}
	o.change(o.now, p.Shares)
	o.turn()
}

// turn carries out the edges up to now, those of one moment together.
func (o *oracle) turn() {
	w := &o.windows
	for len(w.edges) > 0 && w.edges[0].At <= o.now {
		at, shares := w.edges[0].At, w.share
		for len(w.edges) > 0 && w.edges[0].At == at {
			e := w.edges[0]
			w.edges = w.edges[1:]
			if e.Share == 1000 && shares[e.Class] < 1000 {
				o.shuffled[e.Class] = oShuffle{at, at + 15*time.Second}
			}
			shares[e.Class] = e.Share
		}
		o.change(at, shares)
	}
}

func (o *oracle) change(at time.Duration, shares [Classes]int) {
	w := &o.windows
	if shares == w.share {
		return
	}
	now := o.now
	o.now = at
	defer func() { o.now = now }()
	o.rebar()
	waiting := o.bySince(oWaiting)
	for _, ses := range waiting {
		if w.share[ses.class] == 1000 && shares[ses.class] < 1000 {
			ses.waited += o.aged(ses)
		}
	}
	for c := range shares {
		if w.share[c] < 1000 && shares[c] == 1000 {
			w.opened[c] = at
		}
	}
	w.share = shares
	o.rebar()
	for _, ses := range waiting {
		o.move(ses, o.liftedClass(ses))
	}
	w.turned = true
	o.seen.windows++
}

// settleWindows is what a tick does after shares changed: choices to yield that are void end.
func (o *oracle) settleWindows() {
	if !o.windows.turned {
		return
	}
	o.windows.turned = false
	for _, ses := range o.all() {
		if ses.state == oActive {
			o.reconsider(ses)
			o.fill(ses)
		}
	}
}

// planFrom makes a plan of windows: shares of all kinds, up to seven edges, some of them at one moment or over.
func planFrom(e event, now time.Duration) WindowPlan {
	bits := mix(uint64(e.who) | uint64(e.x)<<8 | uint64(e.y)<<16)
	take := func(n uint64) int {
		v := int(bits % n)
		bits = mix(bits)
		return v
	}
	share := func() int { return [8]int{1000, 1000, 1000, 0, 0, 1, 300, 999}[take(8)] }
	p := OpenPlan()
	for c := range p.Shares {
		p.Shares[c] = share()
	}
	at := now - [4]time.Duration{0, 0, time.Second, time.Minute}[take(4)]
	for range take(8) {
		at += [8]time.Duration{0, 0, 100 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second, 9 * time.Second, 40 * time.Second, 3 * time.Minute}[take(8)]
		p.Edges = append(p.Edges, WindowEdge{At: at, Class: Class(take(Classes)), Share: share(), Seed: uint64(take(100))})
	}
	return p
}

// ofWindows makes an event one of a time in which windows change often.
func (e *event) ofWindows(draw number) {
	if draw(8) == 0 {
		e.kind = evWindows
	}
	if e.kind == evDrain {
		e.kind = evTick
	}
}

func (d *duel) setWindows(e event) error {
	p := planFrom(e, d.now)
	if err := d.subject.SetWindows(d.now, p); err != nil {
		return err
	}
	return d.compare(evWindows, func() error { d.oracle.setWindows(p); return nil })
}

// compareWindows: the states of the windows are the oracle's.
func (d *duel) compareWindows(snap Snapshot) error {
	o := d.oracle
	for c := range snap.Windows {
		want := WindowState{Share: o.windows.share[c]}
		for _, ses := range o.sessions {
			if ses.state == oActive && int(ses.class) == c && ses.outside {
				want.Outside++
			}
		}
		if i := slices.IndexFunc(o.windows.edges, func(e WindowEdge) bool { return int(e.Class) == c && e.Share != want.Share }); i >= 0 {
			want.Changes, want.ChangesAt = true, o.windows.edges[i].At
		}
		if snap.Windows[c] != want {
			return fmt.Errorf("oracle: window of %s %+v, want %+v", Class(c), snap.Windows[c], want)
		}
	}
	return nil
}

// windowRules is what W1 says of what can be seen: nobody of a shut class starts, and a class outside its window starts no more than its share of the slots.
func (w *watch) windowRules(l look) error {
	for c := range l.new.Windows {
		now, before := l.new.Windows[c], l.old.Windows[c]
		most := (now.Share*l.new.Slots + 999) / 1000
		if now.Share < 1000 && now.Outside > max(most, before.Outside) && l.new.Policy.Mode != ModeDryRun {
			return fmt.Errorf("windows: %d sessions of %s began outside, its share %d of %d slots allows %d", now.Outside, Class(c), now.Share, l.new.Slots, most)
		}
	}
	for _, p := range l.after {
		if p.Lifted != p.Class && (l.new.Windows[p.Class].Share < 1000 || l.new.Windows[p.Lifted].Share < 1000) {
			return fmt.Errorf("windows: %v of %s stands in %s, outside a window", p.Key, p.Class, p.Lifted)
		}
	}
	open := true
	for _, p := range l.after {
		shut := l.new.Windows[p.Class].Share == 0
		if !shut && !open {
			return fmt.Errorf("windows: %v stands behind sessions of shut classes", p.Key)
		}
		open = !shut
	}
	return nil
}

// deafToWindows starts sessions of classes outside their windows when their clients ask.
type deafToWindows struct{ *Scheduler }

func (f deafToWindows) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	f.advance(now)
	f.calendar.bars = [Classes]bool{}
	r, v := f.Scheduler.Ask(now, a)
	f.rebar()
	return r, v
}

// savingWindows lets a class that was shut keep the turns that it could not use.
type savingWindows struct{ *Scheduler }

// saving makes a call and gives classes that were barred before it the passes that they had.
func (f savingWindows) saving(now time.Duration, call func()) {
	var passes [Classes]uint64
	was := f.calendar.bars
	for c := range f.lines {
		passes[c] = f.lines[c].pass
	}
	f.advance(now)
	call()
	for c := range f.lines {
		if was[c] && !f.calendar.bars[c] {
			f.lines[c].pass = passes[c]
		}
	}
}

func (f savingWindows) Tick(now time.Duration) {
	f.saving(now, func() {})
	f.Scheduler.Tick(now)
}

func (f savingWindows) Ask(now time.Duration, a Ask) (*Response, Verdict) {
	f.saving(now, func() {})
	return f.Scheduler.Ask(now, a)
}

func (f savingWindows) SetWindows(now time.Duration, p WindowPlan) (err error) {
	f.saving(now, func() { err = f.Scheduler.SetWindows(now, p) })
	return err
}
