package relay

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the data path, without the allocations and interface values of their wrappers. All descriptors are
// non-blocking. EINTR is tried again.
//
// They are raw: the scheduler is not told, so that it does not take the processor away and wake another thread for each slice
// of half a millisecond (measured: a fifth of the CPU of large bodies). What that costs is that the garbage collector may wait as
// long as one slice lasts.

func read(fd int, p []byte) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

func write(fd int, p []byte) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

func writev(fd int, v []unix.Iovec) (int, unix.Errno) {
	for {
		n, _, e := unix.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// recv reads up to n bytes with flags; with MSG_TRUNC the bytes of a TCP socket are dropped instead of copied (tcp(7)).
func recv(fd int, p []byte, n, flags int) (int, unix.Errno) {
	for {
		m, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(n), uintptr(flags), 0, 0)
		if e != unix.EINTR {
			return int(m), e
		}
	}
}

func splice(from, to, n int) (int, unix.Errno) {
	for {
		m, _, e := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n), unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if e != unix.EINTR {
			return int(m), e
		}
	}
}

func ready(fd int, events int16) bool {
	p := unix.PollFd{Fd: int32(fd), Events: events}
	var now unix.Timespec
	n, _, e := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return e == 0 && n > 0 || e != 0 && e != unix.EINTR
}

func readable(fd int) bool { return ready(fd, unix.POLLIN) }
func writable(fd int) bool { return ready(fd, unix.POLLOUT) }
