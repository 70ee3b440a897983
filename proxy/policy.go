package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/memory"
	"github.com/arkvory/sidecar/queue/replay"
	"github.com/arkvory/sidecar/queue/window"
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
	desk := live.New(ctx, live.Settings{Base: p.set.Policy, Store: store, Apply: p.applySettings, Now: wall, Changed: p.logSettings, Noticed: p.noticeSettings})
	if problem := desk.Current().Problem; problem != "" {
		p.log.Warn().Str("problem", problem).Msg("live settings not applied")
	}
	return desk
}

// applySettings puts the settings in force from the next decision on. The desk's turn serialises the calls.
func (p *Proxy) applySettings(e live.Effective) error {
	next, now := e.Policy, p.queue.Policy()
	if next.Strategy != now.Strategy || next.Mode != now.Mode || next.SessionMinBytes != now.SessionMinBytes {
		p.outlived.Store(true) // before the change: whoever sees the new policy asks the queue about active sessions
	}
	if err := p.queue.Configure(next); err != nil {
		return err
	}
	if none := [queue.Classes]*window.Schedule{}; e.Windows != none || p.windowed {
		p.windowed = e.Windows != none
		p.queue.SetWindows(e.Windows, p.wallNow)
	}
	p.setClasses(e)
	p.setQuotas(e)
	return nil
}

// audited is what the log says of overrides: all of them, but of principals only how many there are, since a line is bounded and names nobody.
func audited(overrides json.RawMessage) json.RawMessage {
	var fields, principals map[string]json.RawMessage
	if json.Unmarshal(overrides, &fields) != nil || fields["principals"] == nil {
		return overrides
	}
	_ = json.Unmarshal(fields["principals"], &principals) // of another type it counts as none
	fields["principals"] = fmt.Appendf(nil, `{"count":%d}`, len(principals))
	text, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// logSettings is the audit line of a change.
func (p *Proxy) logSettings(doc admin.SettingsDocument) {
	p.log.Info().Str("by", doc.UpdatedBy).Int64("revision", doc.Revision).RawJSON("overrides", audited(doc.Overrides)).Str("admission", doc.Admission).
		Msg("download settings changed")
}

// noticeSettings logs what the desk found by itself: a change of another process, a store that fails, or that is back.
func (p *Proxy) noticeSettings(doc admin.SettingsDocument) {
	if doc.Problem != "" {
		p.log.Warn().Int64("revision", doc.Revision).Str("problem", doc.Problem).Msg("download settings have a problem")
		return
	}
	p.log.Info().Str("by", doc.UpdatedBy).Int64("revision", doc.Revision).Msg("download settings read")
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
