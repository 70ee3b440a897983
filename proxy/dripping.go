package proxy

import (
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/proxy/drip"
	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/proxy/upstream/control"
	"github.com/arkvory/sidecar/proxy/wire"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

const (
	// forever is a hold that only its end ends.
	forever = time.Duration(1) << 61
	// dripStore is the memory for bytes that waiting clients share, dripFetchers how many requests for them run at once: 4096 clients of as many objects need 512 a
	// second, of an origin that may be a tenth of a second away.
	dripStore    = 1 << 20
	dripFetchers = 64
	// dripBegins is how many clients ask the origin for their first piece at once.
	dripBegins = 16
	// beginTime is how long a client may take to its head after its hold: its turn and the first piece together. Behind that it gives up, and its session's place is lost as that of
	// a client that did not come back; a refusal keeps both.
	beginTime = 3 * time.Second
	// assumedBand is taken for the link while there is no configured band and no measured rate above it: 80 Mbit/s.
	assumedBand = 10 << 20
	// resumeTries is how often the rest of a dripped response is asked for when the origin does not answer.
	resumeTries = 6
)

func (p *Proxy) newDripper() (*drip.Dripper, error) {
	p.measureBand()
	p.beginning = make(chan struct{}, dripBegins)
	return drip.New(drip.Settings{
		BytesPerSecond: max(p.set.DripBytesPerSecond, 1), Limit: p.set.DripLimit, PerPrincipal: (p.set.DripLimit + 1) / 2, StoreBytes: dripStore,
		Fetchers: dripFetchers, Budget: p.dripBand.Load, Shut: func() bool { return p.pool != nil && !covered(p.pool) }, OnPanic: func(v any) { p.ReportPanic(v, debug.Stack()) },
	})
}

// measureBand sets what all waiting clients together may be fed: 1 % of the band, of the measured peak where none is configured, less a fiftieth for
// the unevenness of ticks.
func (p *Proxy) measureBand() {
	band := p.set.DownloadTotal.BytesPerSecond
	if band == 0 {
		band = max(p.queue.Snapshot().RateBytesPerSecond, assumedBand)
	}
	p.dripBand.Store(band / 100 * 49 / 50)
}

// span is the response of a waiting client: what its head says while its body is fed in parts that are fetched one by one.
type span struct {
	part        bool // a 206 of first to last; else the whole object
	first, last int64
	facts       object.Facts
	lost        atomic.Bool // the client could not be written to
}

// sink is a waiting client as the dripper writes to it.
type sink struct {
	*front.Conn
	span *span
}

// TryWrite implements drip.Sink.
func (s *sink) TryWrite(p []byte) (int, error) {
	n, err := s.Conn.TryWrite(p)
	if err != nil {
		s.span.lost.Store(true)
	}
	return n, err
}

// mayDrip reports whether a plain GET that would be refused can be fed instead (X2). A browser's navigation gets the waiting page.
func (x *exchange) mayDrip(a *queue.Ask) bool {
	return x.p.set.DripLimit > 0 && !a.Protocol && !x.profile.Browser && !x.ntlm && !hasBody(&x.c.Req) && a.Range.Kind != queue.RangeMulti &&
		a.SizeBytes > 0 && !x.c.Draining()
}

// drip sends the head of the response at once and lets the dripper feed the client until its session has a slot, then sends the rest. False: nothing
// was sent and the client must be refused. Whatever happens after the head ends in a whole body or in a visibly broken one, never in bytes of two objects.
func (x *exchange) drip(a queue.Ask) bool {
	d := x.p.drips.Join(x.id.Principal)
	if d == nil {
		return false
	}
	defer d.Leave() // before anything else is given back, panics included: the dripper uses what the exchange owns
	if begun, over := x.beginDrip(d, &a); !begun {
		return over
	}
	defer func() {
		d.Stop() // on a panic: nothing looks at the exchange from here on
		x.c.Paced.Store(false)
		x.span = nil
	}()
	place, admitted := x.stay(a)
	defer place.Release()
	offset, idle := d.Stop()
	x.c.Paced.Store(false)
	if !idle { // a grant is on its way to the stream: its next owner would take it for his
		x.pace.Close()
		x.pace = nil
	}
	if admitted {
		x.resume(offset)
	}
	return true
}

// beginDrip fetches the first piece, sends the head and starts the feeding. Over: the client left meanwhile.
func (x *exchange) beginDrip(d *drip.Drip, a *queue.Ask) (begun, over bool) {
	start, piece, ok := x.takeTurn(a)
	if piece != nil {
		defer pieces.Put(piece)
	}
	switch {
	case ok:
	case x.gone():
		x.left()
		return false, true
	case x.w != nil: // the origin has an answer to this client that no waiting changes
		x.relayResponse()
		return false, true
	default:
		return false, false
	}
	x.c.MarkSent()
	if err := x.c.Write(x.out); err != nil {
		x.span = nil
		x.left()
		return false, true
	}
	x.freeOut()
	x.c.Req.Detach()
	x.c.Unpin()
	x.openPace()
	start.Sink, start.Pace, start.Sent = &sink{Conn: x.c, span: x.span}, x.pace, x.dripped
	start.Source = &source{x: x, span: x.span}
	d.Begin(start)
	return true, false
}

// takeTurn waits for the client's turn to ask the origin, and asks: piece is the memory of the answer. A crowd that comes at once takes turns for the sake of that memory and of
// the origin; the turn is over before anything is written to the client, who may not read.
func (x *exchange) takeTurn(a *queue.Ask) (s drip.Start, piece *[drip.PieceBytes]byte, ok bool) {
	until := x.c.Now() + int64(beginTime)
	select {
	case x.p.beginning <- struct{}{}:
	default:
		timer := time.NewTimer(beginTime)
		defer timer.Stop()
		select {
		case x.p.beginning <- struct{}{}:
		case <-timer.C:
			return s, nil, false
		case <-x.c.Gone():
			return s, nil, false
		}
	}
	defer func() { <-x.p.beginning }()
	piece = pieces.Get().(*[drip.PieceBytes]byte)
	s, ok = x.firstPiece(a, piece, until)
	return s, piece, ok
}

// pieces are the buffers of first pieces.
var pieces = sync.Pool{New: func() any { return new([drip.PieceBytes]byte) }}

// dripped is told of every byte that the dripper wrote; it runs under the dripper's lock.
func (x *exchange) dripped(n int64) {
	x.c.Moved.Add(n)
	x.sent += n
	x.account.Add(n)
	if x.sent == x.span.last-x.span.first { // all but the last byte, which is not dripped: from now on its silence is the proxy's doing
		x.c.Paced.Store(true)
	}
	x.p.metrics.Delivered(telemetry.Download, n)
	x.p.metrics.Relayed(telemetry.PathBuffered, n)
}

// stay waits for the session's slot, or after a change of the policy for a place, for as long as it takes. The request does not count as one in progress
// meanwhile: it holds nothing of the origin, and the dripper bounds how many there are. False: the response has been ended.
func (x *exchange) stay(a queue.Ask) (place admission.Place, admitted bool) {
	x.p.inFlight.Add(-1)
	defer x.p.inFlight.Add(1)
	for {
		grant, verdict := x.p.queue.Hold(a, forever, x.c.Gone())
		pause := verdict.CheckIn
		switch verdict.Outcome {
		case queue.Admitted:
			x.granted(grant, verdict)
			return place, true
		case queue.PerRequest:
			if x.p.passesThrough() {
				return place, true
			}
			place, err := x.p.down.Acquire(x.id.Principal, x.c.Gone())
			if err == nil {
				return place, true
			}
			if err == admission.ErrDraining {
				x.cutShort(telemetry.Draining)
				return place, false
			}
			pause = time.Second
		case queue.Draining:
			x.cutShort(telemetry.Draining)
			return place, false
		case queue.Kicked:
			x.cutShort(telemetry.Kicked)
			return place, false
		}
		if !x.pause(pause) { // gone, or a defect lost the session's place: it asks again
			x.goneShort()
			return place, false
		}
	}
}

// pause waits; false when the client left or the response was cut meanwhile.
func (x *exchange) pause(d time.Duration) bool {
	if x.gone() {
		return false
	}
	timer := time.NewTimer(max(d, 10*time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return !x.gone()
	case <-x.c.Gone():
		return false
	}
}

// goneShort settles a response that ended before its rest was sent: its client left, or took nothing, or the dripper cut it because the object is not that of its head.
func (x *exchange) goneShort() {
	switch why := x.c.Why(); {
	case why == front.GoneCut && !x.span.lost.Load():
		x.cutShort(telemetry.ObjectChanged)
	case why == front.GoneStalled:
		x.broken(nil, frameLength)
	default:
		x.left()
	}
}

// cutShort ends a response that has begun and cannot be brought to its end: it stays short of its length, which every client sees.
func (x *exchange) cutShort(r telemetry.Reason) {
	x.reason, x.keep, x.bodyOK = r, false, true
	if r != telemetry.Draining && r != telemetry.Kicked {
		x.p.metrics.UpstreamError(r)
	}
	x.drop(telemetry.DiscardCancelled)
}

// firstPiece asks the origin, in the client's name, for the aligned piece that holds the first byte of the response: its head becomes the response's, in x.out, and
// its body is what the client is fed first. False when the object does not lend itself to it: no ranges, no strong validator, another answer than 206, or none until then; with
// x.w left when the origin's answer is one for the client: a condition that ends it, a thing that is not there, a range that selects nothing.
func (x *exchange) firstPiece(a *queue.Ask, buffer *[drip.PieceBytes]byte, until int64) (s drip.Start, ok bool) {
	asked, _ := object.ParseRange(x.c.Req.Get(wire.Range))
	size := a.SizeBytes
	for range 3 { // an object that changed, or a Range that its If-Range does not allow any more, is asked for anew
		first, last, found := asked.Resolve(size)
		if !found {
			if err := x.origin(ask{within: x.rest(until), hurried: true}); err == nil && x.w.Resp.Status != 416 {
				x.drop(telemetry.DiscardCancelled)
			}
			return s, false
		}
		if first >= last {
			return s, false
		}
		whole := asked.Kind == object.Whole || asked.Kind == object.Ignored
		begin := first - first%drip.PieceBytes
		end := min(begin+drip.PieceBytes, size) - 1
		if err := x.origin(ask{part: part{on: true, first: begin, last: end, anew: whole}, within: x.rest(until), hurried: true}); err != nil {
			return s, false
		}
		f, resp := object.FromResponse(&x.w.Resp), &x.w.Resp
		switch resp.Status {
		case 304, 401, 404, 410, 412: // 403 may be said to the range that was put in, where a signature covers it
			return s, false
		}
		if resp.Status == 200 && !whole && x.c.Req.Get(wire.IfRange) != nil {
			x.drop(telemetry.DiscardCancelled)
			asked = object.Range{Kind: object.Whole}
			if f.Known {
				size = f.SizeBytes
			}
			continue
		}
		if resp.Status != 206 || !f.Known || !f.Strong || resp.Chunked || f.First != begin {
			if resp.Status == 200 && f.Known { // no ranges: its next client is refused without asking
				f.Strong = false
				x.remember(f)
			}
			x.drop(telemetry.DiscardCancelled)
			return s, false
		}
		if f.SizeBytes != size {
			size = f.SizeBytes
			x.drop(telemetry.DiscardCancelled)
			continue
		}
		if f.Last != end || resp.ContentLength != end-begin+1 {
			x.drop(telemetry.DiscardCancelled)
			return s, false
		}
		x.remember(f)
		a.SizeBytes, a.Validator = f.SizeBytes, f.Validator
		x.span = &span{part: !whole, first: first, last: last, facts: f}
		s = drip.Start{First: first, Last: last, SizeBytes: size, Piece: buffer[:end-begin+1], PieceFirst: begin}
		by := x.sharedBy()
		if !x.readPiece(s.Piece, x.rest(until)) {
			x.span = nil
			return s, false
		}
		s.Object = x.sharedKey(by, s.Piece)
		return s, true
	}
	return s, false
}

// rest is what is left until a coarse time, a tick at least.
func (x *exchange) rest(until int64) time.Duration {
	return max(time.Duration(until-x.c.Now()), front.Tick)
}

// readPiece reads the body of a piece, builds the client's head from the piece's and gives the upstream's connection back.
func (x *exchange) readPiece(p []byte, within time.Duration) bool {
	x.c.Await(min(x.p.set.ResponseTimeout, within))
	_, err := io.ReadFull(x.w.Conn, p)
	x.c.Await(0)
	if err != nil {
		why := x.blame()
		if why == telemetry.DiscardTimeout && within < x.p.set.ResponseTimeout { // the client cannot wait longer; the origin has not failed
			why = telemetry.DiscardCancelled
		}
		x.drop(why)
		return false
	}
	x.needOut()
	x.out = x.appendResponse(x.out, frameLength)
	x.c.Bind(nil)
	if x.w.Resp.Close || x.bound() {
		x.w.Discard(telemetry.DiscardSpent)
	} else {
		x.w.Release(x.c.Now())
	}
	x.w = nil
	return true
}

// resume sends the rest of a dripped response from offset on, asked for by Range and If-Range: the bytes of another object never follow those that were sent.
func (x *exchange) resume(offset int64) {
	sp := x.span
	reason := x.openRest(sp, offset)
	if reason != telemetry.OK {
		if x.gone() {
			x.goneShort()
			return
		}
		x.cutShort(reason)
		return
	}
	x.openPace()
	if x.p.set.Resume {
		x.c.Resumable(x.p.set.UpstreamStall)
	}
	closes, err := x.sendRest()
	x.settleRest(sp, closes, err)
	if g := x.grant; g != nil && x.reason != telemetry.ClientGone { // an upstream that broke: the client will be back for the rest
		g.Finish(sp.first, sp.last+1, x.reason == telemetry.OK)
		x.grant = nil
	}
}

// openRest opens the exchange for the rest. An origin that does not answer, or not now, is asked again: the client bears that as it bears any stall. An endpoint that gives
// another object is not asked again while others can be: of several equal ones the odd one is wrong, and only when all are the object has changed.
func (x *exchange) openRest(sp *span, offset int64) telemetry.Reason {
	reason := telemetry.UpstreamBroken
	var avoid []control.EndpointID
	for try := 0; try < resumeTries; {
		if try > 0 && !x.pause(time.Second<<(try-1)) {
			return reason
		}
		err := x.origin(ask{part: part{on: true, first: offset, last: sp.last, anew: true, validator: sp.facts.Validator}, within: x.p.restWithin(try), avoid: avoid})
		if err != nil {
			if errors.Is(err, upstream.ErrNoOther) {
				reason, avoid = telemetry.ObjectChanged, nil
				if x.p.pool.Endpoints() <= x.p.pool.Choices() { // else the right ones may be those that are down
					return reason
				}
			}
			try++
			continue
		}
		f := object.FromResponse(&x.w.Resp)
		switch status := x.w.Resp.Status; {
		case status == 206 && f.First == offset && f.Last == sp.last && f.SizeBytes == sp.facts.SizeBytes && f.Validator == sp.facts.Validator &&
			x.w.Resp.ContentLength >= 0: // framed by its length, as the client's message is
			return telemetry.OK
		case status >= 500, status == 429, status == 408, status == 425:
			try++
		case x.w.Endpoint() == 0 || x.p.pool.Endpoints() <= 1:
			return telemetry.ObjectChanged // or it is not given to this client any more
		default:
			avoid = append(avoid, x.w.Endpoint())
		}
		x.drop(telemetry.DiscardCancelled)
	}
	return reason
}
