package quota

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are the quotas of one principal in bytes; 0 = none.
type Limits struct{ DayBytes, WeekBytes int64 }

func (l Limits) none() bool { return l.DayBytes <= 0 && l.WeekBytes <= 0 }

// of returns the limit of a period.
func (l Limits) of(p Period) int64 {
	if p == Week {
		return l.WeekBytes
	}
	return l.DayBytes
}

// Rules are the limits in force. They are immutable once they were given to SetRules.
type Rules struct {
	Default Limits            // of every principal that Own does not name
	Own     map[string]Limits // by principal id, whole: what is inherited is filled in
	Zone    *time.Location    // of the days and weeks; nil = UTC
}

// limits returns those of a principal.
func (r *Rules) limits(principal string) Limits {
	if own, ok := r.Own[principal]; ok {
		return own
	}
	return r.Default
}

// counts reports whether anybody has a limit.
func (r *Rules) counts() bool {
	if !r.Default.none() {
		return true
	}
	for _, own := range r.Own {
		if !own.none() {
			return true
		}
	}
	return false
}

// Capacity is how many principals are counted when Settings does not say.
const Capacity = 65536

// shards is a power of two; each has a lock of its own, held for a look into a map.
const shards = 64

// Settings of a Ledger.
type Settings struct {
	// Principals is how many are counted at most, 0 = Capacity. It is rounded up to a multiple of 64.
	Principals int
	// Now is the wall time of the start.
	Now time.Time
}

// Ledger counts by principal. Create it with New. It is safe for concurrent use.
type Ledger struct {
	each   int // accounts of a shard at most
	seed   maphash.Seed
	shards [shards]shard

	rules   atomic.Pointer[inForce] // nil while nobody has a limit
	periods atomic.Pointer[periods] // never nil

	refused              [Periods]atomic.Uint64
	forgotten, uncounted atomic.Uint64

	saving sync.Mutex // one Save at a time; before turn
	saved  mark       // of saving: what the file holds

	turn sync.Mutex // one Roll, SetRules or Load at a time; before a shard's lock; nothing waits for a disk under it but Load, which comes first
	zone *time.Location
}

// inForce is Rules that somebody is counted by.
type inForce struct{ Rules }

type shard struct {
	mu       sync.Mutex
	accounts map[string]*Account
	_        [48]byte // a cache line of its own: neighbours are locked by other cores
}

// New returns a ledger without rules and without counts.
func New(s Settings) *Ledger {
	capacity := s.Principals
	if capacity <= 0 {
		capacity = Capacity
	}
	l := &Ledger{each: (capacity + shards - 1) / shards, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].accounts = map[string]*Account{}
	}
	p := periodsOf(s.Now, nil)
	l.periods.Store(&p)
	return l
}

// SetRules puts limits in force from the next question on, at that wall time. The counts stay, also when the zone changes. Whoever is sent something now
// and had no limit before is counted from its next response on.
func (l *Ledger) SetRules(r Rules, now time.Time) {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.rollLocked(now)
	if l.zone = r.Zone; l.zone == nil {
		l.zone = time.UTC
	}
	p := periodsOf(now, l.zone)
	l.periods.Store(&p)
	if !r.counts() {
		l.rules.Store(nil)
		return
	}
	l.rules.Store(&inForce{r})
}

// Counts reports whether anybody has a limit: one atomic load.
func (l *Ledger) Counts() bool { return l.rules.Load() != nil }

// Open returns the account of a principal that has a limit, for one exchange, which must Close it; nil for all others, and for a newcomer that has no place
// (see the package doc). All methods of a nil account do nothing.
func (l *Ledger) Open(principal string) *Account {
	rules := l.rules.Load()
	if rules == nil || rules.limits(principal).none() {
		return nil
	}
	s := l.shard(principal)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[principal]
	if a == nil {
		if a = l.addLocked(s, principal); a == nil {
			l.uncounted.Add(1)
			return nil
		}
	}
	a.open.Add(1)
	return a
}

func (l *Ledger) shard(principal string) *shard {
	return &l.shards[maphash.String(l.seed, principal)%shards]
}

// addLocked makes an account, at the expense of another one where the shard is full; nil when all of a few others are open.
func (l *Ledger) addLocked(s *shard, principal string) *Account {
	if len(s.accounts) >= l.each && !l.evictLocked(s) {
		return nil
	}
	a := &Account{}
	s.accounts[principal] = a
	return a
}

// evictTries is how many accounts are looked at for one that makes way: the order of a map is a random one.
const evictTries = 16

func (l *Ledger) evictLocked(s *shard) bool {
	victim, least, tries := "", int64(-1), 0
	for name, a := range s.accounts {
		if a.open.Load() == 0 {
			if used := max(a.used(Day), a.used(Week)); least < 0 || used < least {
				victim, least = name, used
			}
		}
		if tries++; tries == evictTries || least == 0 {
			break
		}
	}
	if least < 0 {
		return false
	}
	if least > 0 {
		l.forgotten.Add(1)
	}
	delete(s.accounts, victim)
	return true
}

