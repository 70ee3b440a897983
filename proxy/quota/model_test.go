package quota

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sent is one line of the oracle's memory: it keeps everything and adds it up anew for each question.
type sent struct {
	at    time.Time
	who   string
	bytes int64
}

// oracle knows the rules by their words only.
type oracle struct {
	all   []sent
	rules Rules
}

func (o *oracle) over(who string, now time.Time) (until time.Time, over bool) {
	limits, own := o.rules.Own[who]
	if !own {
		limits = o.rules.Default
	}
	for p, in := range periodsOf(now, o.rules.Zone) {
		var used int64
		for _, one := range o.all {
			if one.who == who && in.holds(one.at) {
				used += one.bytes
			}
		}
		if limit := limits.of(Period(p)); limit > 0 && used >= limit && in.Until.After(until) {
			until, over = in.Until, true
		}
	}
	return until, over
}

// Random days of sending, asking, changing limits, waiting and restarting: the ledger agrees with an oracle that remembers every byte.
func TestX9_TheLedgerAgreesWithItsOracle(t *testing.T) {
	zones := []*time.Location{time.UTC, load(t, "Europe/Berlin"), load(t, "America/Havana")}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 20*24*60).Draw(t, "start")) * time.Minute)
		zone := rapid.SampledFrom(zones).Draw(t, "zone") // for good: a change of it keeps counts that the oracle would weigh anew
		who := rapid.Map(rapid.IntRange(0, 3), func(n int) string { return fmt.Sprint("p", n) })
		limits := rapid.Custom(func(t *rapid.T) Limits {
			return Limits{int64(rapid.IntRange(0, 3).Draw(t, "day") * 50), int64(rapid.IntRange(0, 3).Draw(t, "week") * 120)}
		})
		o := &oracle{rules: Rules{Default: Limits{DayBytes: 50, WeekBytes: 120}, Zone: zone}}
		// A principal without any limit is not counted, which is a rule of its own: here all have one, be it out of reach.
		settle := func(l Limits) Limits {
			if l.none() {
				l.WeekBytes = 1 << 50
			}
			return l
		}
		l := New(Settings{Now: now})
		l.SetRules(o.rules, now)
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				one := sent{now, who.Draw(t, "who"), int64(rapid.IntRange(0, 40).Draw(t, "bytes"))}
				l.sends(one.who, one.bytes)
				o.all = append(o.all, one)
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 40*60).Draw(t, "minutes")) * time.Minute)
				if rapid.Bool().Draw(t, "asked first") {
					l.Over("p0", now)
				}
				l.Roll(now)
			},
			"limit": func(t *rapid.T) {
				o.rules = Rules{Default: settle(limits.Draw(t, "default")), Own: map[string]Limits{"p1": settle(limits.Draw(t, "own"))}, Zone: zone}
				l.SetRules(o.rules, now)
			},
			"restart": func(t *rapid.T) {
				f, _ := l.contentLocked()
				text, err := json.Marshal(f) // the file, without the disk
				if err != nil {
					t.Fatal(err)
				}
				if f, err = parse(text); err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Duration(rapid.IntRange(0, 30*60).Draw(t, "down")) * time.Minute)
				l = New(Settings{Now: now})
				l.takeOver(f, now)
				l.SetRules(o.rules, now)
			},
			"": func(t *rapid.T) {
				for i := range 4 {
					name := fmt.Sprint("p", i)
					e, over := l.Over(name, now)
					if until, want := o.over(name, now); over != want || !e.ResetsAt.Equal(until) {
						t.Fatalf("%s at %v: over %v until %v, the oracle says %v until %v", name, now, over, e.ResetsAt, want, until)
					}
				}
			},
		})
	})
}
