package quota

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

var (
	midnight = time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC)
	monday   = time.Date(2026, 12, 7, 0, 0, 0, 0, time.UTC)
	never    time.Time
)

func TestX9_ADayAndAWeekAreCountedByPrincipal(t *testing.T) {
	l := with(100, 250)
	l.sends("ann", 99)
	l.sends("bob", 100)
	l.stands(t, "ann", noon, never)
	l.stands(t, "bob", noon, midnight)
	l.stands(t, "eve", noon, never)
	l.sends("ann", 1)
	l.stands(t, "ann", noon, midnight)
	l.stands(t, "ann", midnight.Add(-time.Nanosecond), midnight)
	l.stands(t, "ann", midnight, never) // nobody waits for the tick
	l.Roll(midnight)
	l.stands(t, "ann", midnight, never)
	l.sends("ann", 99)
	l.stands(t, "ann", midnight, never)
	l.Roll(midnight.AddDate(0, 0, 1))
	l.sends("ann", 60) // the week has 259 now, the day 60
	l.stands(t, "ann", midnight.AddDate(0, 0, 1), monday)
	if e, _ := l.Over("ann", midnight.AddDate(0, 0, 1)); e.Period != Week {
		t.Errorf("over the quota of the %s", e.Period)
	}
	l.sends("ann", 60) // of both the later end counts
	l.stands(t, "ann", midnight.AddDate(0, 0, 1), monday)
	l.Roll(monday.Add(time.Hour))
	l.stands(t, "ann", monday.Add(time.Hour), never)
	l.healthy(t)
}

func TestX9_LimitsActAtOnceInBothDirections(t *testing.T) {
	l := with(100, 0)
	l.sends("ann", 150)
	l.stands(t, "ann", noon, midnight)
	for _, one := range []struct {
		rules Rules
		until time.Time
	}{
		{Rules{Default: Limits{DayBytes: 151}}, never},
		{Rules{Default: Limits{DayBytes: 150}}, midnight},
		{Rules{Default: Limits{DayBytes: 100}, Own: map[string]Limits{"ann": {DayBytes: 200}}}, never},
		{Rules{Default: Limits{DayBytes: 100}, Own: map[string]Limits{"ann": {}}}, never}, // its own: none
		{Rules{Own: map[string]Limits{"ann": {WeekBytes: 150}}}, monday},
		{Rules{Own: map[string]Limits{"bob": {WeekBytes: 1}}}, never},
		{Rules{}, never},
		{Rules{Default: Limits{WeekBytes: 1}}, monday},
	} {
		l.SetRules(one.rules, noon)
		l.stands(t, "ann", noon, one.until)
	}
	l.healthy(t)
}

func TestX9_WithoutALimitNothingIsCounted(t *testing.T) {
	l := New(Settings{Now: noon})
	if l.Counts() || l.Open("ann") != nil {
		t.Error("counted without rules")
	}
	l.SetRules(Rules{Own: map[string]Limits{"ann": {DayBytes: 10}, "bob": {}}}, noon)
	l.sends("bob", 5)
	l.sends("eve", 5)
	if a := l.Open("bob"); a != nil || !l.Counts() {
		t.Error("bob has no limit")
	}
	l.sends("ann", 5)
	if s := l.Snapshot(noon); s.Principals != 1 || s.Over != 0 {
		t.Errorf("%+v", s)
	}
	var none *Account
	none.Add(7)
	none.Close()
}

// What an exchange had opened before the rules were taken away and given back goes on to count.
func TestX9_AnOpenAccountLivesThroughChanges(t *testing.T) {
	l := with(100, 0)
	a := l.Open("ann")
	a.Add(60)
	l.SetRules(Rules{}, noon)
	a.Add(60)
	l.Roll(noon.Add(time.Hour))
	l.SetRules(Rules{Default: Limits{DayBytes: 100}}, noon.Add(time.Hour))
	l.stands(t, "ann", noon.Add(time.Hour), midnight)
	l.Roll(monday) // I3: without use in the new day and week, but open
	a.Add(100)
	l.stands(t, "ann", monday, monday.AddDate(0, 0, 1))
	a.Close()
	l.healthy(t)
}

func TestX9_TheZoneDecidesWhenItResets(t *testing.T) {
	berlin, tokyo := load(t, "Europe/Berlin"), load(t, "Asia/Tokyo")
	l := with(100, 0)
	l.sends("ann", 100)
	l.SetRules(Rules{Default: Limits{DayBytes: 100}, Zone: berlin}, noon) // the count stays: the present day is the present day
	l.stands(t, "ann", noon, midnight.Add(-time.Hour))
	l.SetRules(Rules{Default: Limits{DayBytes: 100}, Zone: tokyo}, noon)
	l.stands(t, "ann", noon, midnight.Add(-9*time.Hour))
	l.Roll(midnight.Add(-9 * time.Hour))
	l.stands(t, "ann", midnight.Add(-9*time.Hour), never)
	spring := time.Date(2026, 3, 28, 23, 30, 0, 0, time.UTC) // in Berlin the day of 23 hours
	l = New(Settings{Now: spring})
	l.SetRules(Rules{Default: Limits{100, 100}, Zone: berlin}, spring)
	l.sends("ann", 100)
	l.stands(t, "ann", spring, time.Date(2026, 3, 29, 22, 0, 0, 0, time.UTC))
	l.stands(t, "ann", spring.Add(22*time.Hour+29*time.Minute), time.Date(2026, 3, 29, 22, 0, 0, 0, time.UTC))
	l.stands(t, "ann", spring.Add(22*time.Hour+30*time.Minute), never)
}

