package relay

import (
	"net"

	"golang.org/x/sys/unix"
)

// Kernel memory that one connection may pin, in bytes: see the package documentation.
const (
	notSentLowWater = 384 << 10
	windowClamp     = 1 << 20
)

// TuneClient bounds what waits unsent on a client's socket, so that a slow reader holds kilobytes and not megabytes.
func TuneClient(c *net.TCPConn) {
	control(c, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSentLowWater)
	})
}

// TuneUpstream bounds what the kernel receives ahead on an upstream socket.
func TuneUpstream(c *net.TCPConn) {
	control(c, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, windowClamp)
	})
}

func control(c *net.TCPConn, f func(fd int)) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { f(int(fd)) })
}
