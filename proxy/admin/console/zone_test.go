package console_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/arkvory/sidecar/queue/window"
)

// TestW1_DrawnHoursAreTheServers: what the calendar draws is what the server decides, over changes of the clock in three zones, overnight and in doubled
// and skipped hours.
func TestW1_DrawnHoursAreTheServers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "")
	b := newTab(t, "en")
	b.open(h.base, "queue")
	night := []window.Span{{From: "22:00", To: "06:00"}}
	for _, one := range []struct {
		spec window.Spec
		at   string
	}{
		{window.Spec{Zone: "Europe/Berlin", Open: night}, "2026-03-28T12:00:00Z"},
		{window.Spec{Zone: "Europe/Berlin", Open: night}, "2026-10-25T12:00:00Z"},
		{window.Spec{Zone: "Europe/Berlin", Open: []window.Span{{From: "02:30", To: "04:00"}, {From: "02:10", To: "02:20"}}}, "2026-03-29T00:00:00Z"},
		{window.Spec{Zone: "Europe/Berlin", Open: []window.Span{{From: "02:15", To: "02:45"}, {From: "01:00", To: "02:05"}}}, "2026-10-24T00:00:00Z"},
		{window.Spec{Zone: "America/New_York", Open: []window.Span{{Days: []string{"sun"}, From: "00:00", To: "24:00"}, {Days: []string{"fri"}, From: "18:00", To: "18:00"}}}, "2026-11-01T03:00:00Z"},
		{window.Spec{Zone: "Australia/Lord_Howe", Open: []window.Span{{From: "01:45", To: "02:15"}}}, "2026-04-05T03:00:00Z"},
		{window.Spec{Zone: "Asia/Kolkata", Open: []window.Span{{Days: []string{"mon"}, From: "08:00", To: "12:00"}, {Days: []string{"mon"}, From: "11:00", To: "13:00"}}}, "2026-07-01T00:00:00Z"},
	} {
		schedule, faults := window.Compile(one.spec)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		at, err := time.Parse(time.RFC3339, one.at)
		must(t, err)
		spec, err := json.Marshal(one.spec)
		must(t, err)
		got, err := chromedp.Run(b, chromedp.Evaluate[[][2]int64](fmt.Sprintf(`import("./zone.js").then(z => z.openings(%s, %d))`, spec, at.UnixMilli()), chromedp.EvalAwaitPromise))
		must(t, err)
		drawn := func(moment time.Time) bool {
			for _, stretch := range got {
				if ms := moment.UnixMilli(); ms >= stretch[0] && ms < stretch[1] {
					return true
				}
			}
			return false
		}
		opened := 0
		for moment := at.Add(-4 * 24 * time.Hour); moment.Before(at.Add(4 * 24 * time.Hour)); moment = moment.Add(time.Minute) {
			if want := schedule.Open(moment); drawn(moment) != want {
				t.Errorf("%+v: at %v drawn as open: %v, is %v", one.spec, moment, !want, want)
				break
			} else if want {
				opened++
			}
		}
		if opened == 0 {
			t.Errorf("%+v is never open", one.spec)
		}
	}
	b.clean(h.base)
}
