package relay

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/arkvory/sidecar/bucket"
)

// SourceError is a failure of the side that bytes come from, SinkError of the side they go to.
type (
	SourceError struct{ Err error }
	SinkError   struct{ Err error }
)

func (e *SourceError) Error() string { return fmt.Sprintf("cannot read body: %v", e.Err) }
func (e *SourceError) Unwrap() error { return e.Err }
func (e *SinkError) Error() string   { return fmt.Sprintf("cannot write body: %v", e.Err) }
func (e *SinkError) Unwrap() error   { return e.Err }

// Path names the way that bytes took, for metrics.
type Path uint8

// Paths.
const (
	PathBuffered Path = iota
	PathCopy
	PathSplice
	PathTLS
	NumPaths
)

func (p Path) String() string { return [...]string{"buffered", "copy", "splice", "tls"}[p] }

// SpliceMin is the size in bytes from which on splice costs less than a copy.
const SpliceMin = 32 << 10

// Limits of a stream's tempo, in bytes; see the package documentation.
const (
	provenBytes   = 512 << 10
	slowSlice     = 64 << 10
	sliceBytes    = 8 << 20  // longest unpaced slice between two looks at anything else
	pacedSlice    = 15 << 16 // what a 1 MiB pipe takes in one call, as segments do not fill its pages
	slowWaitNanos = 375e6    // on the coarse clock of 250 ms ticks: two of them passed, so the wait was longer than one
)

// Flow moves a body of known length. The zero value of the optional fields is fine. A Flow belongs to one goroutine.
type Flow struct {
	Src, Dst *Conn
	// Pace grants the bytes, nil for no limit. Gone ends a wait for a grant.
	Pace *bucket.Stream
	Gone <-chan struct{}
	// Now is the coarse monotonic clock in nanoseconds.
	Now *atomic.Int64
	// Sent, when not nil, is called with the bytes of every step after they went out.
	Sent func(n int64)
	// Waiting, when not nil, holds the coarse time since when the flow waits for its source, 0 while it does not.
	Waiting *atomic.Int64
	// Bytes counts by path what this flow moved.
	Bytes [NumPaths]int64

	proven int64 // bytes since the sink last made us wait
	slow   bool
	pipe   *pipe
	room   bool // the sink is known to be writable
}

// Trust says that the sink has proved fast in an earlier flow, so that this one begins with splice. Fast tells the same of this flow.
func (f *Flow) Trust() { f.proven = provenBytes }

// Fast reports whether the sink has taken provenBytes without a long wait.
func (f *Flow) Fast() bool { return f.proven >= provenBytes && !f.slow }

