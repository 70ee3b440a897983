package upstream

import (
	"slices"
	"time"

	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// waiter is an exchange that waits for a writer. It stands in the list until it is answered or leaves.
type waiter struct {
	fresh      bool                 // it takes only what has served nothing yet
	avoid      []control.EndpointID // and nothing of these
	arrived    time.Duration
	answer     chan answer // room for one
	prev, next *waiter
	listed     bool
}

type answer struct {
	w   *Writer
	err error
}

// waiterList is a doubly linked list.
type waiterList struct{ head, tail *waiter }

func (l *waiterList) push(w *waiter) {
	w.listed = true
	if w.prev = l.tail; w.prev != nil {
		w.prev.next = w
	} else {
		l.head = w
	}
	l.tail = w
}

func (l *waiterList) drop(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.tail = w.prev
	}
	w.prev, w.next, w.listed = nil, nil, false
}

// await waits for a writer.
func (p *Pool) await(me *waiter, gone func() <-chan struct{}) (*Writer, error) {
	me.arrived, me.answer = monotonic(), make(chan answer, 1)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.waiters.push(me)
	p.count(me, 1)
	p.mu.Unlock()
	if !me.fresh { // one may have been released before this one stood in the list
		if w := p.takeFor(me); w != nil {
			if p.leave(me) {
				w.began = monotonic()
				return w, nil
			}
			p.giveBack(w)
		}
	}
	p.nudge()
	limit := time.NewTimer(p.set.Wait + p.set.DialTimeout + p.set.DialTimeout/8)
	defer limit.Stop()
	left := gone()
	var a answer
	select {
	case a = <-me.answer:
	case <-left:
		if !p.leave(me) {
			if a = <-me.answer; a.w != nil {
				p.giveBack(a.w)
			}
		}
		return nil, goneContext{gone: left}.Err()
	case <-limit.C:
		if p.leave(me) {
			if p.view.Load().Exhausted {
				return nil, ErrExhausted
			}
			return nil, ErrUncovered
		}
		a = <-me.answer
	}
	if a.w != nil {
		if a.w.Reused {
			p.metrics.UpstreamReused.Inc()
		}
		a.w.began = monotonic()
	}
	return a.w, a.err
}

// takeFor takes an unused writer that a waiter may have.
func (p *Pool) takeFor(me *waiter) *Writer {
	if len(me.avoid) == 0 {
		return p.take()
	}
	w, _ := p.view.Load().elsewhere(me.avoid)
	return w
}

// count keeps the number of those that wait, which the data plane reads without the lock.
func (p *Pool) count(w *waiter, n int32) {
	switch {
	case w.fresh:
		p.picky.Add(n)
	case len(w.avoid) > 0:
		p.choosy.Add(n)
	default:
		p.waiting.Add(n)
	}
}

// leave takes a waiter out of the list; false: it was answered already.
func (p *Pool) leave(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.listed {
		return false
	}
	p.waiters.drop(w)
	p.count(w, -1)
	return true
}

// match gives unused writers to exchanges that wait, the first first. Whoever comes to wait after a writer was put back finds it by itself.
func (p *Pool) match() {
	if p.choosy.Load() > 0 {
		p.matchChoosy()
	}
	for p.waiting.Load() > 0 {
		w := p.take()
		if w == nil {
			return
		}
		if !p.hand(w, false, true) {
			p.back(w)
		}
	}
}

// matchChoosy is match for those that avoid endpoints.
func (p *Pool) matchChoosy() {
	v := p.view.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := p.waiters.head; one != nil; {
		next := one.next
		if len(one.avoid) > 0 && !one.fresh {
			if w, _ := v.elsewhere(one.avoid); w != nil {
				p.waiters.drop(one)
				p.count(one, -1)
				one.answer <- answer{w: w}
			}
		}
		one = next
	}
}

// back puts a bound writer that carried nothing back without a match.
func (p *Pool) back(w *Writer) {
	e := w.ep
	e.mu.Lock()
	w.bound = false
	dead, ok := w.dead, w.choice && !w.dead
	if ok {
		e.pushLocked(w)
	}
	w.unload()
	e.mu.Unlock()
	switch {
	case dead:
		p.end(w, control.Aged, telemetry.DiscardIdle)
	case !ok:
		p.tell(report{kind: reportFree, writer: w})
	}
}

// giveBack is back for whoever is no part of a match.
func (p *Pool) giveBack(w *Writer) {
	p.back(w)
	p.match()
}

// hand gives a bound writer to the first exchange that waits and may have it; false: there is none. Fresh: it was dialled just now and has served nothing. Counted: its load is.
func (p *Pool) hand(w *Writer, fresh, counted bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := p.waiters.head; one != nil; one = one.next {
		if one.fresh && !fresh || slices.Contains(one.avoid, w.ep.id) {
			continue
		}
		p.waiters.drop(one)
		p.count(one, -1)
		if !counted {
			w.load(false)
		}
		one.answer <- answer{w: w}
		return true
	}
	return false
}

// failWaiters answers those that which names with an error.
func (p *Pool) failWaiters(which func(*waiter) bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := p.waiters.head; one != nil; {
		next := one.next
		if which(one) {
			p.waiters.drop(one)
			p.count(one, -1)
			one.answer <- answer{err: err}
		}
		one = next
	}
}

// hopeless tells exchanges that wait of a failure: those that came before the attempt began had theirs.
func (p *Pool) hopeless(began time.Duration, err error) {
	if p.Waiting() == 0 {
		return
	}
	v := p.view.Load()
	if len(v.Choices) > 0 || v.Why == control.CauseConnecting {
		return
	}
	now := monotonic()
	p.failWaiters(func(w *waiter) bool { return w.arrived <= began && now-w.arrived >= p.set.Wait }, err)
}
