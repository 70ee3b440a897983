package proxy

import (
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/queue"
)

// newOperator wires the operator's desk. Start is the moment the process began.
func (p *Proxy) newOperator(start time.Time) *operator {
	return newOperator(operatorParts{
		queue: p.queue, wall: time.Now, uptime: func() time.Duration { return time.Since(start) },
		facts: func() operatorFacts {
			_, why := p.pool.Covered()
			return operatorFacts{Version: p.set.Version, SettingsRevision: p.desk.Current().Revision, Held: p.holds.taken(), Fed: p.drips.Snapshot().Running,
				BandBytesPerSecond: p.set.DownloadTotal.BytesPerSecond, GateReason: why.String(), OverQuota: p.quotas.RefusedTotal()}
		},
		moved: func() (download, upload uint64) {
			return p.metrics.DeliveredBytes(telemetry.Download), p.metrics.DeliveredBytes(telemetry.Upload)
		},
		notWaiting: telemetry.NotWaiting, notPausable: telemetry.NotPausable, notPaused: telemetry.NotPaused,
	})
}

// Audit writes a line of the admin listener's audit log. It is safe for concurrent use.
func (p *Proxy) Audit(e admin.Entry) {
	line := p.log.Info()
	if e.Event == admin.AuditRefused {
		line = p.log.Warn()
	}
	e.Each(func(name string, value any) { line = line.Interface(name, value) })
	line.Msg("admin listener")
}

// passesThrough reports whether the operator switched all admission off (X7): nothing waits, bytes are still paced.
func (p *Proxy) passesThrough() bool { return p.queue.Policy().Mode == queue.ModePassThrough }
