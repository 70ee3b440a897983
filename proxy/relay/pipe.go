package relay

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Pipes: see the package documentation for the bounds.
const (
	maxPipes       = 96
	largePipeBytes = 1 << 20
	smallPipeBytes = 256 << 10
	minPipeBytes   = 64 << 10
)

type pipe struct {
	r, w  int
	bytes int // capacity
	held  int // bytes inside
}

// pipes is the process' pool. Idle pipes are kept up to keepPipes; a pipe with bytes inside after an error is closed, never reused.
type pipeSet struct {
	mu    sync.Mutex
	idle  []*pipe
	open  int
	want  int // capacity to ask for; lowered for good when the kernel refuses
	inUse atomic.Int64
}

const keepPipes = 16

var pipes = pipeSet{want: largePipeBytes}

// PipesInUse returns how many streams hold a pipe at this moment.
func PipesInUse() int64 { return pipes.inUse.Load() }

// get returns a pipe, or nil when none is to be had: then the stream copies.
func (s *pipeSet) get() *pipe {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		p := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.inUse.Add(1)
		return p
	}
	if s.open >= maxPipes {
		return nil
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil
	}
	size, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, s.want)
	if (err != nil || size < s.want) && s.want == largePipeBytes {
		s.want = smallPipeBytes // no CAP_SYS_RESOURCE, or the user's budget of pipe pages is small
		size, err = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, s.want)
	}
	if err != nil {
		size, err = unix.FcntlInt(uintptr(fds[0]), unix.F_GETPIPE_SZ, 0)
	}
	if err != nil || size < minPipeBytes { // the budget is used up: two-page pipes cost more than copying
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
		return nil
	}
	s.open++
	s.inUse.Add(1)
	return &pipe{r: fds[0], w: fds[1], bytes: size}
}

func (s *pipeSet) put(p *pipe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse.Add(-1)
	if p.held > 0 || len(s.idle) >= keepPipes {
		s.open--
		_ = unix.Close(p.r)
		_ = unix.Close(p.w)
		return
	}
	s.idle = append(s.idle, p)
}

// privileged reports whether this process may have pipes of 1 MiB beyond the user's budget.
func (s *pipeSet) privileged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.want == largePipeBytes
}
