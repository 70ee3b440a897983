package proxy

import (
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/quota"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/queue"
)

// quotas are the counts of what principals were sent, and the file that keeps them (X9).
type quotas struct {
	*quota.Ledger
	faulty atomic.Bool // the counts cannot be kept

	// Of the goroutine that writes the file.
	problem string        // as last logged
	written time.Duration // on the queue's clock
}

// wallNow is the wall time that quotas go by.
func (p *Proxy) wallNow() time.Time {
	if p.set.wall != nil {
		return p.set.wall()
	}
	return wall()
}

// newQuotas goes on counting where the process before ended. A file that cannot be used is worth a warning: everybody counts from zero then.
func (p *Proxy) newQuotas() {
	now := p.wallNow()
	p.quotas.Ledger = quota.New(quota.Settings{Now: now})
	if p.set.StateDir != "" {
		p.toldQuotas(p.quotas.Load(quota.Path(p.set.StateDir), now))
	}
}

// toldQuotas logs that the counts cannot be kept, once for each cause.
func (p *Proxy) toldQuotas(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != p.quotas.problem && problem != "" {
		p.log.Warn().Str("variable", "ARKVORY_STATE_DIR").Str("problem", problem).Msg("the quotas' counts are not kept")
	}
	p.quotas.problem = problem
	p.quotas.faulty.Store(problem != "")
}

// keepQuotas writes the counts down, at most every quota.SaveEvery.
func (p *Proxy) keepQuotas() {
	if now := p.queue.Now(); now-p.quotas.written >= quota.SaveEvery {
		p.quotas.written = now
		p.saveQuotas()
	}
}

func (p *Proxy) saveQuotas() {
	if p.set.StateDir != "" {
		p.toldQuotas(p.quotas.Save(quota.Path(p.set.StateDir)))
	}
}

// setQuotas puts the quotas of the live settings in force.
func (p *Proxy) setQuotas(e live.Effective) {
	all := quota.Limits{DayBytes: e.Quotas.BytesPerDay, WeekBytes: e.Quotas.BytesPerWeek}
	own := make(map[string]quota.Limits, len(e.Principals))
	for id, rule := range e.Principals {
		limits := all
		if rule.BytesPerDay != live.Inherited {
			limits.DayBytes = rule.BytesPerDay
		}
		if rule.BytesPerWeek != live.Inherited {
			limits.WeekBytes = rule.BytesPerWeek
		}
		own[id] = limits
	}
	p.quotas.SetRules(quota.Rules{Default: all, Own: own, Zone: e.Quotas.Zone}, p.wallNow())
}

// setClasses puts the principals' classes of the live settings in force.
func (p *Proxy) setClasses(e live.Effective) {
	of := make(map[string]queue.Class, len(e.Principals))
	for id, rule := range e.Principals {
		if rule.HasClass {
			of[id] = rule.Class
		}
	}
	p.ids.SetClasses(of)
}

// openAccount lets the body that is about to be sent count for the principal's quotas. The upstream accepted its credentials by then: what is no success was asked
// for by anybody who knows a name (I2). Once an exchange; a response that is fed opens it when its head is sent.
func (x *exchange) openAccount() {
	if x.account == nil && (x.w == nil || x.w.Resp.Status/100 == 2) {
		x.account = x.p.quotas.Open(x.id.Principal)
	}
}

// quotaRetry bounds the Retry-After of a refusal over quota: clients that wait for a day in one piece are rare, and a limit that is raised should be seen.
const quotaRetry = time.Hour

// refusedSession refuses a request for a session that would be new while its principal is over a quota; false when it may go on, because the principal is not, or the
// request goes on with what its session has its slot for: running downloads finish, and fetch nothing twice and nothing more.
func (x *exchange) refusedSession(f object.Facts) bool {
	now, excess, over := x.overQuota()
	if !over || x.p.queue.Finishes(x.askFor(f)) {
		return false
	}
	x.refuseQuota(now, excess)
	return true
}

// refusedPlace refuses a large response outside of any session while its principal is over a quota.
func (x *exchange) refusedPlace() bool {
	now, excess, over := x.overQuota()
	if over {
		x.refuseQuota(now, excess)
	}
	return over
}

func (x *exchange) overQuota() (now time.Time, e quota.Excess, over bool) {
	if !x.p.quotas.Counts() {
		return now, e, false
	}
	now = x.p.wallNow()
	e, over = x.p.quotas.Over(x.id.Principal, now)
	return now, e, over
}

// quotaTexts are what people read, by period.
var quotaTexts = [quota.Periods]string{
	quota.Day:  "the download quota of this day is used up",
	quota.Week: "the download quota of this week is used up",
}

func (x *exchange) refuseQuota(now time.Time, e quota.Excess) {
	x.match()
	x.p.quotas.Refused(e.Period)
	x.refuse(refusal{status: x.profile.RefuseStatus, reason: telemetry.QuotaExceeded, message: quotaTexts[e.Period],
		retry: wholeSeconds(min(e.ResetsAt.Sub(now), quotaRetry)), quotaResetsAt: e.ResetsAt})
}
