package proxy

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/memory"
	"github.com/arkvory/sidecar/queue/replay"
)

// newQueue makes the queue by the environment's policy, with its decision log when somebody takes it.
func (p *Proxy) newQueue(clock func() time.Duration) (*memory.Queue, error) {
	opts := memory.Options{Clock: clock, HoldLimit: p.set.HoldLimit + p.set.DripLimit, SessionEnded: p.sessionEnded}
	if p.set.Decisions != nil {
		p.recorder = replay.NewRecorder(p.set.Decisions)
		opts.Recorder = p.recorder
	}
	return memory.New(p.set.Policy, opts)
}

// loadTime bounds how long the start waits for the store of the live settings (S3: it never stops the process).
const loadTime = 5 * time.Second

// newDesk puts the stored live settings in force and returns where they are changed. Wall is the wall clock.
func (p *Proxy) newDesk(wall func() time.Time) *live.Desk {
	store := p.set.Records
	if store == nil {
		store = &config.MemoryRecords{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	desk := live.New(ctx, live.Settings{Base: p.set.Policy, Store: store, Apply: p.applyPolicy, Now: wall, Changed: p.logSettings})
	if problem := desk.Current().Problem; problem != "" {
		p.log.Warn().Str("problem", problem).Msg("live settings not applied")
	}
	return desk
}

// applyPolicy puts a policy in force from the queue's next decision on. The desk's lock serialises the calls.
func (p *Proxy) applyPolicy(next queue.Policy) error {
	now := p.queue.Policy()
	if next.Strategy != now.Strategy || next.SessionMinBytes != now.SessionMinBytes {
		p.outlived.Store(true) // before the change: whoever sees the new policy asks the queue about active sessions
	}
	return p.queue.Configure(next)
}

// logSettings is the audit line of a change.
func (p *Proxy) logSettings(doc admin.SettingsDocument) {
	p.log.Info().Str("by", doc.UpdatedBy).Int64("revision", doc.Revision).RawJSON("overrides", doc.Overrides).Str("admission", doc.Admission).
		Msg("download settings changed")
}

// logDecisions logs, once, that the decision log ended in an error.
func (p *Proxy) logDecisions() {
	if problem := p.decisionProblem(); problem != "" && !p.undecided.Swap(true) {
		p.log.Error().Str("variable", "ARKVORY_DECISION_LOG").Str("problem", problem).Msg("the decision log ends here")
	}
}

// decisionProblem says why the decision log ended; empty while it is written, or none is.
func (p *Proxy) decisionProblem() string {
	if p.recorder == nil {
		return ""
	}
	err := p.recorder.Err()
	var file *fs.PathError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &file): // the readiness page shows no paths
		return "cannot write the decision log: " + file.Err.Error()
	}
	return err.Error()
}
