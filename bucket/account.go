package bucket

import "time"

// account is a bucket of the governor together with the lag of its moments of charge behind the real ones (see "Late
// wake-ups" in the package doc). An account that is off charges nothing and is always due.
//
// Invariants: I1 0 <= lag <= maxLag; I2 maxLag is 0 for a limit with head-room, so that it charges in real time.
type account struct {
	bucket Bucket
	on     bool
	lag    time.Duration
	maxLag time.Duration
}

func newAccount(l Limit, now time.Duration) account {
	if l.Off() {
		return account{}
	}
	a := account{bucket: NewBucket(l, now), on: true}
	if !l.hasHeadroom() {
		a.maxLag = MaxLateness
	}
	return a
}

// when returns the first moment at which n bytes can be charged, 0 when the account is off.
func (a *account) when(n int64) time.Duration {
	if !a.on {
		return 0
	}
	return a.bucket.When(n)
}

// full reports whether the account has no memory worth keeping at now.
func (a *account) full(now time.Duration) bool { return !a.on || a.bucket.FullAt() <= now }

// charge takes n bytes for a stream that asked at a moment and returns the one at which they count. The caller has checked when(n) <= now. due
// is when its tokens had come in all buckets; a stream that asks just now has not waited.
func (a *account) charge(n int64, asked, due, now time.Duration) time.Duration {
	if !a.on {
		return now
	}
	if a.maxLag == 0 {
		a.bucket.Take(n, now)
		return now
	}
	floor := now - a.lag
	if asked < now {
		floor = max(asked, now-a.maxLag)
	}
	moment := max(a.bucket.When(n), floor)
	if moment == floor && a.bucket.FullAt() < moment { // it overflowed: what its own time brought is not made up
		moment = max(due, floor)
	}
	a.lag = now - moment
	a.bucket.Take(n, moment)
	return moment
}

func (a *account) configure(l Limit, now time.Duration) {
	if l.Off() || !a.on {
		*a = newAccount(l, now)
		return
	}
	a.bucket.Configure(l, now)
	a.lag, a.maxLag = 0, 0
	if !l.hasHeadroom() {
		a.maxLag = MaxLateness
	}
}

func (a *account) drain(now time.Duration) {
	if a.on {
		a.bucket.Drain(now)
		a.lag = 0
	}
}
