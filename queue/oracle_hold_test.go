package queue

import (
	"slices"
	"time"
)

// This file is the oracle's held requests.

func (o *oracle) hold(a Ask, id int) (oAnswer, *oWaiter) {
	answer := o.ask(a)
	if answer.outcome != Queued && answer.outcome != RangesBusy || a.Peek {
		return answer, nil
	}
	ses := o.sessions[a.Key]
	if ses.givesUp() {
		return answer, nil
	}
	w := &oWaiter{id: id, ses: ses, asked: a.Range, validator: a.Validator, member: a.Member}
	ses.waiters = append(ses.waiters, w)
	return answer, w
}

// unhold takes a waiter out of its session; false when it had its answer before.
func (w *oWaiter) unhold() (*oSession, bool) {
	ses := w.ses
	if ses == nil {
		return nil, false
	}
	w.ses = nil
	ses.waiters = slices.DeleteFunc(ses.waiters, func(v *oWaiter) bool { return v == w })
	return ses, true
}

// withdraw is Withdraw.
func (o *oracle) withdraw(w *oWaiter) (oAnswer, bool) {
	ses, ok := w.unhold()
	switch {
	case !ok:
		return oAnswer{}, false
	case ses.state != oActive:
		return o.contact(ses), true
	}
	return oAnswer{outcome: RangesBusy, class: ses.class, arrival: ses.arrival}, true
}

// depart is Depart. The CheckIn of the contact it counts as is not told to anybody: noShow comes from the core.
func (o *oracle) depart(w *oWaiter, noShow func(Key) (noShow, checkAt time.Duration)) bool {
	ses, ok := w.unhold()
	switch {
	case !ok:
		return false
	case ses.state == oActive || len(ses.waiters) > 0:
	case ses.protocol:
		if !ses.told {
			o.counts.Queued++
		}
		ses.told = true
		ses.noShow, ses.checkAt = noShow(ses.key)
	default:
		o.leaveOrder(ses)
		o.end(oEnd{Class: ses.class, Reason: ReasonCancelled, Wait: o.now - ses.since})
		o.remember(ses)
		o.dispatch()
	}
	return true
}
