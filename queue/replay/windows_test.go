package replay_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

// TestW1_PlansAreWrittenAndRead: what the core got is what a replay gives it.
func TestW1_PlansAreWrittenAndRead(t *testing.T) {
	plan := queue.OpenPlan()
	plan.Shares[queue.Bulk] = 250
	plan.Edges = []queue.WindowEdge{{At: 5 * time.Second, Class: queue.Bulk, Share: 1000, Seed: 1<<64 - 1}, {At: time.Hour, Class: queue.Background, Share: 0}}
	var log bytes.Buffer
	r := replay.NewRecorder(&log)
	r.Policy(0, queue.DefaultPolicy(4))
	r.Windows(time.Second, plan)
	r.Windows(time.Second, queue.OpenPlan())
	r.Done()
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	if want := "windows 1000000000 1000,1000,250,1000 5000000000:bulk:1000:18446744073709551615 3600000000000:background:0:0\n"; !strings.Contains(text, want) {
		t.Errorf("the log is %s", text)
	}
	var got []queue.WindowPlan
	if err := replay.Parse(&log, func(e *replay.Event) error {
		if e.Op == replay.OpWindows {
			got = append(got, e.Windows)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !got[0].Equal(plan) || !got[1].Equal(queue.OpenPlan()) {
		t.Errorf("read %+v", got)
	}
	report, err := replay.Replay(strings.NewReader(text))
	if err != nil || report.Differences != 0 || report.Events != 3 {
		t.Errorf("replayed %+v, %v", report, err)
	}
}

func TestW1_BrokenPlansAreRefusedWithTheirLine(t *testing.T) {
	start := "arkvory-decisions 1\npolicy 0 ordered 1 0 1 8,4,2,1 0 30000000000 0 4 65536 4096 1 1 0\nwindows 0 "
	edges := strings.Join(slices.Repeat([]string{"5:bulk:0:0"}, queue.MaxWindowEdges+1), " ")
	for _, rest := range []string{"1000,1000,0", "1000,1000,0,1001", "1,1,1,1 5:bulk:0", "1,1,1,1 x:bulk:0:0", "1,1,1,1 5:all:0:0", "1,1,1,1 5:bulk:1001:0", "1,1,1,1 5:bulk:0:-1",
		"1,1,1,1 5:bulk:0:0 4:bulk:0:0", "1,1,1,1 " + edges} {
		_, err := replay.Replay(strings.NewReader(start + rest + "\n"))
		var at *replay.LineError
		if !errors.As(err, &at) || at.Line != 3 {
			t.Errorf("%q: %v", rest, err)
		}
	}
}
