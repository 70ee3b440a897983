package proxy

import (
	"fmt"
	"testing"
)

// TestX9_ASlotIsNoWayAroundTheQuota: a client that never completes its session, by asking for the same half again and again, is refused once it was sent what the
// object has.
func TestX9_ASlotIsNoWayAroundTheQuota(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":400000}}`, nil)
	c := b.dial()
	half := []string{id, "Range: bytes=0-499999"}
	for range 2 {
		if a := c.get("/a/1000000", half...).ok(206); len(a.body) != 500000 {
			t.Fatalf("%d bytes", len(a.body))
		}
	}
	eventually(t, "both are counted", func() bool { b.p.queue.Tick(b.p.queue.Now()); return b.over(me) && b.p.Busy() == 0 })
	refusedForQuota(t, b.once("GET", "/a/1000000", half...), 503, thursday, 3600)
	b.counted()
}

// TestX9_ABundleIsNoWayAroundTheQuota: what a plain client asked for of a repository before it was over finishes; ever more layers would keep the slot for ever.
func TestX9_ABundleIsNoWayAroundTheQuota(t *testing.T) {
	t.Parallel()
	b, _, _ := quotaBench(t, `{"quotas":{"bytesPerDay":400000}}`, bundles)
	layer := func(name string, from, to int) answer {
		return b.once("GET", "/v2/r/blobs/"+name+"/1000000", "User-Agent: containerd/2.0", fmt.Sprintf("Range: bytes=%d-%d", from, to))
	}
	c := b.dial()
	first := c.get("/v2/r/blobs/a/1000000", "User-Agent: containerd/2.0", "Range: bytes=0-499999").ok(206)
	if len(first.body) != 500000 {
		t.Fatalf("%d bytes", len(first.body))
	}
	eventually(t, "it is over", func() bool { return b.over(me) && b.p.Busy() == 0 })
	if a := layer("b", 0, 499999); a.StatusCode != 429 {
		t.Errorf("another layer: %d, %d bytes", a.StatusCode, len(a.body))
	}
	if a := layer("a", 500000, 999999); a.StatusCode != 206 || len(a.body) != 500000 {
		t.Errorf("the rest of a layer: %d, %d bytes", a.StatusCode, len(a.body))
	}
	c.close()
	b.counted()
}
