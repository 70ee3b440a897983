package sim

import (
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// TestC2_ProfilesDoWhatWasMeasured pins per client what it does after a refusal, in a break, and in silence.
func TestC2_ProfilesDoWhatWasMeasured(t *testing.T) {
	for _, one := range []struct {
		name            string
		refusals        int // survived
		first, obeying  time.Duration
		breaks          int // survived
		bears30s, bears bool
	}{
		{"curl", 0, 0, 0, 0, true, true},
		{"curl-retry", 5, time.Second, 7 * time.Second, 5, true, true},
		{"wget", 0, 0, 0, 19, true, true},
		{"apt", 3, time.Second, time.Second, 3, false, false},
		{"npm", 2, 10 * time.Second, 10 * time.Second, 0, true, true},
		{"docker", 5, 250 * time.Millisecond, 250 * time.Millisecond, 5, true, true},
		{"docker-steps", 5, 5 * time.Second, 5 * time.Second, 5, true, true},
		{"crane", 2, time.Second, time.Second, 0, true, true},
		{"git-lfs", 8, 250 * time.Millisecond, 7 * time.Second, 8, false, false},
		{"aria2", 0, 0, 0, 4, true, false},
		{"aria2-wait", 4, 3 * time.Second, 3 * time.Second, 4, true, false},
	} {
		profile, ok := FindProfile(one.name)
		if !ok {
			t.Fatalf("no profile %s", one.name)
		}
		s := fleet(1, func(s *Settings) { s.Plain = []PlainMix{{one.name, 1}} })
		after := func(event func(*run, *client)) (survived int, pause time.Duration) {
			r, err := newRun(&s, queue.Ordered, populate(&s), nil)
			if err != nil {
				t.Fatal(err)
			}
			c := &r.clients[0]
			c.phase, r.away = present, 0
			event(r, c)
			pause = c.quiet
			for c.phase == present {
				survived++
				event(r, c)
			}
			return survived, pause
		}
		if n, pause := after(func(r *run, c *client) { r.again(c, 0) }); n != one.refusals || pause != one.first {
			t.Errorf("%s survives %d refusals, the first after %v, want %d and %v", one.name, n, pause, one.refusals, one.first)
		}
		if _, pause := after(func(r *run, c *client) { r.again(c, 6100*time.Millisecond) }); pause != one.obeying {
			t.Errorf("%s comes back %v after a refusal for 6.1 s, want %v", one.name, pause, one.obeying)
		}
		if n, _ := after(func(r *run, c *client) { r.finishWhole(c, transfer{stop: 1}, false) }); n != one.breaks {
			t.Errorf("%s survives %d breaks, want %d", one.name, n, one.breaks)
		}
		if (profile.Patience > 35*time.Second) != one.bears30s || (profile.Patience > 65*time.Second) != one.bears {
			t.Errorf("%s is silent for %v", one.name, profile.Patience)
		}
	}
}
