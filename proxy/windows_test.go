package proxy

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/queue"
)

const (
	// nightShift opens bulk from 22:00 to 06:00 UTC and leaves it a quarter by day; the tests begin at noon.
	nightShift = `{"windows":{"bulk":{"outsideShare":0.25,"open":[{"from":"22:00","to":"06:00"}]}}}`
	band       = 4 * mib
	endless    = 1 << 40
)

// shiftBench is a proxy with eight slots, a download rate, 0 for none, and those windows.
func shiftBench(t *testing.T, rate int64) (*bench, *calendar) {
	t.Helper()
	b, _, days := quotaBench(t, nightShift, func(s *Settings) {
		s.Policy.Sessions, s.Policy.PerPrincipal, s.Policy.Reserve = 8, 8, 0
		s.DownloadTotal = bucket.Limit{BytesPerSecond: rate}
	})
	return b, days
}

// fetching begins a session of that name and class and reads its body until the test ends, or the body does.
func (b *bench) fetching(name string, class queue.Class, size int) {
	b.t.Helper()
	c := b.dial().get(fmt.Sprintf("/%s/%d", name, size), "Arkvory-Download-Id: "+name, "Arkvory-Download-Class: "+class.String())
	resp := c.begin("GET")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Arkvory-Download-Class") != class.String() {
		b.t.Fatalf("%s: %d as %s", name, resp.StatusCode, resp.Header.Get("Arkvory-Download-Class"))
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	b.t.Cleanup(func() {
		c.close()
		<-over
	})
}

func (b *bench) group(class queue.Class) bucket.GroupSnapshot {
	return b.p.downGov.Snapshot().Groups[class.Index()]
}

// part returns what the group of a class gets of the next bytes that are granted.
func (b *bench) part(class queue.Class, bytes uint64) float64 {
	b.t.Helper()
	before, after := b.p.downGov.Snapshot(), bucket.Snapshot{}
	eventually(b.t, "the bytes flow", func() bool {
		after = b.p.downGov.Snapshot()
		return after.GrantedBytes-before.GrantedBytes >= bytes
	})
	i := class.Index()
	return float64(after.Groups[i].GrantedBytes-before.Groups[i].GrantedBytes) / float64(after.GrantedBytes-before.GrantedBytes)
}

// limited waits until the limit of a class outside its window is that.
func (b *bench) limited(class queue.Class, bytesPerSecond int64) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("%s outside its window is limited to %d", class, bytesPerSecond), func() bool {
		return b.group(class).BytesPerSecond == bytesPerSecond
	})
}

// wantPart fails the test unless a class gets that part of the next bytes, give or take a third: two equal bodies would have a half each.
func (b *bench) wantPart(class queue.Class, want float64) {
	b.t.Helper()
	if got := b.part(class, 6*mib); got < want*2/3 || got > want*4/3 {
		b.t.Errorf("%s outside its window got %.3f of the band, want %.3f", class, got, want)
	}
}

// TestW1_OutsideItsWindowAClassKeepsToItsShareOfTheBand: the other one uses the rest, and the body on its way follows the opening and the next closing.
func TestW1_OutsideItsWindowAClassKeepsToItsShareOfTheBand(t *testing.T) {
	t.Parallel()
	b, days := shiftBench(t, band)
	b.fetching("mass", queue.Bulk, endless)
	if got := b.group(queue.Bulk).BytesPerSecond; got != band/4 {
		t.Errorf("its first byte was sent under a limit of %d", got)
	}
	b.fetching("fix", queue.Release, endless)
	b.wantPart(queue.Bulk, 0.25)
	days.pass(10 * time.Hour)
	b.limited(queue.Bulk, 0)
	b.wantPart(queue.Bulk, 0.5)
	days.pass(8 * time.Hour)
	b.limited(queue.Bulk, band/4)
	b.wantPart(queue.Bulk, 0.25)
	b.change(`{"windows":{"bulk":{"outsideShare":0.125,"open":[{"from":"22:00","to":"06:00"}]}}}`)
	b.limited(queue.Bulk, band/8)
	b.wantPart(queue.Bulk, 0.125)
	b.change(`{}`)
	b.limited(queue.Bulk, 0)
	b.wantPart(queue.Bulk, 0.5)
	if s := b.p.downGov.Snapshot(); s.Groups[queue.Release].GrantedBytes != 0 {
		t.Errorf("a class without a window: %+v", s.Groups)
	}
}

