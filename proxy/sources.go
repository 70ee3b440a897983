package proxy

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/proxy/upstream/control"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

// snapshots are what a metrics page reads. The functions run after New has finished.
func (p *Proxy) snapshots() telemetry.Snapshots {
	return telemetry.Snapshots{
		RequestsInFlight: p.Busy,
		ConnectionsOpen:  func() int { return p.front.Open() },
		HeldRequests:     p.holds.taken,
		Sessions: func() telemetry.Sessions {
			s := p.queue.Snapshot()
			return telemetry.Sessions{Slots: s.Slots, Elastic: elastic(s), Active: s.ActiveTotal(), Waiting: [telemetry.ClassCount]int(s.Waiting),
				OldestWaitSeconds: s.OldestWait.Seconds(), PromisesJudged: s.Promises.Judged, PromisesWithin: s.Promises.Within,
				Paused: [telemetry.ClassCount]int(s.Stopped), Mode: int(s.Policy.Mode),
				Actions:     [4]uint64{s.Counts.Moved, s.Counts.Paused, s.Counts.Resumed, s.Counts.Kicked},
				RejectedNew: s.Counts.RejectedNew, WouldWait: s.Counts.WouldWait, WouldWaitSeconds: s.Counts.WouldWaitFor.Seconds(),
				PromisesHeld: s.Promises.Held, TickSeconds: s.TickDuration.Seconds()}
		},
		Drips: func() telemetry.Drips {
			s := p.drips.Snapshot()
			return telemetry.Drips{Running: s.Running, Started: s.Started, Cut: s.Cut, Bytes: s.Bytes, Pieces: [3]uint64{s.Fetched, s.Shared, s.Failed}}
		},
		Admission: func(d telemetry.Direction) telemetry.Admission {
			s := p.gate(d).Snapshot()
			return telemetry.Admission{Active: s.Active, Waiting: s.Waiting, Capacity: s.Capacity,
				Rejected: s.Rejected, TimedOut: s.TimedOut, Cancelled: s.Cancelled}
		},
		Bandwidth: func(d telemetry.Direction) telemetry.Bandwidth {
			s := p.governor(d).Snapshot()
			return telemetry.Bandwidth{BytesPerSecond: s.BytesPerSecond, Waiting: s.Waiting, GrantedBytes: s.GrantedBytes}
		},
		FilesFaulty: func() (principals, clients bool) {
			return p.ids.Problem() != "", p.clients.Problem() != ""
		},
		Quotas: func() telemetry.Quotas {
			return telemetry.Quotas{Snapshot: p.quotas.Snapshot(p.wallNow()), Faulty: p.quotas.faulty.Load()}
		},
		UpstreamConnections: p.upstreamConnections,
		Upstream:            p.upstreamState,
	}
}

func (p *Proxy) gate(d telemetry.Direction) *admission.Gate {
	if d == telemetry.Upload {
		return p.up
	}
	return p.down
}

func (p *Proxy) governor(d telemetry.Direction) *bucket.Governor {
	if d == telemetry.Upload {
		return p.upGov
	}
	return p.downGov
}

func (p *Proxy) upstreamConnections() (idle, busy int) {
	idle, busy = p.pool.Connections()
	p.eachDetour(func(d *upstream.Detour) {
		i, b := d.Connections()
		idle, busy = idle+i, busy+b
	})
	return idle, busy
}