func TestX9_AClockThatIsSetBackKeepsTheCounts(t *testing.T) {
	l := with(100, 0)
	l.sends("ann", 100)
	yesterday := noon.AddDate(0, 0, -1)
	l.Roll(yesterday)
	l.stands(t, "ann", yesterday, midnight.AddDate(0, 0, -1))
	l.Roll(noon) // a day begins
	l.stands(t, "ann", noon, never)
	l.sends("ann", 100)
	l.Roll(noon.AddDate(1, 0, 0)) // a clock that was wrong for a moment
	l.Roll(noon)
	l.stands(t, "ann", noon, never)
	l.sends("ann", 100)
	l.stands(t, "ann", noon, midnight)
	l.healthy(t)
}

func TestL3_AFullLedgerForgetsTheLeastUsed(t *testing.T) {
	l := New(Settings{Principals: shards, Now: noon}) // one account a shard
	l.SetRules(Rules{Default: Limits{DayBytes: 1000}}, noon)
	l.sends("heavy", 900)
	held := l.Open("held")
	held.Add(5)
	if s := l.Snapshot(noon); s.Open != 1 || s.Principals != 2 {
		t.Errorf("%+v", s)
	}
	for i := range 5000 {
		l.sends(fmt.Sprintf("stranger %d", i), int64(i%3))
	}
	s := l.Snapshot(noon)
	if s.Principals > shards || s.Forgotten == 0 || s.Uncounted == 0 {
		t.Errorf("%+v", s)
	}
	held.Add(995)
	l.stands(t, "held", noon, midnight)
	held.Close()
	l.healthy(t)
}

// With room for some, the heavy users among the open ones stay, whatever number of strangers comes: of a few accounts the least used makes way.
func TestL3_StrangersDoNotPushHeavyUsersOut(t *testing.T) {
	l := New(Settings{Principals: shards * evictTries, Now: noon})
	l.SetRules(Rules{Default: Limits{DayBytes: 1000}}, noon)
	for i := range 40 {
		l.sends(fmt.Sprintf("heavy %d", i), 1000)
	}
	for i := range 20000 {
		l.sends(fmt.Sprintf("stranger %d", i), 1)
	}
	for i := range 40 {
		l.stands(t, fmt.Sprintf("heavy %d", i), noon, midnight)
	}
	if s := l.Snapshot(noon); s.Over != 40 || s.Uncounted != 0 || s.Principals > shards*evictTries {
		t.Errorf("%+v", s)
	}
	l.healthy(t)
}

func TestL3_APeriodsBeginDropsTheUnused(t *testing.T) {
	l := with(100, 0)
	for i := range 100 {
		l.sends(fmt.Sprintf("day %d", i), 1)
	}
	l.Open("nothing").Close()
	l.Roll(midnight) // they have use in the week
	if s := l.Snapshot(midnight); s.Principals != 100 {
		t.Errorf("%+v", s)
	}
	l.Roll(monday)
	if s := l.Snapshot(monday); s.Principals != 0 || s.Over != 0 {
		t.Errorf("%+v", s)
	}
}

func TestX9_RefusalsAreCountedByPeriod(t *testing.T) {
	l := with(1, 1)
	l.Refused(Day)
	l.Refused(Week)
	l.Refused(Week)
	l.Refused(Period(9))
	if s := l.Snapshot(noon); s.Refused != [Periods]uint64{1, 2} || l.RefusedTotal() != 3 {
		t.Errorf("%+v", s)
	}
	if Day.String() != "day" || Week.String() != "week" {
		t.Error("the words of the periods are metric labels")
	}
}

func TestX9_CountingAllocatesNothing(t *testing.T) {
	l := New(Settings{Now: noon})
	own := map[string]Limits{}
	for i := range 1024 {
		own[fmt.Sprintf("user:%d", i)] = Limits{WeekBytes: 1 << 40}
	}
	for _, rules := range []Rules{{}, {Default: Limits{1 << 40, 1 << 42}}, {Own: own}} {
		l.SetRules(rules, noon)
		l.sends("user:7", 1)
		if n := testing.AllocsPerRun(100, func() {
			a := l.Open("user:7")
			a.Add(16 << 10)
			l.Over("user:7", noon)
			a.Close()
			l.Roll(noon)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// Everything at once: nothing is lost of what was counted while the rules, the files and the periods change.
func TestX9_CountingBesideEverythingElse(t *testing.T) {
	l := with(1<<40, 1<<40)
	path := t.TempDir() + "/quotas.json"
	const principals, rounds = 8, 300
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			for i := range rounds {
				l.sends(fmt.Sprint("p", (g+i)%principals), 3)
				l.Over(fmt.Sprint("p", i%principals), noon)
			}
		})
	}
	wait.Go(func() {
		for i := range 50 {
			l.SetRules(Rules{Default: Limits{1 << 40, int64(1+i) << 30}}, noon)
			l.Roll(noon.Add(time.Duration(i) * time.Minute))
			l.Snapshot(noon)
		}
	})
	wait.Go(func() {
		for range 20 {
			if err := l.Save(path); err != nil {
				t.Error(err)
			}
		}
	})
	wait.Wait()
	var total int64
	for i := range l.shards {
		for _, a := range l.shards[i].accounts {
			total += a.used(Week)
		}
	}
	if s := l.Snapshot(noon); s.Open != 0 {
		t.Errorf("%+v", s)
	}
	if total != 4*rounds*3 {
		t.Errorf("%d bytes counted, %d sent", total, 4*rounds*3)
	}
	l.healthy(t)
}
