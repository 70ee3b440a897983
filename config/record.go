package config

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// Record is the live settings as they are kept: what an operator changed, and nothing that the environment says anyway. The zero
// Record, revision 0, says that nobody changed anything.
type Record struct {
	// Revision grows by one with each change.
	Revision int64
	// Overrides is a JSON object of the changed fields; nil and {} change nothing. Its fields are judged by whoever applies them: a
	// store keeps those of newer versions as they are.
	Overrides json.RawMessage
	// UpdatedBy names who changed it last, without secrets; UpdatedAt is the wall time of it.
	UpdatedBy string
	UpdatedAt time.Time
}

// ErrRevision is what Swap returns when the record has another revision than expected: somebody else was faster.
var ErrRevision = errors.New("cannot save the live settings: another change came first")

// RecordStore keeps one Record. Implementations are safe for concurrent use, and one of several processes compares and swaps over
// all of them.
type RecordStore interface {
	// Load returns the record; the zero Record when there never was one.
	Load(ctx context.Context) (Record, error)
	// Swap saves next with the revision expected+1 when the record's revision is expected, and returns what it saved. Else it saves
	// nothing and returns the record as it is with ErrRevision.
	Swap(ctx context.Context, expected int64, next Record) (Record, error)
	// Persisted reports whether the record outlives the process.
	Persisted() bool
}

// MemoryRecords is a RecordStore that lives and ends with its process. The zero value is empty and ready.
type MemoryRecords struct {
	mu   sync.Mutex
	last Record
}

// Load returns the record. The error is always nil.
func (m *MemoryRecords) Load(context.Context) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, nil
}

// Swap saves next when the revision is as expected; the only error is ErrRevision.
func (m *MemoryRecords) Swap(_ context.Context, expected int64, next Record) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.Revision != expected {
		return m.last, ErrRevision
	}
	next.Revision = expected + 1
	next.Overrides = append(json.RawMessage(nil), next.Overrides...)
	m.last = next
	return next, nil
}

// Persisted returns false.
func (m *MemoryRecords) Persisted() bool { return false }