// Sources are what the admin listener shows. Start is the moment the process began.
func (p *Proxy) Sources(start time.Time) admin.Sources {
	return admin.Sources{
		Ready: func() telemetry.Reason {
			switch {
			case p.Draining():
				return telemetry.Draining
			case !covered(p.pool):
				return telemetry.UpstreamNotReady
			}
			return telemetry.OK
		},
		Uptime:           func() time.Duration { return time.Since(start) },
		Uploads:          func() admin.Transfers { return p.transfers(telemetry.Upload) },
		Downloads:        func() admin.Transfers { return p.transfers(telemetry.Download) },
		Sessions:         p.sessionsDocument,
		TickMilliseconds: func() float64 { return milliseconds(p.queue.Snapshot().TickDuration) },
		Requests:         func() admin.Requests { return admin.Requests{Active: p.Busy(), Limit: p.set.MaxRequests} },
		Connections: func() admin.Connections {
			return admin.Connections{Open: p.front.Open(), Limit: p.set.MaxConnections}
		},
		Files: func() admin.Files {
			return admin.Files{Principals: admin.File{Problem: p.ids.Problem()}, Clients: admin.File{Problem: p.clients.Problem()},
				DecisionLog: admin.File{Problem: p.decisionProblem()}}
		},
		Pool: func() admin.Pool {
			t := p.metrics.Totals()
			idle, busy := p.upstreamConnections()
			return p.poolDocument(admin.Pool{Idle: idle, Busy: busy, Dials: t.Dials, Reused: t.Reused, Discarded: t.Discarded, Retries: t.Retries})
		},
		Upstream: func() any { return upstreamDump(p.pool.Status()) },
		Settings: p.desk,
		Operator: p.operator,
		Relay:    func() map[string]uint64 { return p.metrics.Totals().Relay },
		Metrics:  p.metrics,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (p *Proxy) transfers(d telemetry.Direction) admin.Transfers {
	a, b := p.gate(d).Snapshot(), p.governor(d).Snapshot()
	return admin.Transfers{
		Admission: admin.Admission{Active: a.Active, Waiting: a.Waiting, Capacity: a.Capacity, PerPrincipalCapacity: a.PerPrincipalCapacity,
			WaitingCapacity: a.WaitingCapacity, PerPrincipalWaitingCapacity: a.PerPrincipalWaitingCapacity, TimeoutMs: a.TimeoutMs,
			Rejected: a.Rejected, TimedOut: a.TimedOut, Cancelled: a.Cancelled},
		Bandwidth: admin.Bandwidth{BytesPerSecond: b.BytesPerSecond, PerPrincipalBytesPerSecond: b.PerPrincipalBytesPerSecond, BurstBytes: b.BurstBytes,
			PerPrincipalBurstBytes: b.PerPrincipalBurstBytes, Waiting: b.Waiting, GrantedBytes: admin.DecimalText(b.GrantedBytes)},
	}
}

func (p *Proxy) sessionsDocument() admin.Sessions {
	s := p.queue.Snapshot()
	c, pol, d := s.Counts, s.Policy, p.drips.Snapshot()
	return admin.Sessions{
		Strategy: pol.Strategy.String(), Admission: live.Admission(pol), Slots: s.Slots, Elastic: elastic(s),
		Active: s.ActiveTotal(), Waiting: byClass(s.Waiting), Held: p.holds.taken(), OldestWaitSeconds: s.OldestWait.Seconds(),
		Started: c.Started, Refused: c.Refused, Completed: c.Ended[queue.ReasonCompleted], Idle: c.Ended[queue.ReasonIdle],
		NoShow: c.Ended[queue.ReasonNoShow], Cancelled: c.Ended[queue.ReasonCancelled], Yielded: c.Ended[queue.ReasonYielded],
		Promises: admin.NewPromises(s.Promises.Judged, s.Promises.Within, s.Promises.Held),
		Drips: admin.Drips{Active: d.Running, Limit: d.Limit, BytesPerSecond: math.Round(d.BytesPerSecond), StoreBytes: d.StoreBytes, Started: d.Started,
			Cut: d.Cut},
		Tickets: admin.Tickets{KeySource: p.set.TicketSource, Gathered: p.gathered.Load()},
		Settings: admin.SessionSettings{
			Revision: p.desk.Current().Revision, Preempt: pol.Preempt, SessionsElastic: max(pol.SessionsElastic, pol.Sessions),
			Strategy: pol.Strategy.String(), Sessions: pol.Sessions, Reserve: pol.Reserve, PerPrincipal: pol.PerPrincipal, Weights: byClass(pol.Weights),
			SessionMinBytes: pol.SessionMinBytes, IdleSeconds: pol.IdleFor.Seconds(), AgingMinutes: pol.AgingEvery.Minutes(),
			RangesPerSession: pol.RangesPerSession, QueueLimit: pol.QueueLimit, QueuePerPrincipal: pol.QueuePerPrincipal, HoldSeconds: p.set.Hold.Seconds(),
		},
	}
}

// elastic is how many of the slots in force are open for now only.
func elastic(s queue.Snapshot) int { return max(0, s.Slots-s.Policy.Sessions) }

func byClass(n [queue.Classes]int) admin.ByClass {
	return admin.ByClass{Interactive: n[queue.Interactive], Release: n[queue.Release], Bulk: n[queue.Bulk], Background: n[queue.Background]}
}

var endEvents = [queue.Reasons]telemetry.SessionEvent{
	queue.ReasonCompleted: telemetry.EventCompleted,
	queue.ReasonIdle:      telemetry.EventIdle,
	queue.ReasonNoShow:    telemetry.EventNoShow,
	queue.ReasonCancelled: telemetry.EventCancelled,
	queue.ReasonDrained:   telemetry.EventCancelled,
	queue.ReasonPolicy:    telemetry.EventCancelled,
	queue.ReasonYielded:   telemetry.EventYielded,
	queue.ReasonPaused:    telemetry.EventPaused,
	queue.ReasonKicked:    telemetry.EventKicked,
}

// endNames are the reasons of ended sessions in logs: the words of the metrics, and two of their own for what the metrics count as cancelled.
var endNames = func() (names [queue.Reasons]string) {
	for reason, event := range endEvents {
		names[reason] = event.String()
	}
	names[queue.ReasonDrained], names[queue.ReasonPolicy] = "drained", "policy"
	return names
}()

// countEvents carries the queue's counts over to the metrics, on the tick.
func (p *Proxy) countEvents() {
	now, seen := p.queue.Snapshot().Counts, p.counted
	p.counted = now
	p.metrics.SessionEvents(telemetry.EventQueued, now.Queued-seen.Queued)
	p.metrics.SessionEvents(telemetry.EventRejoined, now.Rejoined-seen.Rejoined)
	p.metrics.SessionEvents(telemetry.EventStarted, now.Started-seen.Started)
	p.metrics.SessionEvents(telemetry.EventRefused, now.Refused-seen.Refused)
	for reason, event := range endEvents {
		p.metrics.SessionEvents(event, now.Ended[reason]-seen.Ended[reason])
	}
}

// sessionEnded is the queue's observer: how well its start was foretold, and the one log line of a session.
func (p *Proxy) sessionEnded(e queue.End) {
	if e.Started && e.Promised >= 0 {
		p.metrics.StartError((e.Wait - e.Promised).Seconds())
	}
	if !p.ends.line(e.Reason) {
		return
	}
	p.log.Info().Stringer("class", e.Class).Str("reason", endNames[e.Reason]).Bool("started", e.Started).Float64("waitSeconds", seconds(e.Wait)).
		Float64("durationSeconds", seconds(e.Duration)).Int64("bytes", e.Bytes).Msg("download session ended")
}

// seconds rounds to milliseconds for logs.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// endLines is how many ended sessions have a log line of their own in a second (L3).
const endLines = 50

// ends bounds the log lines about ended sessions. Safe for concurrent use; the zero value is ready.
type ends struct {
	mu    sync.Mutex
	lines int
	more  [queue.Reasons]int // without a line since the second began
}

// line counts an end and reports whether it gets a line of its own. The sessions that a drain ends share one.
func (e *ends) line(r queue.Reason) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r == queue.ReasonDrained || e.lines >= endLines {
		e.more[r]++
		return false
	}
	e.lines++
	return true
}

// next begins another second and returns what had no line in the last one.
func (e *ends) next() [queue.Reasons]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	more := e.more
	e.lines, e.more = 0, [queue.Reasons]int{}
	return more
}

