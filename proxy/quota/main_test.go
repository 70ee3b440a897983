package quota

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is a Wednesday.
var noon = time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)

// with is a ledger of those limits for everybody, at noon.
func with(day, week int64) *Ledger {
	l := New(Settings{Now: noon})
	l.SetRules(Rules{Default: Limits{day, week}}, noon)
	return l
}

// sends counts n bytes of a principal, as an exchange does.
func (l *Ledger) sends(principal string, n int64) {
	a := l.Open(principal)
	defer a.Close()
	a.Add(n)
}

// stands fails the test unless the principal is over at that moment, until that one; the zero time is not over.
func (l *Ledger) stands(t *testing.T, principal string, now, until time.Time) {
	t.Helper()
	e, over := l.Over(principal, now)
	if over != !until.IsZero() || !e.ResetsAt.Equal(until) {
		t.Errorf("%s at %v: over %v until %v, want until %v", principal, now, over, e.ResetsAt, until)
	}
	if over && !e.ResetsAt.After(now) {
		t.Errorf("%s at %v: it resets in the past, %v", principal, now, e.ResetsAt)
	}
}

// healthy fails the test when an invariant is broken.
func (l *Ledger) healthy(t testing.TB) {
	t.Helper()
	for i := range l.shards {
		s := &l.shards[i]
		if len(s.accounts) > l.each {
			t.Errorf("I2: %d accounts in a shard of %d", len(s.accounts), l.each)
		}
		for name, a := range s.accounts {
			for p := range Period(Periods) {
				if mark := a.marks[p].Load(); mark < 0 || mark > a.bytes.Load() {
					t.Errorf("I1: %s has the %s's mark %d of %d bytes", name, p, mark, a.bytes.Load())
				}
			}
			if open := a.open.Load(); open < 0 {
				t.Errorf("%s is open %d times", name, open)
			}
		}
	}
}
