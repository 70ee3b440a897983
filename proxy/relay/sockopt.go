package relay

import (
	"net"

	"golang.org/x/sys/unix"
)

// Kernel memory that one connection may pin, in bytes: see the package documentation.
const (
	notSentLowWater = 384 << 10
	narrowBuffer    = 256 << 10 // the kernel doubles it
)

// TuneClient bounds what waits unsent on a client's socket, so that a slow reader holds kilobytes and not megabytes.
func TuneClient(c *net.TCPConn) {
	control(c, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSentLowWater)
	})
}

func control(c *net.TCPConn, f func(fd int)) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { f(int(fd)) })
}

// narrow bounds what the kernel receives ahead for a stream whose reader is slow: the buffer that grew while it was fast does not fill
// again. Owner's goroutine only.
func (c *Conn) narrow() {
	if c.tcp == nil || c.narrowed || !c.large {
		return
	}
	c.narrowed = true
	_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, narrowBuffer)
}

// soBufLock is SO_BUF_LOCK of Linux 5.15: 0 hands the buffers back to autotuning.
const soBufLock = 72

// Widen undoes narrow before the connection serves another exchange; false when the kernel cannot, then it should be closed.
func (c *Conn) Widen() bool {
	if !c.narrowed {
		return true
	}
	if unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, soBufLock, 0) != nil {
		return false
	}
	c.narrowed = false
	return true
}