// logEnds sums up the sessions that ended without a line of their own.
func (p *Proxy) logEnds() {
	more, total := p.ends.next(), 0
	for _, n := range more {
		total += n
	}
	if total == 0 {
		return
	}
	line := p.log.Info()
	for reason, n := range more {
		if n > 0 {
			line = line.Int(endNames[reason], n)
		}
	}
	line.Msgf("%d more download sessions ended", total)
}

// logUpstream logs that the upstream cannot be reached any more, or can again: once a change, at most once a second.
func (p *Proxy) logUpstream() {
	ok, why := p.pool.Covered()
	if why == control.CauseConnecting || why == control.CauseDraining || ok != p.unreachable {
		return
	}
	if p.unreachable = !ok; p.unreachable {
		p.log.Warn().Stringer("state", why).Str("cause", p.upstreamCause()).Msg("upstream unreachable")
		return
	}
	p.log.Info().Msg("upstream reachable again")
}

// logState tells at level debug how much is going on.
func (p *Proxy) logState() {
	line := p.log.Debug()
	if line == nil {
		return
	}
	s := p.queue.Snapshot()
	idle, busy := p.upstreamConnections()
	line.Int("requests", p.Busy()).Int("connections", p.front.Open()).Int("sessionsActive", s.ActiveTotal()).Int("sessionsWaiting", s.WaitingTotal()).
		Int("held", p.holds.taken()).Int("upstreamIdle", idle).Int("upstreamBusy", busy).Msg("state")
}

