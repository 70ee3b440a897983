package relay

import (
	"runtime"
	"sync/atomic"
)

// scratchBytes is one piece of scratch memory of the copy path. As many pieces as processors are made, on first use, and kept: they
// are held only during two system calls, so more would rarely be in use; a stream that finds none takes a small one.
const scratchBytes = 512 << 10

var scratches = make([]atomic.Pointer[[scratchBytes]byte], runtime.GOMAXPROCS(0))
var scratchesMade atomic.Int64

func takeScratch() []byte {
	for i := range scratches {
		if p := scratches[i].Swap(nil); p != nil {
			return p[:]
		}
	}
	if scratchesMade.Load() < int64(len(scratches)) {
		if scratchesMade.Add(1) <= int64(len(scratches)) {
			return new([scratchBytes]byte)[:]
		}
		scratchesMade.Add(-1)
	}
	return tlsPool.Get().(*[tlsBytes]byte)[:]
}

func giveScratch(b []byte) {
	if len(b) == tlsBytes {
		tlsPool.Put((*[tlsBytes]byte)(b))
		return
	}
	p := (*[scratchBytes]byte)(b)
	for i := range scratches {
		if scratches[i].CompareAndSwap(nil, p) {
			return
		}
	}
}
