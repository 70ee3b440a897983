package sim

import (
	"math"
	"time"
)

// link shares its bytes as the governor does: equally between principals with running responses, within one equally between
// its responses, each client at most at its own rate; what somebody cannot take goes to the others (water-filling).
//
// A client's k responses have equal rates, so one number says how far they are: v, the bytes each response running since the
// client's first moment would have got, grows by rate/k. A response begun at v ends at v + its bytes.
type link struct {
	capacity float64
	clients  []client
	parties  []party
	live     []int32 // clients with running responses
	shared   int     // principals with more than one of them
	dirty    bool    // who runs, or with how many responses, changed
	touched  bool    // some due time changed
	total    float64 // bytes/s now
	next     time.Duration
	nextLive int32 // client of next
	round    uint32
	flows    []flow
	inner    []flow
	chain    []int32 // next live client of the same principal, by position in live
}

// party is a principal.
type party struct {
	live  int32 // clients with running responses
	held  int32 // held requests
	round uint32
	slot  int32
}

// flow is one taker of a share.
type flow struct {
	weight, cap, rate float64
	head              int32 // first live client of a principal
	member            int32
}

// fill shares capacity by weight, nobody more than its cap: every pass fixes those below the level, until none is.
func fill(capacity float64, flows []flow) {
	weight := 0.0
	for i := range flows {
		flows[i].rate = -1
		weight += flows[i].weight
	}
	for weight > 0 {
		level, fixed := max(capacity, 0)/weight, false
		for i := range flows {
			f := &flows[i]
			if f.rate < 0 && f.cap <= level*f.weight {
				f.rate = f.cap
				capacity -= f.cap
				weight -= f.weight
				fixed = true
			}
		}
		if fixed {
			continue
		}
		for i := range flows {
			if f := &flows[i]; f.rate < 0 {
				f.rate = level * f.weight
			}
		}
		return
	}
}

// sync brings a client's progress to now.
func (l *link) sync(c *client, now time.Duration) {
	if now > c.at {
		if c.rated > 0 {
			c.v += c.rate / float64(c.rated) * (now - c.at).Seconds()
		}
		c.at = now
	}
}

// begin adds a response; the client's progress must be at now.
func (l *link) begin(id int32, x transfer) {
	c := &l.clients[id]
	if len(c.transfers) == 0 {
		c.v = 0 // so that it stays exact over many responses
	}
	x.from = c.v
	c.transfers = append(c.transfers, x)
	if len(c.transfers) == 1 {
		c.place = int32(len(l.live))
		l.live = append(l.live, id)
		p := &l.parties[c.principal]
		p.live++
		if p.live == 2 {
			l.shared++
		}
	}
}

// end takes response i out.
func (l *link) end(id int32, i int) transfer {
	c := &l.clients[id]
	x, last := c.transfers[i], len(c.transfers)-1
	c.transfers[i] = c.transfers[last]
	c.transfers[last] = transfer{}
	c.transfers = c.transfers[:last]
	if last == 0 {
		end := len(l.live) - 1
		l.live[c.place] = l.live[end]
		l.clients[l.live[c.place]].place = c.place
		l.live = l.live[:end]
		p := &l.parties[c.principal]
		p.live--
		if p.live == 1 {
			l.shared--
		}
	}
	return x
}

// plan renews a client's due time after its responses changed. Only another number of responses changes anybody's rate.
func (l *link) plan(id int32, now time.Duration) {
	c := &l.clients[id]
	if len(c.transfers) != c.rated {
		l.dirty = true
		if len(c.transfers) == 0 {
			c.rated = 0 // nothing runs: v stands still
		}
		return
	}
	if len(c.transfers) > 0 {
		c.dueAt(now)
		l.touched = true
	}
}

// settle renews what changed: rates when the running responses did, and the next end.
func (l *link) settle(now time.Duration) {
	if l.dirty {
		for _, id := range l.live {
			l.sync(&l.clients[id], now)
		}
		if l.shared == 0 {
			l.rateClients()
		} else {
			l.rateParties()
		}
		l.total = 0
		for _, id := range l.live {
			c := &l.clients[id]
			c.rated = len(c.transfers)
			l.total += c.rate
			c.dueAt(now)
		}
	} else if !l.touched {
		return
	}
	l.dirty, l.touched = false, false
	l.next = never
	for _, id := range l.live {
		if due := l.clients[id].due; due < l.next {
			l.next, l.nextLive = due, id
		}
	}
}

func (l *link) rateClients() {
	l.flows = l.flows[:0]
	for _, id := range l.live {
		l.flows = append(l.flows, flow{weight: 1, cap: l.clients[id].ownRate})
	}
	fill(l.capacity, l.flows)
	for i, id := range l.live {
		l.clients[id].rate = l.flows[i].rate
	}
}

func (l *link) rateParties() {
	l.round++
	l.flows, l.chain = l.flows[:0], l.chain[:0]
	for i, id := range l.live {
		c := &l.clients[id]
		p := &l.parties[c.principal]
		if p.round != l.round {
			p.round, p.slot = l.round, int32(len(l.flows))
			l.flows = append(l.flows, flow{weight: 1, head: -1})
		}
		f := &l.flows[p.slot]
		f.cap += min(c.ownRate, l.capacity)
		l.chain = append(l.chain, f.head)
		f.head = int32(i)
	}
	fill(l.capacity, l.flows)
	for _, f := range l.flows {
		l.inner = l.inner[:0]
		for i := f.head; i >= 0; i = l.chain[i] {
			c := &l.clients[l.live[i]]
			l.inner = append(l.inner, flow{weight: float64(len(c.transfers)), cap: c.ownRate, member: l.live[i]})
		}
		fill(f.rate, l.inner)
		for _, g := range l.inner {
			l.clients[g.member].rate = g.rate
		}
	}
}

// dueAt sets when the client's next response ends at its rate.
func (c *client) dueAt(now time.Duration) {
	least := math.Inf(1)
	for i := range c.transfers {
		least = min(least, c.transfers[i].from+float64(c.transfers[i].stop))
	}
	left := max(least-c.v, 0) * float64(c.rated) / c.rate
	if left > MaxDuration.Seconds() || c.rate <= 0 {
		c.due = never
		return
	}
	c.due = now + time.Duration(math.Ceil(left*1e9))
}
