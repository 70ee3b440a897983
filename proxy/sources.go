package proxy

import (
	"math"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

// snapshots are what a metrics page reads. The functions run after New has finished.
func (p *Proxy) snapshots() telemetry.Snapshots {
	return telemetry.Snapshots{
		RequestsInFlight: p.Busy,
		ConnectionsOpen:  func() int { return p.front.Open() },
		HeldRequests:     func() int { return p.queue.Snapshot().Held },
		Sessions: func() telemetry.Sessions {
			s := p.queue.Snapshot()
			return telemetry.Sessions{Active: s.ActiveTotal(), Waiting: [telemetry.ClassCount]int(s.Waiting), OldestWaitSeconds: s.OldestWait.Seconds(),
				TickSeconds: s.TickDuration.Seconds()}
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
		UpstreamConnections: p.upstreamConnections,
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
	p.eachPool(func(pool *upstream.Pool) {
		s := pool.Snapshot()
		idle += s.Idle
		busy += s.Busy
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
			case !p.pool.Snapshot().Reachable:
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
		Pool: func() admin.Pool {
			t := p.metrics.Totals()
			idle, busy := p.upstreamConnections()
			return admin.Pool{Idle: idle, Busy: busy, Dials: t.Dials, Reused: t.Reused, Discarded: t.Discarded, Retries: t.Retries, Generation: 1}
		},
		Relay:   func() map[string]uint64 { return p.metrics.Totals().Relay },
		Metrics: p.metrics,
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
	c, pol := s.Counts, s.Policy
	return admin.Sessions{
		Active: s.ActiveTotal(), Waiting: byClass(s.Waiting), Held: s.Held, OldestWaitSeconds: s.OldestWait.Seconds(),
		Started: c.Started, Refused: c.Refused, Completed: c.Ended[queue.ReasonCompleted], Idle: c.Ended[queue.ReasonIdle],
		NoShow: c.Ended[queue.ReasonNoShow], Cancelled: c.Ended[queue.ReasonCancelled],
		Settings: admin.SessionSettings{
			Strategy: pol.Strategy.String(), Sessions: pol.Sessions, Reserve: pol.Reserve, PerPrincipal: pol.PerPrincipal, Weights: byClass(pol.Weights),
			SessionMinBytes: pol.SessionMinBytes, IdleSeconds: pol.IdleFor.Seconds(), AgingMinutes: pol.AgingEvery.Minutes(),
			RangesPerSession: pol.RangesPerSession, QueueLimit: pol.QueueLimit, QueuePerPrincipal: pol.QueuePerPrincipal, HoldSeconds: p.set.Hold.Seconds(),
		},
	}
}

func byClass(n [queue.Classes]int) admin.ByClass {
	return admin.ByClass{Interactive: n[queue.Interactive], Release: n[queue.Release], Bulk: n[queue.Bulk], Background: n[queue.Background]}
}

var endEvents = map[queue.Reason]telemetry.SessionEvent{
	queue.ReasonCompleted: telemetry.EventCompleted,
	queue.ReasonIdle:      telemetry.EventIdle,
	queue.ReasonNoShow:    telemetry.EventNoShow,
	queue.ReasonCancelled: telemetry.EventCancelled,
	queue.ReasonDrained:   telemetry.EventCancelled,
	queue.ReasonPolicy:    telemetry.EventCancelled,
}

// sessionEnded is the queue's observer: metrics, and the one log line of a session.
func (p *Proxy) sessionEnded(e queue.End) {
	p.metrics.SessionEvent(endEvents[e.Reason])
	if e.Started {
		p.metrics.SessionEvent(telemetry.EventStarted)
		p.metrics.DownloadWait.Update(e.Wait.Seconds())
		if e.Promised >= 0 {
			p.metrics.StartError((e.Wait - e.Promised).Seconds())
		}
	}
	p.log.Info().Stringer("class", e.Class).Stringer("reason", e.Reason).Bool("started", e.Started).Float64("waitSeconds", seconds(e.Wait)).
		Float64("durationSeconds", seconds(e.Duration)).Int64("bytes", e.Bytes).Msg("download session ended")
}

// seconds rounds to milliseconds for logs.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
