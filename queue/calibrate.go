package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// promise is one answer with a known start, drawn evenly from all answers of a wait (reservoir sampling, Vitter 1985).
type promise struct {
	at          time.Duration
	p50, latest float32 // seconds: what was told
	shut        float32 // seconds of p50 in which the class was to be shut
	answers     uint16  // so far; it stops at its largest value
	checkDeci   uint16  // last told CheckIn in tenths of a second, rounded up
}

// offer puts the answer in with the probability one over the answers so far.
func (p *promise) offer(now time.Duration, number uint64, v *Verdict) {
	p.answers = min(p.answers, 1<<16-2) + 1
	if mix(number^uint64(p.answers)<<40)%uint64(p.answers) == 0 {
		p.at, p.shut, p.p50, p.latest = now, 0, float32(v.StartsIn.Seconds()), float32(v.LatestIn.Seconds())
	}
}

// Judgement of promises.
const (
	toleranceShare = 0.1
	tolerance      = time.Minute
)

// calibration turns the model's start, which is the p50, into an interval. It keeps the last errors of promises, relative to their
// horizon and weighted by how many answers each of them stands for, and takes their empirical quantiles (a conformal prediction,
// Vovk et al. 2005). The quantile behind p90 is itself steered by how often p90 held, so that nine of ten answers keep it also
// while the queue changes its ways (adaptive conformal inference, Gibbs and Candes 2021):
//
//	level += 0.02 weight (0.91 - held)          weight in units of the mean weight, at most 4
//
// Above 1 the interval reaches beyond the largest error: by (level - 1) times five distances of that from the median.
//
// Errors of all horizons are kept together: those of far starts become known only when these come, long after they would be
// needed.
type calibration struct {
	errors      [calibrationErrors]relativeError
	sorted      [calibrationErrors]relativeError // scratch
	count, next int
	meanWeight  float64
	level       float64
	p10, p90    float64 // relative errors
}

type relativeError struct{ error, weight float64 }

const (
	calibrationErrors = 128
	calibrationEnough = 12 // errors before which the interval is a quarter to either side
	calibrationOffset = 10 // seconds added to the horizon that errors are relative to
	calibrationGain   = 0.02
	calibrationTarget = 0.91
	levelLowest       = 0.7
	levelHighest      = 1.3
)

type quantiles struct{ p10, p50, p90 float64 }

// forecast returns the interval for a start, in seconds. O(1).
func (c *calibration) forecast(start float64) quantiles {
	if c.count < calibrationEnough {
		return quantiles{start * 3 / 4, start, start * 5 / 4}
	}
	scale := start + calibrationOffset
	return quantiles{min(max(start+c.p10*scale, 0), start), start, start + max(c.p90*scale, 0)}
}

// judge compares the kept promise of a session that starts now with what happened, and learns from it. O(errors).
func (c *calibration) judge(s *Scheduler, now time.Duration, ses *session) {
	p := &ses.sample
	if p.answers == 0 || p.at < s.haltEnded { // what a halt delayed says nothing about forecasts
		return
	}
	actual, told := (now - p.at).Seconds(), float64(p.p50)
	held := 0.0
	s.promises.Judged++
	if math.Abs(actual-told) <= max(toleranceShare*told, tolerance.Seconds()) {
		s.promises.Within++
	}
	if actual <= float64(p.latest) {
		s.promises.Held++
		held = 1
	}
	weight := float64(p.answers)
	p.answers = 0
	if c.count == 0 {
		c.meanWeight, c.level = weight, 0.9
	}
	c.meanWeight += (weight - c.meanWeight) / 50
	c.level += calibrationGain * min(weight/c.meanWeight, 4) * (calibrationTarget - held)
	c.level = min(max(c.level, levelLowest), levelHighest)
	actual, told = actual-s.calendar.wasShut(ses.class, p.at, now), told-float64(p.shut) // nothing is uncertain about a shut window
	c.errors[c.next] = relativeError{(actual - told) / (told + calibrationOffset), weight}
	c.next = (c.next + 1) % calibrationErrors
	c.count = min(c.count+1, calibrationErrors)
	c.p10, c.p90 = c.quantile(0.1), c.quantile(min(c.level, 1))
	if c.level > 1 {
		c.p90 += (c.level - 1) * 5 * (c.p90 - c.quantile(0.5))
	}
}

// quantile returns the weighted quantile of the errors.
func (c *calibration) quantile(level float64) float64 {
	sorted, total := c.sorted[:c.count], 0.0
	copy(sorted, c.errors[:c.count])
	slices.SortFunc(sorted, func(a, b relativeError) int { return cmp.Compare(a.error, b.error) })
	for i := range sorted {
		total += sorted[i].weight
	}
	for i, sum := 0, 0.0; i < len(sorted); i++ {
		if sum += sorted[i].weight; sum >= level*total {
			return sorted[i].error
		}
	}
	return sorted[len(sorted)-1].error
}
