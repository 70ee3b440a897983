package proxy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// live lets time pass in the proxy's ticks, with that many bytes a second.
func (o *office) live(d time.Duration, down, up uint64) {
	for end := o.now + d; o.now < end; {
		o.now += 250 * time.Millisecond
		o.down += down / 4
		o.up += up / 4
		o.Sample(o.now)
	}
}

func TestV3_HistoryOfRatesAndCounts(t *testing.T) {
	o := openOffice(t, nil)
	empty := o.History(1)
	if len(empty.Active) != 12 || empty.Active[0] != admin.NoSample || empty.StepSeconds != 5 {
		t.Fatalf("before the first sample %+v", empty)
	}
	o.live(10*time.Second, 1000, 40)
	g, _ := o.ask("p", "o", queue.Release)
	o.ask("q", "w", queue.Bulk)
	o.live(10*time.Second, 2000, 0)
	g.Finish(0, 10*mib, true)
	o.live(10*time.Second, 0, 0)
	h := o.History(1)
	n := len(h.Active)
	if n != 12 || h.Until.Time != officeDay.Add(o.now) {
		t.Fatalf("%d samples until %v", n, h.Until)
	}
	for name, want := range map[string]struct {
		got  admin.Series
		last []int64
	}{
		"bytesPerSecond":       {h.BytesPerSecond, []int64{1000, 2000, 2000, 0, 0}},
		"uploadBytesPerSecond": {h.UploadBytesPerSecond, []int64{40, 0, 0, 0, 0}},
		"active":               {h.Active, []int64{0, 1, 1, 0, 0}},
		"slots":                {h.Slots, []int64{1, 1, 1, 1, 1}},
		"bulk":                 {h.Waiting.Bulk, []int64{0, 1, 1, 1, 1}},
		"release":              {h.Waiting.Release, []int64{0, 0, 0, 0, 0}},
		"started":              {h.Started, []int64{0, 1, 0, 0, 0}},
		"completed":            {h.Completed, []int64{0, 0, 0, 1, 0}},
	} {
		for i, v := range want.last {
			if got := want.got[n-len(want.last)+i]; got != v {
				t.Errorf("%s ends with %v, want %v", name, want.got[n-len(want.last):], want.last)
				break
			}
		}
		if len(want.got) != n || want.got[0] != admin.NoSample {
			t.Errorf("%s is %v", name, want.got)
		}
	}
	if text, err := json.Marshal(h); err != nil || !strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestV3_HistoryIsThinnedAndBounded: six hours are 720 points of 30 s, what is older is overwritten, and steps without a tick have no sample.
func TestV3_HistoryIsThinnedAndBounded(t *testing.T) {
	o := openOffice(t, nil)
	o.live(7*time.Hour, 600, 0)
	h := o.History(admin.MaxMinutes)
	if len(h.Active) != admin.MaxSamples || h.StepSeconds != 30 {
		t.Fatalf("%d points of %d s", len(h.Active), h.StepSeconds)
	}
	for i, v := range h.BytesPerSecond {
		if v != 600 {
			t.Fatalf("point %d is %d", i, v)
		}
	}
	o.now += 2 * time.Minute // a process that was stopped
	o.live(5*time.Second, 0, 0)
	h = o.History(5)
	gaps := 0
	for _, v := range h.Active {
		if v == admin.NoSample {
			gaps++
		}
	}
	if gaps < 22 || gaps > 25 {
		t.Errorf("%d of %d samples are missing: %v", gaps, len(h.Active), h.Active)
	}
	o.now += 100 * time.Hour
	o.Sample(o.now)
	if h = o.History(admin.MaxMinutes); h.Active[0] != admin.NoSample {
		t.Errorf("samples of days ago are shown: %v", h.Active[:5])
	}
}
