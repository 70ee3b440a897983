package sim

import (
	"fmt"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// rest lets the core forget everybody, and proves that every counter returned to zero.
func (r *run) rest() error {
	if err := r.meter.balance(r); err != nil {
		return err
	}
	memory := 2*queue.PauseMemory + time.Hour
	for end := r.now + memory; r.now < end; {
		r.now = max(r.now, r.nextTick)
		if err := r.tick(); err != nil {
			return err
		}
		snap := r.core.Snapshot(r.now)
		if snap.ActiveTotal()+snap.WaitingTotal()+snap.Paused+snap.Held == 0 {
			break
		}
	}
	snap, gate := r.core.Snapshot(r.now), r.gate.Snapshot()
	if n := snap.ActiveTotal() + snap.WaitingTotal() + snap.Paused + snap.Held; n != 0 {
		return fmt.Errorf("cannot simulate %s: %d sessions were left over %s after the last client", r.strategy, n, memory)
	}
	if gate.Active+gate.Waiting != 0 {
		return fmt.Errorf("cannot simulate %s: %d places and %d waits were left over", r.strategy, gate.Active, gate.Waiting)
	}
	r.judge.promises, r.judge.yields = snap.Promises, snap.Counts.Ended[queue.ReasonYielded]
	return r.core.CheckInvariants()
}

// tick does what the shell does every 500 ms: it collects the delivered bytes, lets the core tick, ends holds.
func (r *run) tick() error {
	for _, id := range r.link.live {
		r.collect(&r.clients[id])
	}
	if err := r.planWindows(); err != nil {
		return err
	}
	r.core.Tick(r.now)
	r.settleCore()
	for i := len(r.held) - 1; i >= 0; i-- {
		if i < len(r.held) { // an answer may have taken others out
			if c := &r.clients[r.held[i]]; c.until <= r.now {
				verdict, _ := r.core.Withdraw(r.now, c.held)
				r.unhold(c)
				r.answered(c, verdict)
			}
		}
	}
	r.gate.Tick(r.now)
	r.nextTick = r.now + queue.TickEvery
	r.watching = true
	if r.set.InvariantsEvery > 0 && r.now >= r.nextLook {
		r.nextLook = r.now + r.set.InvariantsEvery
		if err := r.core.CheckInvariants(); err != nil {
			return fmt.Errorf("cannot simulate %s: at %s: %w", r.strategy, r.now, err)
		}
	}
	return nil
}

// collect tells the core the bytes delivered since it was told last.
func (r *run) collect(c *client) {
	if r.strategy == queue.Shared {
		return
	}
	r.link.sync(c, r.now)
	for i := range c.transfers {
		if x := &c.transfers[i]; x.response != nil {
			r.report(x, min(int64(c.v-x.from), x.stop))
		}
	}
}

func (r *run) report(x *transfer, bytes int64) {
	if bytes > x.reported {
		r.core.Progress(r.now, x.response, bytes-x.reported)
		x.reported = bytes
	}
}