// TestW1_WhatBeganInsideIsNotPacedByTheShare: not when its window closes, and it does not use up what those have who begin afterwards.
func TestW1_WhatBeganInsideIsNotPacedByTheShare(t *testing.T) {
	t.Parallel()
	b, days := shiftBench(t, band)
	b.limited(queue.Bulk, band/4) // the tick has seen that day
	days.pass(10 * time.Hour)
	b.limited(queue.Bulk, 0)
	b.fetching("night", queue.Bulk, endless)
	days.pass(8 * time.Hour)
	b.limited(queue.Bulk, band/4)
	if got := b.part(queue.Bulk, 2*mib); got != 0 {
		t.Errorf("%.3f of it count for the share", got)
	}
	b.fetching("day", queue.Bulk, endless)
	b.wantPart(queue.Bulk, 0.25)
}

func TestW1_ShareOfNobodyAndDryRun(t *testing.T) {
	t.Parallel()
	b, _ := shiftBench(t, band)
	b.fetching("mass", queue.Bulk, endless)
	b.change(`{"windows":{"bulk":{"outsideShare":0,"open":[{"from":"22:00","to":"06:00"}]}}}`)
	b.p.limitOutside(queue.Bulk)
	if got := b.group(queue.Bulk).BytesPerSecond; got != band/4 {
		t.Errorf("what runs when nobody may begin any more has %d", got)
	}
	before := b.group(queue.Bulk).GrantedBytes
	eventually(t, "it goes on", func() bool { return b.group(queue.Bulk).GrantedBytes > before+mib })
	b.change(`{"mode":"dry-run",` + nightShift[1:])
	b.limited(queue.Bulk, 0)
	b.change(nightShift)
	b.limited(queue.Bulk, band/4)
}

// TestW1_B4_WithoutARateTheShareIsOneOfWhatWasMeasured: nothing is paced before anything is known, nor ever who is no session outside its window.
func TestW1_B4_WithoutARateTheShareIsOneOfWhatWasMeasured(t *testing.T) {
	t.Parallel()
	b, _ := shiftBench(t, 0)
	fetch := func(name, class string) {
		t.Helper()
		a := b.settled("GET", "/"+name+"/1000000", "Arkvory-Download-Id: "+name, "Arkvory-Download-Class: "+class)
		if a.StatusCode != http.StatusOK || len(a.body) != 1000000 || a.err != nil {
			t.Fatalf("%s: %d, %d bytes, %v", name, a.StatusCode, len(a.body), a.err)
		}
	}
	fetch("first", "bulk")
	if s := b.p.downGov.Snapshot(); s.GrantedBytes != 0 && s.Groups[queue.Bulk].BytesPerSecond == 0 || !b.p.downGov.Unlimited() {
		t.Errorf("paced by nothing: %+v", s)
	}
	for i := 0; b.group(queue.Bulk).BytesPerSecond == 0; i++ {
		fetch(fmt.Sprint("measured", i), "release")
	}
	known := b.p.outside.measured.Load() // it only rises from here on
	if got := b.group(queue.Bulk).BytesPerSecond; known == 0 || got < known/8 || got > known/4 {
		t.Errorf("a quarter of %d is %d", known, got)
	}
	before := b.p.downGov.Snapshot()
	fetch("another", "bulk")
	fetch("other", "release")
	after := b.p.downGov.Snapshot()
	if n, g := after.GrantedBytes-before.GrantedBytes, after.Groups[queue.Bulk].GrantedBytes-before.Groups[queue.Bulk].GrantedBytes; n != 1000000 || g != n {
		t.Errorf("%d bytes were paced, %d of them as the class's, of one session of a million", n, g)
	}
	if !b.p.downGov.Unlimited() {
		t.Error("who is not outside a window is paced")
	}
	b.quiet(patience)
}

