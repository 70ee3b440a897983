package proxy

import (
	"io"
	"testing"
	"time"
)

func TestL1_DrainRefusesTheNewAndFinishesTheRunning(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), oneSlot)
	holder := b.dial().get("/a/60000000")
	resp := holder.begin("GET")
	held := b.dial().get("/b/1000000")
	eventually(t, "one is held", func() bool { return b.left().Held == 1 })
	idle := b.dial()
	idle.get("/small/10").ok(200)
	b.p.StartDrain()
	if a := held.ok(503); a.Header.Get("Retry-After") != "2" || a.reason(t) != "draining" || !a.Close {
		t.Errorf("%s %v", a.body, a.Header)
	}
	if a := b.once("GET", "/small/10"); a.StatusCode != 503 || a.Header.Get("Retry-After") != "2" || a.reason(t) != "draining" {
		t.Errorf("new: %d %s", a.StatusCode, a.body)
	}
	idle.atEnd()
	if n, err := io.Copy(io.Discard, resp.Body); n != 60000000 || err != nil {
		t.Errorf("the running one got %d bytes, %v", n, err)
	}
	holder.atEnd()
	b.quiet(patience)
}

func TestL1_ShutdownsDeadlineCuts(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), nil)
	down := b.dial().get("/a/1000000000")
	resp := down.begin("GET")
	up := b.dial().send(request("PUT", "/u", "Content-Length: 1000") + "part")
	eventually(t, "both run", func() bool { return b.p.Busy() == 2 && o.count("PUT") == 1 })
	began := time.Now()
	b.cut()
	if took := time.Since(began); took > patience/2 { // neither of the two would ever end
		t.Errorf("it took %v", took)
	}
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("a whole body of %d bytes", n)
	}
	up.atEnd()
}
