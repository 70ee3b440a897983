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

// charge takes n bytes and returns the moment at which they count. The caller has checked when(n) <= now. For a stream
// that waited, due is the moment at which its turn and its tokens had come; a stream that asks just now has not waited.
func (a *account) charge(n int64, due, now time.Duration, waited bool) time.Duration {
	if !a.on {
		return now
	}
	floor := now - a.lag
	if waited {
		floor = max(due, now-a.maxLag)
	}
	moment := max(a.bucket.When(n), floor)
	if !waited && a.bucket.FullAt() < moment {
		moment = now
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
