package queue

import "time"

// contact notes that the client of a waiting session is here and returns what it is told.
func (s *Scheduler) contact(now time.Duration, ses *session) Verdict {
	if ses.state == parked {
		return s.contactParked(now, ses)
	}
	if !ses.told {
		ses.told = true
		s.counts.Queued++
	}
	s.model.refresh(s, now, false)
	ahead, bytes := s.place(ses, false)
	v := Verdict{Outcome: Queued, Class: ses.class, Position: ahead + 1, Waited: now - ses.since, Arrival: ses.arrival}
	if s.halted() { // nobody knows how long
		v.CheckIn = s.haltCheck(ses, ahead)
		s.expect(now, ses, v.CheckIn)
		return v
	}
	s.estimate(now, ses, ahead, bytes, &v)
	windowAll, windowCommon := s.windows()
	if ses.class != Interactive {
		windowAll = windowCommon
	}
	head := ahead < windowAll && !s.calendar.bars[ses.class]
	if head && s.gathering() {
		v.CheckIn = max(s.gatherUntil-now, headFloor) + time.Duration(mix(ses.number)%1024)*(gatherSpread/1024)
	} else {
		v.CheckIn = s.soonInGrace(ahead, s.check(ses, v, head || ahead == 0 && s.takesOver(now, ses)))
	}
	s.expect(now, ses, v.CheckIn)
	return v
}

// expect notes that the client of a waiting session was told to come again in that time.
func (s *Scheduler) expect(now time.Duration, ses *session, checkIn time.Duration) {
	ses.noShowAt = now + checkIn + checkIn/2 + noShowMargin
	ses.sample.checkDeci = uint16((checkIn + 99*time.Millisecond) / (100 * time.Millisecond))
	s.plan(ses)
}

// expected reports whether the client of a waiting session is here, or was told to come soon.
func (s *Scheduler) expected(now time.Duration, ses *session) bool {
	return ses.held() > 0 || ses.noShowAt > 0 && ses.checkAt() <= now+checkFloor
}

// checkAt is when the client of a waiting session was told to come, a tenth of a second early at most.
func (s *session) checkAt() time.Duration {
	return s.noShowAt - noShowMargin - time.Duration(s.sample.checkDeci)*50*time.Millisecond
}

// check is when a waiting client asks again: at the first contact soon (a crowd that comes at once is spread over a few
// seconds, as far as none of it starts before), then halfway to the start, spread per session over the last quarter before that.
func (s *Scheduler) check(ses *session, v Verdict, head bool) time.Duration {
	half, floor := v.StartsIn/2, checkFloor
	if !v.EstimateKnown {
		half = max(unknownCheck, s.opensIn(ses.class)/2)
	}
	if ses.noShowAt == 0 {
		crowd := min(max(half-firstCheck, 0), firstSpread)
		return firstCheck + time.Duration(mix(ses.number)%1024)*(crowd/1024)
	}
	if head {
		floor = headFloor
		if !v.EstimateKnown {
			half = checkFloor
		}
	}
	half = min(half, checkCeiling)
	spread := time.Duration(mix(ses.number)%1024) * (half / 4096)
	return max(half-spread, floor)
}

// longestPromise bounds what is told; beyond it the start is unknown.
const longestPromise = 365 * 24 * time.Hour

// estimate fills in the forecast for a session with that many sessions and bytes ahead, and keeps the promise for judgement.
func (s *Scheduler) estimate(now time.Duration, ses *session, ahead int, bytes int64, v *Verdict) {
	byClass := s.model.classes.on || s.calendar.some && s.windowsMatter(now)
	if byClass && (!s.model.classes.on || s.model.classes.count[ses.lifted] == 0) { // the first of its class
		s.model.measure(s, now)
		s.model.walk(s, now)
	}
	shut := s.foretell(now, ses, ahead, bytes, v)
	if !v.EstimateKnown {
		return
	}
	if ses.promised < 0 {
		ses.promised = float32((v.Waited + v.StartsIn).Seconds())
	}
	ses.sample.offer(now, ses.number, v)
	if byClass && ses.sample.at == now {
		ses.sample.shut = shut
	}
}

// foretell is estimate without keeping anything. Shut is how much of the time to the start its class is shut, in seconds, where the forecast is by class.
func (s *Scheduler) foretell(now time.Duration, ses *session, ahead int, bytes int64, v *Verdict) (shut float32) {
	switch {
	case s.model.classes.on:
		return s.foretellByClass(now, ses, v)
	case s.calendar.some && s.windowsMatter(now):
		return 0 // the forecast is not made for that: the next contact or tick makes it
	}
	if head := ses.yieldTo(); head != nil {
		if n, sum := s.place(head, false); n > ahead {
			ahead, bytes = n, sum // the head goes first, and this one when that would have
		}
	}
	start := min(s.model.startOf(ahead, bytes)/s.rate.busy(), s.model.lastStart(ahead))
	start -= max(now-max(s.model.at, s.gatherUntil), 0).Seconds() // nobody starts while those who come back are gathered
	if !(start < longestPromise.Seconds()) {
		return 0
	}
	start = max(start, 0)
	f := s.calibration.forecast(start)
	if ahead >= s.model.n {
		// Beyond the walk it is not known in which phase of their downloads the others are.
		const ninth = 1.28 // standard deviations to the ninth decile
		f.p90 += ninth * s.model.spread / s.model.peak
		f.p10 = max(f.p10-ninth*s.model.spread/s.model.peak, 0)
	}
	v.EstimateKnown = true
	v.StartsIn, v.EarliestIn, v.LatestIn = seconds(f.p50), seconds(f.p10), seconds(min(f.p90, longestPromise.Seconds()))+TickEvery
	if rest := s.gatherUntil - now; rest > 0 {
		v.StartsIn, v.EarliestIn, v.LatestIn = v.StartsIn+rest, v.EarliestIn+rest, v.LatestIn+rest
	}
	return 0
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// limitCheck is the Retry-After of a request that a full queue refuses.
func (s *Scheduler) limitCheck(key Key) time.Duration {
	return limitCheckLow + time.Duration(mix(hashOf(key))%1024)*((limitCheckHigh-limitCheckLow)/1024)
}

// hashOf is a hash of a key that is the same in every process (FNV-1a).
func hashOf(key Key) uint64 {
	var h uint64 = 14695981039346656037
	for _, part := range [...]string{key.Principal, key.Object, key.Client} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	return h
}
