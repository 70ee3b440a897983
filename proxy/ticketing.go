package proxy

import (
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/ticket"
)

// ticketField is where a client returns its latest ticket (T1).
const ticketField = "arkvory-queue-ticket"

// wall reads the wall clock: tickets and Arkvory-Starts-At carry its time.
func wall() time.Time { return time.Now().Round(0) }

// ticketed hashes the session of an ask and takes over the arrival that a ticket of the client proves (T2). A ticket that does not is ignored.
func (x *exchange) ticketed(a *queue.Ask) {
	signer := x.p.set.Tickets
	if signer == nil {
		return
	}
	key := a.Key.Bounded()
	x.session = ticket.HashSession(key.Principal, key.Object, key.Client)
	if !a.Protocol && !x.polls() { // the waiting page returns its ticket too
		return
	}
	text := x.c.Req.Lookup(ticketField)
	if text == nil {
		return
	}
	now := wall()
	arrival, issued, outcome := signer.Verify(text, x.session, now)
	if !x.judged {
		x.judged = true
		x.p.metrics.Ticket(outcome)
	}
	if outcome != ticket.Accepted {
		return
	}
	if arrival.Before(x.p.born) { // of before the restart, whoever signed it last
		x.p.returned.Store(int64(x.p.queue.Now()))
	}
	a.Ticketed, a.Arrival = true, x.p.queue.Now()-now.Sub(arrival)
	if issued.Before(x.p.born) && x.p.queue.Now() < x.p.set.Grace { // later the slots are given: gathering would only stop the queue
		x.p.gather()
	}
}

// seated notes the session's place in time, for the ticket of the answer.
func (x *exchange) seated(v queue.Verdict) {
	switch v.Outcome {
	case queue.Admitted, queue.Queued, queue.RangesBusy, queue.Ready:
		x.arrival, x.seat = v.Arrival, true
	}
}

// appendTicket appends a fresh ticket, nothing when the answer is about no session. An arrival ahead of now, which a window's opening may have drawn, is signed as now.
func (x *exchange) appendTicket(b []byte) []byte {
	if !x.seat || !x.p.set.Tickets.Ready() {
		return b
	}
	now := wall()
	return x.p.set.Tickets.Append(b, x.session, now.Add(x.arrival-x.p.queue.Now()), now)
}

// appendTicketField appends the ticket as a field.
func (x *exchange) appendTicketField(b []byte) []byte {
	if !x.seat || !x.p.set.Tickets.Ready() {
		return b
	}
	return append(x.appendTicket(append(b, "Arkvory-Queue-Ticket: "...)), '\r', '\n')
}
