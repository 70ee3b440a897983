package proxy

import (
	"fmt"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/front"
)

// TestX2_WhoHasAllButTheLastByteIsNotStalled: a small range is fed to its last byte before its turn comes; that nothing moves then is no fault of its client, and one that leaves is
// seen all the same.
func TestX2_WhoHasAllButTheLastByteIsNotStalled(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newStage(t, l.url(), func(set *Settings) { set.StallTimeout = 4 * front.Tick })
	fields := "Range: bytes=1000-1009"
	c := s.dialFrom("127.0.0.7").get(fmt.Sprintf("/a%d", odd), fields)
	resp := c.begin("GET")
	other := s.dialFrom("127.0.0.8").get(fmt.Sprintf("/a%d", odd), fields)
	other.begin("GET")
	eventually(t, "both are fed all but the last byte", func() bool { s.visit(); return s.p.drips.Snapshot().Bytes == 18 })
	until := s.p.front.Clock().Load() + int64(10*front.Tick)
	eventually(t, "more than the time of a stall has passed", func() bool { return s.p.front.Clock().Load() > until })
	if n := s.p.drips.Snapshot().Joined; n != 2 {
		t.Fatalf("%d of 2 wait on", n)
	}
	other.close()
	within(t, 2*time.Second, "the one that left is gone", func() bool { return s.p.drips.Snapshot().Joined == 1 })
	s.free()
	wantBody(t, "ten bytes", resp, bytesOf(0, odd)[1000:1010])
	c.get("/small10").ok(200)
	s.pass(time.Minute)
	s.still(patience)
}
