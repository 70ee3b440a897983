package queue

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// promise is one answer with a known start, drawn evenly from all answers of a wait (reservoir sampling, Vitter 1985).
type promise struct {
	at               time.Duration
	raw, p50, latest float32 // seconds: the model's start before calibration, and what was told
	answers          uint16  // so far; it stops at its largest value
	checkDeci        uint16  // last told CheckIn in tenths of a second, rounded up
}

// offer puts the answer in with the probability one over the answers so far.
func (p *promise) offer(now time.Duration, number uint64, raw float64, v *Verdict) {
	p.answers = min(p.answers, 1<<16-2) + 1
	if mix(number^uint64(p.answers)<<40)%uint64(p.answers) == 0 {
		p.at, p.raw, p.p50, p.latest = now, float32(raw), float32(v.StartsIn.Seconds()), float32(v.LatestIn.Seconds())
	}
}

// Judgement of promises.
const (
	toleranceShare = 0.1
	tolerance      = time.Minute
)

// calibration turns the model's start into p10, p50 and p90 by what its earlier starts turned out to be: of the last errors at
// about the same horizon it takes the empirical quantiles (a conformal prediction, Vovk et al. 2005).
type calibration struct {
	bands [calibrationBands]errorBand
}

const (
	calibrationBands  = 20 // by the power of two of the horizon in seconds
	bandErrors        = 64 // errors remembered in each
	bandEnough        = 12 // errors that make a band speak for itself
	calibrationOffset = 10 // seconds added to the horizon that errors are relative to
)

// errorBand is the last relative errors at one horizon.
type errorBand struct {
	errors        [bandErrors]float64
	count, next   int
	p10, p50, p90 float64
}

type quantiles struct{ p10, p50, p90 float64 }

func bandOf(horizon float64) int {
	return min(bits.Len64(uint64(horizon)), calibrationBands-1)
}

// forecast returns the calibrated start for a raw one, in seconds. O(bands).
func (c *calibration) forecast(_ Class, raw float64) quantiles {
	own := bandOf(raw)
	scale := raw + calibrationOffset
	for _, i := range [...]int{own, own - 1, own + 1, own - 2, own + 2} {
		if i < 0 || i >= calibrationBands {
			continue
		}
		if b := &c.bands[i]; b.count >= bandEnough {
			q := quantiles{raw + b.p10*scale, raw + b.p50*scale, raw + b.p90*scale}
			return quantiles{max(q.p10, 0), max(q.p50, 0), max(q.p90, 0)}
		}
	}
	return quantiles{raw * 3 / 4, raw, raw * 5 / 4}
}

// judge compares the kept promise of a session that starts now with what happened, and learns from it.
func (c *calibration) judge(s *Scheduler, now time.Duration, ses *session) {
	p := &ses.sample
	if p.answers == 0 {
		return
	}
	actual := (now - p.at).Seconds()
	s.promises.Judged++
	if math.Abs(actual-float64(p.p50)) <= max(toleranceShare*float64(p.p50), tolerance.Seconds()) {
		s.promises.Within++
	}
	if actual <= float64(p.latest) {
		s.promises.Held++
	}
	raw := float64(p.raw)
	c.bands[bandOf(raw)].learn((actual - raw) / (raw + calibrationOffset))
	p.answers = 0
}

func (b *errorBand) learn(relative float64) {
	b.errors[b.next] = relative
	b.next = (b.next + 1) % bandErrors
	b.count = min(b.count+1, bandErrors)
	sorted := b.errors
	slices.Sort(sorted[:b.count])
	at := func(q float64) float64 { return sorted[min(int(q*float64(b.count)), b.count-1)] }
	b.p10, b.p50, b.p90 = at(0.1), at(0.5), at(0.9)
}
