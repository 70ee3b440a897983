package sim

import "time"

// tolerance of a promised start: a tenth of the wait it promised, or a minute.
const tolerance = time.Minute

// horizons are the upper ends of the buckets in which promises are reported; the last has none.
var horizons = [...]time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, never}

var horizonNames = [...]string{"under 1 min", "1..10 min", "10..60 min", "1..6 h", "over 6 h"}

// promise is what one answer said about the start.
type promise struct{ at, startsIn, latestIn time.Duration }

// ledger is the promises that one client was told and that are not judged yet. All are kept up to a bound; at the bound every second
// one is dropped and the others count twice, and so on, so that memory stays bounded however often a client asks.
type ledger struct {
	kept []promise
	thin uint8  // each kept one stands for 2^thin
	skip uint32 // answers until the next one is kept
}

// Bounds of the promises kept: of all clients together, of one at least and at most.
const (
	promisesKept  = 1 << 22
	promisesLeast = 16
	promisesMost  = 1 << 16
)

// promisesEach is how many promises of each of so many clients are kept.
func promisesEach(clients int) int {
	return min(max(promisesKept/clients, promisesLeast), promisesMost)
}

func (l *ledger) note(p promise, most int) {
	if l.skip > 0 {
		l.skip--
		return
	}
	if len(l.kept) >= most {
		half := l.kept[:0]
		for i := 0; i < len(l.kept); i += 2 {
			half = append(half, l.kept[i])
		}
		l.kept = half
		l.thin++
	}
	l.kept = append(l.kept, p)
	l.skip = 1<<l.thin - 1
}

func (l *ledger) reset() { *l = ledger{kept: l.kept[:0]} }

// verdicts are promises by horizon: those that could be judged, and those of them that were true.
type verdicts struct {
	starts, within [len(horizons)]uint64
	ends, held     [len(horizons)]uint64
	open           uint64 // nobody will know: their client left or gave up before the told time
}

// judge compares the promises of a client that starts now, or (gone) ends now without a start. The start of the latter would have
// come later than now: what had to happen before is broken, about the rest nothing is known.
func (v *verdicts) judge(l *ledger, now time.Duration, gone bool) {
	weight := uint64(1) << l.thin
	for i := range l.kept {
		p := &l.kept[i]
		waited, h := now-p.at, 0
		for p.startsIn >= horizons[h] {
			h++
		}
		slack := max(tolerance, p.startsIn/10)
		late, beyond := waited > p.startsIn+slack, waited > p.latestIn
		if gone && !late && !beyond {
			v.open += weight
		}
		if !gone || late {
			v.starts[h] += weight
			if !late && waited >= p.startsIn-slack {
				v.within[h] += weight
			}
		}
		if !gone || beyond {
			v.ends[h] += weight
			if !beyond {
				v.held[h] += weight
			}
		}
	}
	l.reset()
}
