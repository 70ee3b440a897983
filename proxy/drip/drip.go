package drip

import (
	"bytes"
	"errors"
	"time"
)

// Drip is one waiting response. Its methods are safe for concurrent use; everything is guarded by the dripper's lock.
type Drip struct {
	dripper   *Dripper
	principal string
	slot      int // in the wheel, -1 = not in it
	index     int
	hurries   bool // in the list of the next tick
	left      bool

	Start
	offset  int64   // of the next byte
	mark    float64 // the dripper's flow when credit was counted last
	credit  float64 // bytes due
	granted int64   // by the governor, not written yet
	waits   bool    // at the governor
	piece   *piece
	own     bool          // the piece is fetched on behalf of this drip
	retryAt time.Duration // after a failed fetch
	failed  time.Duration // when it failed
	fails   int
}

// Begin puts the drip into the wheel. Its response's head has been sent and nothing else writes to the sink from now to Stop. While it runs, Begin does nothing;
// after Leave, and in a closed dripper, no byte is written, and Stop returns the offset of the first one.
func (x *Drip) Begin(s Start) {
	d := x.dripper
	d.mu.Lock()
	defer d.mu.Unlock()
	if x.slot >= 0 {
		return
	}
	given := s.Piece
	s.Piece = nil
	x.Start, x.offset, x.mark = s, s.First, d.flow
	x.credit, x.granted, x.waits, x.fails, x.retryAt, x.failed = 0, 0, false, 0, 0, 0
	if d.closed || x.left {
		return
	}
	d.of[x.Object]++
	x.accept(given)
	x.slot = d.at
	x.index = len(d.wheel[x.slot])
	d.wheel[x.slot] = append(d.wheel[x.slot], x)
	d.running++
	d.counts.Started++
	x.ahead()
}

// accept stands in the piece that the owner gave, if it is a whole one: a part of one in the store would leave the next drip without its bytes.
func (x *Drip) accept(b []byte) {
	size := min(PieceBytes, x.SizeBytes-x.PieceFirst)
	if x.PieceFirst < 0 || x.PieceFirst%PieceBytes != 0 || size <= 0 || int64(len(b)) < size {
		return
	}
	if int64(cap(b)) > size { // the store counts what it keeps
		b = bytes.Clone(b[:size])
	}
	if x.dripper.store.get(x.Object, x.PieceFirst/PieceBytes) == nil && !x.fits(int(size)) {
		return
	}
	if p := x.dripper.store.put(x.Object, x.PieceFirst/PieceBytes, b); p != nil && x.holds(p) {
		x.dripper.store.hold(p)
		x.piece = p
	}
}

// Stop takes the drip out of the wheel and returns the offset of the next byte to send: all before it, from First on, are written. Again it returns the same.
// Idle is false when a request at the governor is still on its way: the stream must be closed then.
func (x *Drip) Stop() (offset int64, idle bool) {
	d := x.dripper
	d.mu.Lock()
	defer d.mu.Unlock()
	x.unwheel()
	return x.offset, !x.waits
}

// Leave gives the place back, after Stop. Calls after the first do nothing.
func (x *Drip) Leave() {
	d := x.dripper
	d.mu.Lock()
	defer d.mu.Unlock()
	if x.left {
		return
	}
	x.left = true
	x.unwheel()
	d.joined--
	if d.by[x.principal]--; d.by[x.principal] == 0 {
		delete(d.by, x.principal)
	}
}

// unwheel is idempotent.
func (x *Drip) unwheel() {
	if x.slot < 0 {
		return
	}
	d := x.dripper
	list := d.wheel[x.slot]
	last := len(list) - 1
	list[x.index] = list[last]
	list[x.index].index = x.index
	list[last] = nil
	d.wheel[x.slot] = list[:last]
	x.slot = -1
	d.running--
	if d.of[x.Object]--; d.of[x.Object] == 0 {
		delete(d.of, x.Object)
	}
	x.drop()
}

// fits reports whether the store may take a piece for this drip. Half of it is kept for objects of which several drips are fed: without it as many objects of one client each as
// there are pieces would leave a crowd that waits for one object without any to share.
func (x *Drip) fits(size int) bool {
	d := x.dripper
	if d.of[x.Object] < 2 && d.store.limit >= leastHalved && d.store.held+size > d.store.limit/2 {
		return false
	}
	return d.store.room(size)
}

// cut ends the drip and its client's connection.
func (x *Drip) cut() {
	x.unwheel()
	x.dripper.counts.Cut++
	x.Sink.Cut()
}

