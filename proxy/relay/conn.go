package relay

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sizes of pooled memory, in bytes.
const (
	HeadBytes = 4 << 10  // first buffer of a client connection: one request head
	BodyBytes = 68 << 10 // buffer of an upstream connection: a response head and a 64 KiB body in one read
	tlsBytes  = 64 << 10
)

var (
	headPool = sync.Pool{New: func() any { return new([HeadBytes]byte) }}
	bodyPool = sync.Pool{New: func() any { return new([BodyBytes]byte) }}
	tlsPool  = sync.Pool{New: func() any { return new([tlsBytes]byte) }}
)

// ErrStale says that a kept connection was closed by its peer, or carries bytes nobody asked for, before a request was sent on it.
var ErrStale = errors.New("kept connection is stale")

// ErrBufferFull says that a head does not fit the limit given to Fill.
var ErrBufferFull = errors.New("buffer is full")

// Conn is one connection with its read buffer.
//
// Invariants: one goroutine uses a Conn at a time, but for the methods that say otherwise. The buffer is held only while it has
// unread bytes or a head that is still in use; an idle Conn has none. Close is idempotent.
type Conn struct {
	nc  net.Conn
	tcp *net.TCPConn // the bare socket, nil behind TLS
	raw syscall.RawConn
	fd  int

	spill *Spill // under TLS, nil when there is none

	buf     []byte
	r, w    int
	floor   int // bytes below stay untouched: the head in use
	large   bool
	spoiled bool // a TLS connection that held something unasked when it should have been idle

	// Moved counts body bytes that passed this connection, in either direction; read by the watcher.
	Moved atomic.Int64

	// Paced is set while a flow towards this connection waits for a grant.
	Paced atomic.Bool

	interrupted atomic.Bool
	closed      atomic.Bool

	readFn, writeFn func(uintptr) bool
	headOnly        bool // the first read of an answer takes little more than its head
	narrowed        bool // the kernel's receive buffer was cut down

	rop, wop op // one goroutine may read while another writes
}

// op is the state of the system call in the callbacks below: kept in the Conn so that a call allocates nothing.
type op struct {
	kind    uint8
	p       []byte
	iov     [3]unix.Iovec
	niov    int
	n       int
	err     error
	started bool
	blocked bool
	pipe    int
	limit   int
}

const (
	opFill uint8 = iota
	opSend
	opReadable
	opPipeIn
	opWritev
	opWritable
	opPipeOut
)