// panicLimit is how many panics are logged in a minute, each with its stack.
const panicLimit = 10

// ReportPanic counts a contained panic and logs it with its stack, the first ones of a minute at least. Safe for concurrent use.
func (p *Proxy) ReportPanic(value any, stack []byte) {
	p.metrics.Panics.Inc()
	if p.panicLines.Add(1) > panicLimit {
		return
	}
	p.log.Error().Str("stack", string(stack)).Str("panic", fmt.Sprint(value)).Msg("contained a panic")
}

// logPanics begins another minute and sums up the panics of the last one that were not logged.
func (p *Proxy) logPanics() {
	if more := p.panicLines.Swap(0) - panicLimit; more > 0 {
		p.log.Error().Int64("panics", more).Msgf("contained %d more panics", more)
	}
}

// filesEvery is how often the operator's files are looked at.
const filesEvery = 2 * time.Second

// watchFiles looks at the operator's files until ctx is done. It has a goroutine of its own: a mount that hangs must stop nothing else.
func (p *Proxy) watchFiles(ctx context.Context) {
	t := time.NewTicker(filesEvery)
	defer t.Stop()
	var last noted
	p.returns(func() { p.noteQueue(&last) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		p.returns(func() { p.pollFile("ARKVORY_PRINCIPALS_FILE", p.ids, &p.reported[0]) })
		p.returns(func() { p.pollFile("ARKVORY_CLIENTS_FILE", p.clients, &p.reported[1]) })
		p.returns(func() { p.noteQueue(&last) })
		p.returns(p.keepQuotas)
	}
}

// pollFile reads a file that changed and logs what changed about it: that it is in force, or why not.
func (p *Proxy) pollFile(variable string, file interface {
	Poll() bool
	Problem() string
}, reported *string) {
	applied, problem := file.Poll(), file.Problem()
	switch {
	case problem != "" && problem != *reported:
		p.log.Warn().Str("variable", variable).Str("problem", problem).Msg("file not applied, the last good one stays")
	case problem == "" && (applied || *reported != ""):
		p.log.Info().Str("variable", variable).Msg("file applied")
	}
	*reported = problem
}
