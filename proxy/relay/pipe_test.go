package relay

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestL3_PipesAreBounded(t *testing.T) {
	forgetPipes()
	before := openFiles(t)
	var held []*pipe
	for range maxPipes {
		p := pipes.get()
		if p == nil {
			t.Fatalf("no pipe after %d", len(held))
		}
		if p.bytes < minPipeBytes || p.held != 0 {
			t.Fatalf("a pipe of %d bytes with %d inside", p.bytes, p.held)
		}
		held = append(held, p)
	}
	if p := pipes.get(); p != nil || PipesInUse() != maxPipes {
		t.Fatalf("pipe %d was handed out, %d in use", maxPipes+1, PipesInUse())
	}
	for _, p := range held {
		pipes.put(p)
	}
	if open, idle := openPipes(); open != keepPipes || idle != keepPipes || PipesInUse() != 0 {
		t.Fatalf("%d open, %d idle, %d in use", open, idle, PipesInUse())
	}
	if p := pipes.get(); p == nil {
		t.Fatal("an idle pipe is not given again")
	} else {
		pipes.put(p)
	}
	forgetPipes()
	if after := openFiles(t); after != before {
		t.Fatalf("%d descriptors before, %d after", before, after)
	}
	if pipes.privileged() != (pipes.want == largePipeBytes) {
		t.Fatal("privileged does not tell the size asked for")
	}
}

func TestP7_DirtyPipesAreClosed(t *testing.T) {
	forgetPipes()
	p := pipes.get()
	if _, err := unix.Write(p.w, []byte("left")); err != nil {
		t.Fatal(err)
	}
	p.held = 4
	f := Flow{pipe: p}
	f.Close()
	f.Close()
	if open, idle := openPipes(); open != 0 || idle != 0 || PipesInUse() != 0 {
		t.Fatalf("%d open, %d idle, %d in use", open, idle, PipesInUse())
	}
	if _, err := unix.FcntlInt(uintptr(p.r), unix.F_GETFD, 0); err != unix.EBADF {
		t.Fatalf("a dirty pipe is open: %v", err)
	}
}