// step does what can be done now; true asks for another look on the next tick.
func (x *Drip) step(now time.Duration) (again bool) {
	if x.waits {
		n, done, err := x.Pace.Poll()
		if !done {
			return true
		}
		x.waits = false
		if err != nil {
			return false // the right to the band is lost for now
		}
		x.granted += n
	}
	n := x.due()
	if n == 0 {
		return false
	}
	b, again := x.bytes(now)
	if len(b) == 0 {
		return again
	}
	n = min(n, int64(len(b)))
	if x.piece.alone {
		n = min(n, max(int64(x.piece.size/aloneVisits), 1))
	}
	if x.granted == 0 {
		g, waits, err := x.Pace.Begin(n)
		switch {
		case err != nil:
			return false
		case waits:
			x.waits = true
			return true
		}
		x.granted = g
	}
	x.write(b[:min(n, x.granted)])
	if x.slot >= 0 {
		x.ahead()
	}
	return false
}

// due returns the bytes of this visit.
func (x *Drip) due() int64 {
	left := x.Last - x.offset + 1
	if left <= 1 {
		return 0
	}
	d := x.dripper
	x.credit = min(x.credit+d.flow-x.mark, 2*d.rate*Period.Seconds())
	x.mark = d.flow
	n := min(max(int64(min(x.credit, PieceBytes)), 1), max(left/8, 1))
	if p := x.piece; d.shut && p != nil && x.holds(p) { // nothing follows for now
		n = min(n, max((p.first+int64(p.size)-x.offset)/lasting, 1))
	}
	return n
}

func (x *Drip) write(b []byte) {
	n, err := x.Sink.TryWrite(b)
	if err != nil {
		x.cut()
		return
	}
	if n == 0 {
		return
	}
	x.offset += int64(n)
	x.granted -= int64(n)
	x.credit = max(x.credit-float64(n), 0)
	x.dripper.counts.Bytes += uint64(n)
	if x.Sent != nil {
		x.Sent(int64(n))
	}
	if x.piece != nil && !x.holds(x.piece) {
		x.drop()
	}
}

// holds reports whether the next byte is in the piece.
func (x *Drip) holds(p *piece) bool {
	return x.offset >= p.first && x.offset < p.first+int64(p.size)
}

// drop leaves the piece that the drip stands in.
func (x *Drip) drop() {
	if x.piece != nil {
		x.dripper.store.release(x.piece)
		x.piece, x.own = nil, false
	}
}

// bytes returns what there is of the next n bytes, nothing while they are on their way: again asks for a look on the next tick.
func (x *Drip) bytes(now time.Duration) (b []byte, again bool) {
	if x.piece == nil {
		if now < x.retryAt && x.dripper.opened <= x.failed {
			return nil, false
		}
		if !x.stand() {
			return nil, true // all fetchers are busy
		}
	}
	p := x.piece
	switch {
	case p.loading:
		return nil, true
	case p.err != nil:
		return nil, x.miss(now, p)
	}
	x.fails = 0
	return p.data[x.offset-p.first:], false
}

// miss is called for a drip that stands in a piece whose fetch failed.
func (x *Drip) miss(now time.Duration, p *piece) (again bool) {
	own := x.own
	x.drop()
	if errors.Is(p.err, ErrChanged) || errors.Is(p.err, ErrRefused) {
		if own {
			x.cut()
		}
		return !own // it was somebody else's fetch: the next one is this drip's own
	}
	x.fails++
	x.failed = p.failedAt
	x.retryAt = p.failedAt + min(Period<<min(x.fails-1, 3), 30*time.Second) - Step
	return now >= x.retryAt // the fetch was ahead of its visit
}

// ahead has the next piece fetched a period before the visit that needs it, so that an origin which takes seconds to answer does not make the client wait.
func (x *Drip) ahead() {
	if x.piece == nil && x.offset < x.Last && x.dripper.now >= x.retryAt {
		x.stand()
	}
}

// stand gets the piece with the next byte: from the store, or by a fetch. False when no fetch can begin now.
func (x *Drip) stand() bool {
	d := x.dripper
	number := x.offset / PieceBytes
	p := d.store.get(x.Object, number)
	if p != nil && x.holds(p) {
		d.counts.Shared++
		d.store.hold(p)
		x.piece, x.own = p, false
		return true
	}
	if d.closed || len(d.jobs) >= jobsEach*d.set.Fetchers {
		return false
	}
	first := number * PieceBytes
	size := min(PieceBytes, x.SizeBytes-first)
	alone := p != nil || !x.fits(int(size)) // every piece is stood in, or somebody named another size
	if alone {
		visit := int64(min(d.rate*Period.Seconds(), PieceBytes))
		first, size = x.offset, min(max(aloneVisits*visit, leastFetch), mostFetch, x.SizeBytes-x.offset)
	}
	fetch := x.Source.Piece(first, first+size-1) // before anything is noted: it may panic
	if alone {
		p = &piece{first: first, size: int(size), loading: true, alone: true}
	} else {
		p = d.store.add(x.Object, number, first, int(size))
	}
	d.store.hold(p)
	x.piece, x.own = p, true
	d.fetch(p, fetch)
	return true
}
