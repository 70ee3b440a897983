package sim

import "github.com/arkvory/sidecar/queue"

// judge compares what clients were told with what came.
type judge struct {
	told, unknown uint64 // answers, and those without an estimate
	verdicts      verdicts
	rises         Rises
	promises      queue.Promises // the core's own measure
	yields        uint64
	outside       int // starts outside the window of the class
}

// admitted judges what a client was told, at its start.
func (r *run) admitted(c *client, verdict queue.Verdict) {
	if verdict.Started {
		r.watching = true
		r.trace.line(r.now, c, "starts", int64(verdict.Waited), 0)
		r.noteStart(c)
	}
	r.judge.verdicts.judge(&c.promises, r.now, false)
	c.position = 0
}

// told notes an answer that was not an admission.
func (r *run) told(c *client, v queue.Verdict) {
	r.watching = true
	r.trace.line(r.now, c, v.Outcome.String(), int64(v.Position), int64(v.CheckIn))
	if v.Outcome != queue.Queued {
		return
	}
	r.judge.told++
	if v.EstimateKnown {
		c.promises.note(promise{r.now, v.StartsIn, v.LatestIn}, r.promisesEach)
	} else {
		r.judge.unknown++
	}
	if v.Yielded { // it begins another wait
		c.position = 0
		return
	}
	moves := r.core.Moves()
	switch rises := &r.judge.rises; {
	case c.position == 0:
	case v.Arrival != c.arrival0:
		rises.JoinedAnew++ // it had been dropped as a no-show
	case v.Position > c.position:
		rest := rises.explain(v.Position-c.position, c.class, &c.moves, &moves, &r.set.Policy, len(r.parties))
		if rest > 0 && r.liftedSince(c, &moves) {
			rises.OwnLifts += rest
		} else {
			rises.Unexplained += rest
		}
	}
	c.position, c.moves, c.arrival0 = v.Position, moves, v.Arrival
}

// liftedSince reports whether the client's own session stands in a class into which aging moved sessions since its last contact. It
// walks the order: only a rise that nothing else explains is worth that.
func (r *run) liftedSince(c *client, now *queue.Moves) (lifted bool) {
	r.core.Order(func(p queue.Placed) bool {
		if p.Key != c.key {
			return true
		}
		lifted = p.Lifted != p.Class && now.Lifted[p.Lifted] > c.moves.Lifted[p.Lifted]
		return false
	})
	return lifted
}

// Rises are positions that rose between two contacts of a client: how many, and how many places by cause. A place is put down to
// the first cause in this order that the moves since the last contact still allow.
type Rises struct {
	Rises       int `json:"rises"`
	Places      int `json:"places"`
	Arrivals    int `json:"arrivals"`   // sessions that came and may pass it: another class, principal or size
	Returns     int `json:"returns"`    // paused sessions back at their old arrival
	Yields      int `json:"yields"`     // sessions that gave a slot up
	Lifts       int `json:"lifts"`      // aging
	Reclassed   int `json:"reclassed"`  // sessions whose class or size changed
	Departures  int `json:"departures"` // those behind one that left move a turn forward
	Grants      int `json:"grants"`     // passes of classes and turns of principals move
	Policy      int `json:"policy"`     // the policy was changed
	Windows     int `json:"windows"`    // a window opened or shut
	OwnLifts    int `json:"ownLifts"`   // aging moved the session itself into a class where more stand before it
	Unexplained int `json:"unexplained"`
	JoinedAnew  int `json:"joinedAnew"` // came back after its no-show: at the end, as the rule says
}

// explain puts a rise of a session of that class down to what moved since, and returns the places that this cannot explain.
//
// One session that joins, returns, is lifted, yields or is reclassed passes a waiting one by one place; in the class in which the
// waiting one stands it also puts it one stride of the class later, and within a stride lie, of each other class, as many as the
// ratio of the weights. The same holds for one departure: of those behind it in its lane only one can cross a given place
// as each moves one turn forward. One grant moves the pass of its class by one stride, and the passes of absent classes by as much;
// and it may set one lane to the round of its class, which moves that lane's sessions behind one session of every other
// principal.
func (r *Rises) explain(rise int, class queue.Class, before, now *queue.Moves, policy *queue.Policy, principals int) (rest int) {
	r.Rises++
	r.Places += rise
	put := func(cause *int, of func(*queue.Moves) *[queue.Classes]uint64, each int) {
		most := 0
		for c := range queue.Classes {
			n := int(min(of(now)[c]-of(before)[c], 1<<31))
			if each == 0 {
				n *= perJoin(policy, queue.Class(c), class)
			} else {
				n *= each
			}
			most += n
		}
		n := min(rise, most)
		*cause += n
		rise -= n
	}
	put(&r.Arrivals, func(m *queue.Moves) *[queue.Classes]uint64 { return &m.Arrived }, 0)
	put(&r.Returns, func(m *queue.Moves) *[queue.Classes]uint64 { return &m.Returned }, 0)
	put(&r.Yields, func(m *queue.Moves) *[queue.Classes]uint64 { return &m.Yielded }, 0)
	put(&r.Lifts, func(m *queue.Moves) *[queue.Classes]uint64 { return &m.Lifted }, 0)
	put(&r.Reclassed, func(m *queue.Moves) *[queue.Classes]uint64 { return &m.Reclassed }, 0)
	put(&r.Departures, func(m *queue.Moves) *[queue.Classes]uint64 { return &m.Left }, 0)
	put(&r.Grants, func(m *queue.Moves) *[queue.Classes]uint64 { return &m.Granted }, perGrant(policy, principals))
	if now.Configured > before.Configured {
		r.Policy += rise
		rise = 0
	}
	if now.Windows > before.Windows {
		r.Windows += rise
		rise = 0
	}
	return rise
}

// perJoin is how many places one session that joins a class may put back one whose applied class is that.
func perJoin(policy *queue.Policy, joined, waits queue.Class) int {
	if joined > waits || joined < min(waits, queue.Release) {
		return 1 // the other one never stands in that class
	}
	places, own := 1, policy.Weights[joined]
	for c, weight := range policy.Weights {
		if c != int(joined) {
			places += (weight + own - 1) / own
		}
	}
	return places
}

func perGrant(policy *queue.Policy, principals int) int {
	ratio := 0
	for _, heavy := range policy.Weights {
		for _, light := range policy.Weights {
			ratio = max(ratio, (heavy+light-1)/light)
		}
	}
	return 2*ratio*(queue.Classes-1) + principals
}