// NewConn wraps a connection. Large chooses the buffer of an upstream connection.
func NewConn(nc net.Conn, large bool) (*Conn, error) {
	c := &Conn{nc: nc, large: large, fd: -1}
	sock := nc
	if t, ok := nc.(*tls.Conn); ok {
		sock = t.NetConn()
	}
	if s, ok := sock.(*Spill); ok {
		c.spill, sock = s, s.TCPConn
	}
	tcp, ok := sock.(*net.TCPConn)
	if !ok {
		return nil, errors.New("cannot wrap connection: not a TCP socket")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := raw.Control(func(fd uintptr) { c.fd = int(fd) }); err != nil {
		return nil, err
	}
	if sock == nc {
		c.tcp = tcp
	}
	c.raw = raw
	c.readFn, c.writeFn = c.readReady, c.writeReady
	return c, nil
}

// FD returns the socket's descriptor for poll(2). It is valid only while the caller keeps the Conn from being closed.
func (c *Conn) FD() int { return c.fd }

// Bare reports whether both ends of the path may use the socket directly (no TLS).
func (c *Conn) Bare() bool { return c.tcp != nil }

// Net returns the wrapped connection.
func (c *Conn) Net() net.Conn { return c.nc }

// Buffered returns the bytes read ahead, valid until the next call that reads.
func (c *Conn) Buffered() []byte { return c.buf[c.r:c.w] }

// Skip drops n of the bytes read ahead.
func (c *Conn) Skip(n int) { c.r += n }

// Pin keeps the next n unread bytes (a head) in place until Unpin, and counts them as read.
func (c *Conn) Pin(n int) {
	c.r += n
	c.floor = c.r
}

// HeadOnly tells whether the next answer is expected to be large: then the first read takes little more than its head, and the body is left to
// splice. Otherwise one read takes head and body of up to 64 KiB.
func (c *Conn) HeadOnly(on bool) { c.headOnly = on }

// Unpin gives up the pinned head; the buffer goes back to its pool when nothing unread is in it.
func (c *Conn) Unpin() {
	c.floor = 0
	c.ReleaseIfEmpty()
}

// ReleaseIfEmpty gives the buffer back when it holds neither unread nor pinned bytes.
func (c *Conn) ReleaseIfEmpty() {
	if c.buf != nil && c.r == c.w && c.floor == 0 {
		c.release()
	}
}

func (c *Conn) release() {
	switch cap(c.buf) {
	case HeadBytes:
		headPool.Put((*[HeadBytes]byte)(c.buf[:HeadBytes]))
	case BodyBytes:
		bodyPool.Put((*[BodyBytes]byte)(c.buf[:BodyBytes]))
	}
	c.buf, c.r, c.w, c.floor = nil, 0, 0, 0
}

func (c *Conn) acquire() {
	if c.large {
		c.buf = bodyPool.Get().(*[BodyBytes]byte)[:]
	} else {
		c.buf = headPool.Get().(*[HeadBytes]byte)[:]
	}
	c.r, c.w, c.floor = 0, 0, 0
}

// room makes space behind w: by moving unread bytes down to the floor, or by a larger buffer of at most limit bytes.
func (c *Conn) room(limit int) error {
	if c.buf == nil {
		return nil // acquired when bytes are there
	}
	if c.r == c.w && c.r > c.floor {
		c.r, c.w = c.floor, c.floor
	}
	if len(c.buf)-c.w >= 512 {
		return nil
	}
	if c.r > c.floor {
		n := copy(c.buf[c.floor:], c.buf[c.r:c.w])
		c.r, c.w = c.floor, c.floor+n
		if len(c.buf)-c.w >= 512 {
			return nil
		}
	}
	if len(c.buf)-c.floor >= limit {
		return ErrBufferFull
	}
	if c.floor > 0 { // the head stays where the parsed index points
		limit += c.floor
	}
	b := make([]byte, min(max(2*len(c.buf), 4*HeadBytes), limit+HeadBytes))
	copy(b, c.buf[:c.w])
	if c.floor == 0 {
		r, w := c.r, c.w
		c.release()
		c.r, c.w = r, w
	} // else a pinned head is still read through the old memory: left to the collector
	c.buf = b
	return nil
}

// Fill reads more bytes into the buffer, at least one, blocking. Limit bounds the buffer in bytes. While it waits no buffer is held
// if none was held before. Errors: io.EOF, ErrBufferFull, or the socket's.
func (c *Conn) Fill(limit int) error {
	if err := c.room(limit); err != nil {
		return err
	}
	if c.tcp == nil {
		if c.buf == nil {
			c.acquire()
		}
		n, err := c.nc.Read(c.buf[c.w:])
		c.w += n
		if n > 0 {
			return nil
		}
		if err == nil {
			err = io.ErrNoProgress
		}
		return err
	}
	c.rop = op{kind: opFill}
	return c.finishRead(c.raw.Read(c.readFn))
}

func (c *Conn) finishRead(err error) error {
	if err == nil {
		err = c.rop.err
	}
	c.rop.p, c.rop.err = nil, nil
	return err
}

// SendAndFill writes p on an idle connection and reads the first bytes of the answer into the buffer. It checks first that the
// connection is quiet: a peer that closed it or sent something unasked yields ErrStale and nothing is written. Written tells whether any byte of p
// may have reached the peer. On a bare socket this is one peek, one write, one wait and one read.
func (c *Conn) SendAndFill(p []byte) (written bool, err error) {
	if c.tcp == nil {
		if !c.quiet() {
			return false, ErrStale
		}
		if _, err := c.nc.Write(p); err != nil {
			return true, err
		}
		return true, c.Fill(BodyBytes)
	}
	c.ReleaseIfEmpty() // a drained buffer has no room for the answer
	c.rop = op{kind: opSend, p: p}
	err = c.finishRead(c.raw.Read(c.readFn))
	written = c.rop.started
	if c.rop.n < len(p) && err == nil && written { // the socket took a part: rare, the rest goes the blocking way
		if _, err = c.tcp.Write(p[c.rop.n:]); err == nil {
			err = c.Fill(BodyBytes)
		}
	}
	return written, err
}

// Send writes p on an idle connection after the same check as SendAndFill, without waiting for an answer.
func (c *Conn) Send(p []byte) (written bool, err error) {
	if !c.quiet() {
		return false, ErrStale
	}
	_, err = c.nc.Write(p)
	return true, err
}

// quiet reports whether the peer neither closed nor sent anything: the state an idle kept connection must be in.
func (c *Conn) quiet() bool {
	if c.r != c.w {
		return false
	}
	ok := false
	err := c.raw.Control(func(fd uintptr) { ok = quietFD(int(fd)) })
	if c.tcp == nil {
		return err == nil && c.quietTLS(!ok)
	}
	return err == nil && ok
}

// recordWait is how long quietTLS waits for the rest of a record that is already on its way.
const recordWait = time.Millisecond

// quietTLS looks behind the socket: a TLS connection may hold application data decrypted before, and what waits on its socket may
// be the protocol's own, such as the session tickets that a server sends after the handshake. These are taken in; application
// data, an end or an error make the connection stale for good. Without pending bytes it costs no system call.
func (c *Conn) quietTLS(pending bool) bool {
	if c.spoiled || c.Interrupted() {
		return false
	}
	deadline := time.Unix(1, 0)
	if pending {
		deadline = time.Now().Add(recordWait)
	}
	var b [1]byte
	_ = c.nc.SetReadDeadline(deadline)
	n, err := c.nc.Read(b[:])
	c.ResumeReads()
	c.spoiled = n > 0 || !errors.Is(err, os.ErrDeadlineExceeded)
	return !c.spoiled && !c.Interrupted()
}

// Quiet is quiet for owners of idle connections.
func (c *Conn) Quiet() bool { return c.quiet() }

func quietFD(fd int) bool {
	var b [1]byte
	_, e := recv(fd, b[:], 1, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return e == unix.EAGAIN
}

// readReady runs under the poller's read lock; false waits for the next readiness.
func (c *Conn) readReady(fd uintptr) bool {
	o := &c.rop
	switch o.kind {
	case opSend:
		if !o.started {
			if c.r != c.w || !quietFD(int(fd)) {
				o.err = ErrStale
				return true
			}
			o.started = true
			n, e := write(int(fd), o.p)
			if e == unix.EAGAIN {
				return true // c.rop.n < len(p): the caller goes on
			}
			if e != 0 {
				o.err = e
				return true
			}
			o.n = n
			// The wait below cannot miss the answer: the poller was re-armed before the write above.
			return n < len(o.p)
		}
		return c.readSome(int(fd))
	case opFill:
		return c.readSome(int(fd))
	case opReadable:
		o.n, o.err = 0, nil
		return readable(int(fd))
	case opPipeIn:
		n, e := splice(int(fd), o.pipe, o.limit)
		switch {
		case e == unix.EAGAIN:
			return false
		case e != 0:
			o.err = e
		case n == 0:
			o.err = io.ErrUnexpectedEOF
		}
		o.n = n
		return true
	}
	return true
}

func (c *Conn) readSome(fd int) bool {
	fresh := c.buf == nil
	if fresh {
		c.acquire()
	}
	p := c.buf[c.w:]
	if fresh && c.headOnly && len(p) > HeadBytes {
		p = p[:HeadBytes]
	}
	n, e := read(fd, p)
	if e == unix.EAGAIN {
		if fresh {
			c.release()
		}
		return false
	}
	switch {
	case e != 0:
		c.rop.err = e
	case n == 0:
		c.rop.err = io.EOF
	default:
		c.w += n
	}
	if n <= 0 && fresh {
		c.release()
	}
	return true
}

// Write3 writes a, b and c one after another in as few calls as possible.
func (c *Conn) Write3(a, b, tail []byte) error {
	parts := [3][]byte{a, b, tail}
	if c.tcp == nil {
		for _, p := range parts {
			if len(p) > 0 {
				if _, err := c.nc.Write(p); err != nil {
					return err
				}
			}
		}
		return nil
	}
	o := &c.wop
	*o = op{kind: opWritev}
	for _, p := range parts {
		if len(p) > 0 {
			o.iov[o.niov].Base, o.iov[o.niov].Len = unsafe.SliceData(p), uint64(len(p))
			o.niov++
		}
	}
	if o.niov == 0 {
		return nil
	}
	err := c.raw.Write(c.writeFn)
	if err == nil {
		err = o.err
	}
	n := o.n
	*o = op{}
	if err != nil {
		return err
	}
	for _, p := range parts {
		if n < len(p) {
			if _, err := c.tcp.Write(p[n:]); err != nil {
				return err
			}
		}
		n = max(n-len(p), 0)
	}
	return nil
}

// Write2 is Write3 of two parts.
func (c *Conn) Write2(a, b []byte) error { return c.Write3(a, b, nil) }

// Write writes p whole.
func (c *Conn) Write(p []byte) error {
	if c.tcp != nil && len(p) > 0 && !c.interrupted.Load() && !c.closed.Load() {
		n, e := write(c.fd, p) // past the poller while the socket takes it: see sys.go
		switch {
		case e == 0 && n == len(p):
			return nil
		case e == 0:
			p = p[n:]
		case e != unix.EAGAIN:
			return os.NewSyscallError("write", e)
		}
	}
	_, err := c.nc.Write(p)
	return err
}

func (c *Conn) writeReady(fd uintptr) bool {
	o := &c.wop
	switch o.kind {
	case opWritev:
		n, e := writev(int(fd), o.iov[:o.niov])
		if e == unix.EAGAIN {
			return false
		}
		if e != 0 {
			o.err = e
			return true
		}
		o.n = n
		return true
	case opWritable:
		if writable(int(fd)) {
			return true
		}
		o.blocked = true
		return false
	case opPipeOut:
		n, e := splice(o.pipe, int(fd), o.limit)
		if e == unix.EAGAIN {
			o.blocked = true
			return false
		}
		if e != 0 {
			o.err = e
		} else if n == 0 {
			o.err = io.ErrShortWrite
		}
		o.n = n
		return true
	}
	return true
}

// Read reads body bytes into p: what was read ahead first, else from the socket.
func (c *Conn) Read(p []byte) (int, error) {
	if c.r < c.w {
		n := copy(p, c.buf[c.r:c.w])
		c.r += n
		return n, nil
	}
	return c.nc.Read(p)
}

// Interrupt ends every read and write of the connection now and later with an error. Safe from any goroutine.
func (c *Conn) Interrupt() {
	c.interrupted.Store(true)
	_ = c.nc.SetDeadline(time.Unix(1, 0))
}

// Unsent returns how many bytes the kernel holds for the peer, sent or not, that the peer has not acknowledged. For the watcher, which keeps the Conn from being closed.
func (c *Conn) Unsent() int {
	n, err := unix.IoctlGetInt(c.fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

// Interrupted reports whether Interrupt was called.
func (c *Conn) Interrupted() bool { return c.interrupted.Load() }

// InterruptReads ends the pending and later reads only, so that an answer can still be written. Safe from any goroutine.
func (c *Conn) InterruptReads() { _ = c.nc.SetReadDeadline(time.Unix(1, 0)) }

// ResumeReads takes InterruptReads back, but not Interrupt.
func (c *Conn) ResumeReads() {
	_ = c.nc.SetReadDeadline(time.Time{})
	if c.interrupted.Load() { // looked at afterwards: Interrupt sets it first, so that one of the two ends the reads
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// Close closes the socket and gives the buffer back. Not safe beside a read or write in progress; Interrupt is.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.floor = 0
	if c.buf != nil {
		c.release()
	}
	return c.nc.Close()
}

// CloseWrite ends the sending side, so that the peer sees the end and can still send.
func (c *Conn) CloseWrite() error {
	switch t := c.nc.(type) {
	case *net.TCPConn:
		return t.CloseWrite()
	case *tls.Conn:
		return t.CloseWrite()
	}
	return nil
}

// Reset makes Close drop the connection with RST: the peer sees a broken message, never a clean end.
func (c *Conn) Reset() {
	if c.tcp != nil {
		_ = c.tcp.SetLinger(0)
	}
}
