package sim

import (
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// TestExtremeFleetsEnd: whatever the settings allow ends with a result that adds up; simulated checks the sums, the run itself the balance
// of the link, the core's invariants and that nothing is left over.
func TestExtremeFleetsEnd(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"one client of one byte":    func(s *Settings) { s.Clients, s.Size = 1, Sizes{1, 1} },
		"bytes, not files":          func(s *Settings) { s.Size = Sizes{1, 10} },
		"equal sizes at one moment": func(s *Settings) { s.Size, s.Arrivals.Over = Sizes{5e8, 5e8}, 0 },
		"one slot":                  func(s *Settings) { s.Policy = queue.DefaultPolicy(1); s.Gate.Capacity, s.Gate.PerPrincipal = 1, 1 },
		"1024 slots":                func(s *Settings) { s.Clients, s.Policy, s.Size = 1100, queue.DefaultPolicy(1024), Sizes{2e7, 4e7} },
		"1 Mbit/s":                  func(s *Settings) { s.LinkBytesPerSecond, s.Size = 125e3, Sizes{2e7, 4e7} },
		"1 kB/s":                    func(s *Settings) { s.LinkBytesPerSecond, s.Size, s.Clients = 1e3, Sizes{2e7, 4e7}, 10 },
		"10 Gbit/s":                 func(s *Settings) { s.LinkBytesPerSecond, s.Size = 125e7, Sizes{1e9, 1e10} },
		"the fastest link":          func(s *Settings) { s.LinkBytesPerSecond, s.Size = 1e15, Sizes{1e12, 1e13}; s.RangeBytes = 1 << 36 },
		"petabytes": func(s *Settings) {
			s.Clients, s.LinkBytesPerSecond, s.Size, s.RangeBytes = 5, 1e12, Sizes{MaxSize / 2, MaxSize}, 1<<42
		},
		"ranges of the least size":   func(s *Settings) { s.RangeBytes, s.RangesAtOnce, s.Size = 1<<16, maxAtOnce, Sizes{2e7, 4e7} },
		"all plain":                  func(s *Settings) { s.Plain = []PlainMix{{"curl", 0.5}, {"git-lfs", 0.5}} },
		"all behind one address":     func(s *Settings) { s.Plain, s.NATClients = []PlainMix{{"curl-retry", 1}}, 1000 },
		"one principal":              func(s *Settings) { s.ClientsPerPrincipal = 1000 },
		"all vanish waiting":         func(s *Settings) { s.LeaveWaiting = 1 },
		"all vanish in mid-download": func(s *Settings) { s.LeaveMidway = 1 },
		"all vanish somehow": func(s *Settings) {
			s.LeaveMidway, s.LeaveWaiting, s.Plain, s.NATClients = 1, 1, []PlainMix{{"apt", 0.5}}, 3
		},
		"every connection breaks": func(s *Settings) { s.BreaksPerGiB = 1000 },
		"a budget without end":    func(s *Settings) { s.BreaksPerGiB, s.Faults, s.RequestFaults, s.RangeBytes = 20, 1e6, 1e6, 8<<20 },
		"no holds, no waits":      func(s *Settings) { s.Hold, s.HoldLimit, s.Gate.WaitLimit = 0, 0, 0; s.Plain = []PlainMix{{"apt", 0.5}} },
		"all slow":                func(s *Settings) { s.Slow = Share{1, 1e6}; s.Policy.SessionsElastic = 1024 },
		"a full queue":            func(s *Settings) { s.Policy.QueueLimit, s.Policy.QueuePerPrincipal = 16, 1 },
		"no sessions":             func(s *Settings) { s.Policy.SessionMinBytes = queue.MaxSessionMinBytes },
		"hours without anybody":   func(s *Settings) { s.Clients, s.Arrivals = 10, Arrivals{Kind: Poisson, PerHour: 0.1} },
		"a flood":                 func(s *Settings) { s.Arrivals = Arrivals{Kind: Poisson, Load: 100} },
		"aging every second": func(s *Settings) {
			s.Policy.AgingEvery = time.Second
			s.Classes = []Mix{{Class: queue.Background, Part: 1}}
		},
	} {
		s := fleet(60, change)
		s.InvariantsEvery = time.Hour
		for _, strategy := range everyStrategy {
			t.Run(name+"/"+strategy.String(), func(t *testing.T) {
				t.Parallel()
				simulated(t, s, strategy)
			})
		}
	}
}
