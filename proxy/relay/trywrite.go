package relay

import (
	"os"

	"golang.org/x/sys/unix"
)

const tlsPiece = 16 << 10 // bytes of one TryWrite behind TLS, where a write cannot take a part and come back

// TryWrite writes as much of p as the socket takes at once and returns how much that was, 0 with no error when it takes nothing now. For small pieces from
// a goroutine that serves many connections; the connection's own goroutine must not write meanwhile. Behind TLS at most tlsPiece
// bytes of p are written, and only when the socket has room for them: the kernel calls a socket writable only with a third of its buffer free, and then takes what
// fits one of its segments whole.
func (c *Conn) TryWrite(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case c.interrupted.Load() || c.closed.Load():
		return 0, errInterrupted
	}
	if c.tcp != nil {
		n, e := write(c.fd, p)
		switch e {
		case 0:
			return n, nil
		case unix.EAGAIN:
			return 0, nil
		}
		return 0, os.NewSyscallError("write", e)
	}
	if !writable(c.fd) {
		return 0, nil
	}
	return c.nc.Write(p[:min(len(p), tlsPiece)])
}
