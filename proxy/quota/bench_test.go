package quota

import (
	"fmt"
	"testing"
)

// BenchmarkExchange is what a request costs: an account, a quantum, the question.
func BenchmarkExchange(b *testing.B) {
	for name, l := range map[string]*Ledger{"none": New(Settings{Now: noon}), "limits": with(1<<50, 1<<50)} {
		for i := range 10000 {
			l.sends(fmt.Sprint("user:", i), 1)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Over("user:77", noon)
				a := l.Open("user:77")
				a.Add(16 << 10)
				a.Close()
			}
		})
	}
}

// BenchmarkQuantum is what each quantum costs while all cores send to one principal.
func BenchmarkQuantum(b *testing.B) {
	a := with(1<<62, 1<<62).Open("ann")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a.Add(16 << 10)
		}
	})
}

// BenchmarkFull is what a full ledger costs at midnight and at each Save, beside the file system.
func BenchmarkFull(b *testing.B) {
	l := with(1<<50, 1<<50)
	for i := range Capacity {
		l.sends(fmt.Sprint("user:", i), 1)
	}
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot(noon)
		}
	})
	b.Run("content", func(b *testing.B) {
		for b.Loop() {
			l.turn.Lock()
			l.contentLocked()
			l.turn.Unlock()
		}
	})
	b.Run("roll", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			l.Roll(noon.AddDate(0, 0, i%2))
		}
	})
}