// TestW1_X2_FeedingIsNotPacedByTheShare: the rest is, which follows when the session begins outside its window.
func TestW1_X2_FeedingIsNotPacedByTheShare(t *testing.T) {
	t.Parallel()
	for name, rate := range map[string]int64{"with a rate": 64 * mib, "without": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, days := newLibrary(t), &calendar{}
			s := newStage(t, l.url(), func(set *Settings) {
				set.wall, set.DownloadTotal = days.now, bucket.Limit{BytesPerSecond: rate}
			})
			s.change(`{"windows":{"release":{"outsideShare":0.5,"open":[{"from":"22:00","to":"06:00"}]}}}`)
			s.p.outside.measured.Store(64 * mib)
			c, resp := s.fedClient(fmt.Sprintf("/a%d", odd), 3000)
			if g := s.group(queue.Release); g.GrantedBytes != 0 || g.Waiting != 0 {
				t.Errorf("while it waits: %+v", g)
			}
			fed := s.p.drips.Snapshot().Bytes
			s.free()
			wantBody(t, name, resp, bytesOf(0, odd))
			if g := s.group(queue.Release); g.BytesPerSecond != 32*mib || g.GrantedBytes == 0 || g.GrantedBytes > odd-fed {
				t.Errorf("fed %d of %d, then %+v", fed, odd, g)
			}
			c.close()
			s.still(patience)
		})
	}
}

// TestW1_P6_NothingIsLeftOfAClientThatLeavesOutsideItsWindow: by a close or a reset, while its body waits for the class's share.
func TestW1_P6_NothingIsLeftOfAClientThatLeavesOutsideItsWindow(t *testing.T) {
	t.Parallel()
	b, _ := shiftBench(t, 4*bucket.MinBytesPerSecond)
	for name, leave := range map[string]func(*client){"close": (*client).close, "reset": (*client).reset} {
		c := b.dial().get(fmt.Sprintf("/%s/%d", name, endless), "Arkvory-Download-Id: "+name, "Arkvory-Download-Class: bulk")
		if resp := c.begin("GET"); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", name, resp.StatusCode)
		}
		eventually(t, "it waits for the share", func() bool { g := b.group(queue.Bulk); return g.Waiting == 1 && g.GrantedBytes > 0 })
		leave(c)
		within(t, twoTicks, "nothing left", func() bool {
			left := b.left()
			left.Active = 0 // its slot is kept for its next range
			return left == traces{} && b.group(queue.Bulk).Waiting == 0
		})
	}
	b.quiet(patience)
}

func TestW1_BandOfWhichAShareIsTaken(t *testing.T) {
	for _, c := range []struct {
		known, measured int64
		limited         bool
		want            int64
	}{
		{0, 0, false, 0}, {0, 0, true, 0}, {0, 5, true, 5}, {9, 0, false, 9}, {9, 5, false, 5}, {9, 5, true, 9}, {9, 12, true, 12},
	} {
		if got := bandAfter(c.known, c.measured, c.limited); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	for _, c := range []struct {
		rate, measured int64
		share          int
		want           int64
	}{
		{0, 0, 250, 0}, {4000, 9, 250, 1000}, {0, 4000, 250, 1000}, {1999, 0, 999, 1997}, {65536, 0, 1, 65}, {0, 3, 1, 1},
		{bucket.MaxBytesPerSecond, 0, 999, bucket.MaxBytesPerSecond/1000*999 + bucket.MaxBytesPerSecond%1000*999/1000}, {0, math.MaxInt64, 999, math.MaxInt64/1000*999 + 806},
	} {
		p := &Proxy{set: Settings{DownloadTotal: bucket.Limit{BytesPerSecond: c.rate}}}
		p.outside.measured.Store(c.measured)
		if got := p.outsideLimit(c.share).BytesPerSecond; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