// Copy moves n bytes from Src to Dst. It returns when all are written to the socket, or with *SourceError, *SinkError or an error
// of bucket.Stream.Take. What of n was moved is in the sum of Bytes.
func (f *Flow) Copy(n int64) error {
	for n > 0 {
		want := min(n, sliceBytes)
		if f.Pace != nil {
			if f.pipe != nil && f.pipe.held == 0 {
				f.Close() // a pipe is not held while waiting
			}
			f.Dst.Paced.Store(true)
			g, err := f.Pace.Take(min(want, pacedSlice), f.Gone)
			f.Dst.Paced.Store(false)
			if err != nil {
				return err
			}
			want = g
		}
		n -= want
		for want > 0 {
			// the copy path calls the sockets past the poller, whose deadlines would end it
			if f.Dst.Interrupted() {
				return &SinkError{errInterrupted}
			}
			if f.Src.Interrupted() {
				return &SourceError{errInterrupted}
			}
			m, err := f.step(want)
			if m > 0 {
				want -= m
				f.Src.Moved.Add(m)
				f.Dst.Moved.Add(m)
				if f.Sent != nil {
					f.Sent(m)
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Close gives back what the flow holds. Idempotent.
func (f *Flow) Close() {
	if f.pipe != nil {
		pipes.put(f.pipe)
		f.pipe = nil
	}
}

// step moves at least one and at most n bytes.
func (f *Flow) step(n int64) (int64, error) {
	if b := f.Src.Buffered(); len(b) > 0 {
		b = b[:min(int64(len(b)), n)]
		if err := f.Dst.Write(b); err != nil {
			return 0, &SinkError{err}
		}
		f.Src.Skip(len(b))
		f.Src.ReleaseIfEmpty()
		f.Bytes[PathBuffered] += int64(len(b))
		return int64(len(b)), nil
	}
	if !f.Src.Bare() || !f.Dst.Bare() {
		return f.throughMemory(n)
	}
	if f.pipe != nil && f.slow && f.pipe.held == 0 {
		f.Close()
	}
	if f.pipe == nil && f.proven >= provenBytes && n >= SpliceMin {
		if f.pipe = pipes.get(); f.pipe == nil {
			f.proven = provenBytes / 2 // try again later
		}
	}
	if f.pipe != nil {
		return f.throughPipe(n)
	}
	return f.peekCopy(n)
}

// throughMemory copies over TLS, or wherever the socket itself is out of reach.
func (f *Flow) throughMemory(n int64) (int64, error) {
	b := tlsPool.Get().(*[tlsBytes]byte)
	defer tlsPool.Put(b)
	f.waiting(true)
	m, err := f.Src.nc.Read(b[:min(n, tlsBytes)])
	f.waiting(false)
	if m == 0 {
		return 0, &SourceError{eof(err)}
	}
	if err := f.Dst.Write(b[:m]); err != nil {
		return 0, &SinkError{err}
	}
	f.Bytes[PathTLS] += int64(m)
	return int64(m), nil
}

// eof turns a clean end in the middle of a body into what it is.
func eof(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// peekCopy sends from scratch memory what the source shows and then drops from the source exactly what was sent. Nothing is
// held while either side makes us wait.
func (f *Flow) peekCopy(n int64) (int64, error) {
	limit := int64(scratchBytes)
	if f.slow {
		limit = slowSlice
		if !f.room {
			if err := f.waitSink(); err != nil {
				return 0, err
			}
		}
	}
	f.room = false
	limit = min(limit, n)
	scratch := takeScratch()
	got, e := recv(f.Src.fd, scratch, int(min(limit, int64(len(scratch)))), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if e == unix.EAGAIN {
		giveScratch(scratch)
		return 0, f.waitSource()
	}
	if e != 0 || got == 0 {
		giveScratch(scratch)
		if e != 0 {
			return 0, &SourceError{e}
		}
		return 0, &SourceError{io.ErrUnexpectedEOF}
	}
	sent, e := write(f.Dst.fd, scratch[:got])
	giveScratch(scratch)
	if e != 0 && e != unix.EAGAIN {
		return 0, &SinkError{e}
	}
	if e == unix.EAGAIN {
		if err := f.waitSink(); err != nil || f.Dst.wop.blocked {
			return 0, err
		}
		return f.throughMemory(min(n, slowSlice)) // writable and yet not: TCP memory is short; the poller's write waits its turn
	}
	if sent > 0 {
		dropped, e := recv(f.Src.fd, nil, sent, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		if e != 0 || dropped != sent {
			return int64(sent), &SourceError{fmt.Errorf("cannot drop %d sent bytes: %d, %w", sent, dropped, e)}
		}
		f.proven += int64(sent)
		if f.slow && f.proven >= provenBytes {
			f.slow = false
		}
		f.Bytes[PathCopy] += int64(sent)
	}
	if sent < got {
		return int64(sent), f.waitSink()
	}
	return int64(sent), nil
}

// waitSource blocks until the source has bytes, an end or an error.
func (f *Flow) waitSource() error {
	if f.Src.Interrupted() {
		return &SourceError{errInterrupted}
	}
	c := f.Src
	f.waiting(true)
	c.rop = op{kind: opReadable}
	err := c.finishRead(c.raw.Read(c.readFn))
	f.waiting(false)
	if err != nil {
		return &SourceError{err}
	}
	return nil
}

func (f *Flow) waiting(on bool) {
	if f.Waiting == nil {
		return
	}
	if on {
		f.Waiting.Store(f.now())
	} else {
		f.Waiting.Store(0)
	}
}

var errInterrupted = errors.New("connection was interrupted")

// waitSink blocks until the sink takes bytes. A wait of a clock tick marks the stream as slow.
func (f *Flow) waitSink() error {
	if f.Dst.Interrupted() {
		return &SinkError{errInterrupted}
	}
	c := f.Dst
	start := f.now()
	o := &c.wop
	*o = op{kind: opWritable}
	err := c.raw.Write(c.writeFn)
	f.noteWait(o.blocked, start)
	if err != nil {
		return &SinkError{err}
	}
	f.room = true
	return nil
}

func (f *Flow) now() int64 {
	if f.Now == nil {
		return 0
	}
	return f.Now.Load()
}

func (f *Flow) noteWait(blocked bool, start int64) {
	if !blocked {
		return
	}
	switch waited := f.now() - start; {
	case waited >= slowWaitNanos:
		f.slow = true
		f.proven = 0
		f.Src.narrow()
	case f.slow && waited > 0:
		f.proven = 0
	}
}

// throughPipe moves a slice by splice. Bytes that the sink does not take at once stay in the pipe until it does.
func (f *Flow) throughPipe(n int64) (int64, error) {
	p := f.pipe
	src, dst := f.Src, f.Dst
	src.rop = op{kind: opPipeIn, pipe: p.w, limit: int(min(n, int64(p.bytes)))}
	f.waiting(true)
	err := src.raw.Read(src.readFn)
	f.waiting(false)
	got := src.rop.n
	if err == nil {
		err = src.rop.err
	}
	src.rop.err = nil
	if err != nil {
		return 0, &SourceError{eof(err)}
	}
	p.held = got
	for p.held > 0 {
		start := f.now()
		o := &dst.wop
		*o = op{kind: opPipeOut, pipe: p.r, limit: p.held}
		err := dst.raw.Write(dst.writeFn)
		if err == nil {
			err = o.err
		}
		m := o.n
		f.noteWait(o.blocked, start)
		if err != nil {
			return int64(got - p.held), &SinkError{err}
		}
		p.held -= m
		f.Bytes[PathSplice] += int64(m)
		dst.Moved.Add(1) // progress for the watcher before the slice is whole
	}
	return int64(got), nil
}
