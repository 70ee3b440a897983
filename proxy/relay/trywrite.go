package relay

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const tlsPiece = 16 << 10 // bytes of one TryWrite behind TLS: what the spill may have to keep

// TryWrite writes as much of p as the socket takes at once and returns how much that was, 0 with no error when it takes nothing now. It never waits. For small
// pieces from a goroutine that serves many connections; the connection's own goroutine must not write meanwhile. Behind TLS, where a record cannot be taken back, at most
// tlsPiece bytes of p are written, and what the socket leaves of their records stays in the spill until a later write. Behind a TLS connection without a
// Spill nothing but the poll of the socket keeps it from waiting, which a peer with a tiny window gets around.
func (c *Conn) TryWrite(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case c.interrupted.Load() || c.closed.Load():
		return 0, errInterrupted
	}
	if c.tcp != nil {
		return tryWrite(c.fd, p)
	}
	if c.spill != nil {
		if done, err := c.spill.try(); !done || err != nil {
			return 0, err
		}
	}
	if !writable(c.fd) {
		return 0, nil
	}
	if c.spill != nil {
		c.spill.trying = true
		defer func() { c.spill.trying = false }()
	}
	return c.nc.Write(p[:min(len(p), tlsPiece)])
}

// tryWrite writes what the socket takes at once.
func tryWrite(fd int, p []byte) (int, error) {
	switch n, e := write(fd, p); e {
	case 0:
		return n, nil
	case unix.EAGAIN:
		return 0, nil
	default:
		return 0, os.NewSyscallError("write", e)
	}
}

// Spill is the socket under a TLS connection to which TryWrite is used: it keeps the rest of records that the socket did not take at once, so that nobody waits for a peer
// that does not read. Every other write sends that rest first. It keeps at most the records of tlsPiece bytes. Used as its TLS connection is: one writer at a time.
type Spill struct {
	*net.TCPConn
	fd     int
	trying bool
	rest   []byte // nil when there is none: a connection that flows keeps no memory
}

// NewSpill wraps the socket.
func NewSpill(tcp *net.TCPConn) *Spill {
	s := &Spill{TCPConn: tcp, fd: -1}
	control(tcp, func(fd int) { s.fd = fd })
	return s
}

// Write implements net.Conn.
func (s *Spill) Write(p []byte) (int, error) {
	if s.trying {
		n := 0
		if s.rest == nil {
			var err error
			if n, err = tryWrite(s.fd, p); err != nil {
				return 0, err
			}
		}
		if n < len(p) {
			s.rest = append(s.rest, p[n:]...)
		}
		return len(p), nil
	}
	if s.rest != nil {
		n, err := s.TCPConn.Write(s.rest)
		if err != nil {
			s.rest = s.rest[n:]
			return 0, err
		}
		s.rest = nil
	}
	return s.TCPConn.Write(p)
}

// try sends what was left, as far as the socket takes it at once.
func (s *Spill) try() (done bool, err error) {
	if s.rest == nil {
		return true, nil
	}
	n, err := tryWrite(s.fd, s.rest)
	if err != nil {
		return false, err
	}
	if s.rest = s.rest[n:]; len(s.rest) > 0 {
		return false, nil
	}
	s.rest = nil
	return true, nil
}