// Excess is a quota that is used up.
type Excess struct {
	Period   Period    // whose quota; of both the one that resets later
	ResetsAt time.Time // the end of that period, in UTC; always after the moment of the question
}

// Over reports whether a principal has used up a quota at that wall time. It allocates nothing; without rules it is one atomic load.
func (l *Ledger) Over(principal string, now time.Time) (e Excess, over bool) {
	rules := l.rules.Load()
	if rules == nil {
		return e, false
	}
	limits := rules.limits(principal)
	if limits.none() {
		return e, false
	}
	s := l.shard(principal)
	s.mu.Lock()
	a := s.accounts[principal]
	s.mu.Unlock()
	if a == nil {
		return e, false
	}
	return a.over(limits, l.periods.Load(), now)
}

// over judges an account.
func (a *Account) over(limits Limits, in *periods, now time.Time) (e Excess, over bool) {
	for p := range Period(Periods) {
		limit := limits.of(p)
		if until := in[p].Until; limit > 0 && now.Before(until) && a.used(p) >= limit {
			e, over = Excess{p, until}, true // the week is the later one: no week ends before its day
		}
	}
	return e, over
}

// Refused counts that somebody was refused because of an excess.
func (l *Ledger) Refused(p Period) {
	if int(p) < Periods {
		l.refused[p].Add(1)
	}
}

// Roll begins the periods that hold that wall time, where they are others than those counted in. It returns at once in the middle of a day; at
// its end it costs a look at every account, with one shard locked at a time.
func (l *Ledger) Roll(now time.Time) {
	if in := l.periods.Load(); in[Day].holds(now) && in[Week].holds(now) {
		return
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	l.rollLocked(now)
}

func (l *Ledger) rollLocked(now time.Time) {
	before, next := *l.periods.Load(), periodsOf(now, l.zone)
	var begun [Periods]bool
	for p := range begun {
		begun[p] = !next[p].From.Before(before[p].Until) // a clock that was set back begins nothing
	}
	if next[Day].equal(before[Day]) && next[Week].equal(before[Week]) {
		return
	}
	for i := range l.shards {
		l.shards[i].begin(begun)
	}
	l.periods.Store(&next) // last: with the old ones nobody is over whose period has ended
}

// begin moves the marks of all accounts to where they are, and drops those without use.
func (s *shard) begin(begun [Periods]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range s.accounts {
		for p := range begun {
			if begun[p] {
				a.marks[p].Store(a.bytes.Load())
			}
		}
		if a.open.Load() == 0 && a.used(Day) == 0 && a.used(Week) == 0 {
			delete(s.accounts, name)
		}
	}
}

// Snapshot is the state of a ledger.
type Snapshot struct {
	Principals int             // that are counted
	Over       int             // of them have used up a quota
	Open       int             // exchanges that count now
	Refused    [Periods]uint64 // by the quota that refused
	Forgotten  uint64          // accounts with use that made way for others
	Uncounted  uint64          // responses that no account could be made for
}

// Snapshot returns the state at that wall time. It looks at every account, with one shard locked at a time: for pages that are asked for now and then.
func (l *Ledger) Snapshot(now time.Time) Snapshot {
	out := Snapshot{Forgotten: l.forgotten.Load(), Uncounted: l.uncounted.Load()}
	for p := range out.Refused {
		out.Refused[p] = l.refused[p].Load()
	}
	rules, in := l.rules.Load(), l.periods.Load()
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		out.Principals += len(s.accounts)
		for name, a := range s.accounts {
			out.Open += int(a.open.Load())
			if rules == nil {
				continue
			}
			if _, over := a.over(rules.limits(name), in, now); over {
				out.Over++
			}
		}
		s.mu.Unlock()
	}
	return out
}

// RefusedTotal returns how often somebody was refused: two atomic loads.
func (l *Ledger) RefusedTotal() (n uint64) {
	for p := range l.refused {
		n += l.refused[p].Load()
	}
	return n
}

// Account is the counter of one principal. A nil account counts nothing. It is safe for concurrent use.
type Account struct {
	bytes atomic.Int64          // ever; only grows
	marks [Periods]atomic.Int64 // of bytes, where the present period began
	open  atomic.Int32          // exchanges that count here; raised under the shard's lock only
}

// Add counts n >= 0 bytes that were sent: one atomic addition.
func (a *Account) Add(n int64) {
	if a != nil {
		a.bytes.Add(n)
	}
}

// Close gives the account back that Open returned. Once for each Open.
func (a *Account) Close() {
	if a != nil {
		a.open.Add(-1)
	}
}

// used returns what was sent since the period began. The mark is read first: it only grows to what bytes was before.
func (a *Account) used(p Period) int64 {
	mark := a.marks[p].Load()
	return a.bytes.Load() - mark
}
