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

// MaxOverridesBytes bounds Record.Overrides in every store: 512 KiB, in which the 1024 principals with the longest names that a record may hold fit.
const MaxOverridesBytes = 512 << 10

// ErrOverridesSize is the reason of a StoreError when the overrides are above MaxOverridesBytes.
var ErrOverridesSize = errors.New("the overrides are too large")

// StoreError is a failure of a store in words that may be shown to whoever may see the settings: no address, account, path or secret is in them.
type StoreError struct {
	// Verb is "read" or "save"; What is what could not be, "" for the live settings.
	Verb, What string
	// Why says what happened and, where there is one, the remedy.
	Why string
	// Err is ErrOverridesSize, the error of a context that ended, or nil. It is for errors.Is and adds nothing to the text.
	Err error
}

// Error returns "cannot VERB the live settings: WHY".
func (e *StoreError) Error() string {
	what := e.What
	if what == "" {
		what = "the live settings"
	}
	return "cannot " + e.Verb + " " + what + ": " + e.Why
}

// Unwrap returns Err.
func (e *StoreError) Unwrap() error { return e.Err }

// RecordWatcher is a RecordStore that other processes change too.
type RecordWatcher interface {
	RecordStore
	// Watch calls wake when the record may have been changed, until ctx ends or the store is closed, and reconnects by itself. It may call for nothing, and a change may
	// be missed: who must not miss one polls too. Wake must not block.
	Watch(ctx context.Context, wake func())
}

// RecordStore keeps one Record. Implementations are safe for concurrent use, and one of several processes compares and swaps over
// all of them.
type RecordStore interface {
	// Load returns the record; the zero Record when there never was one.
	Load(ctx context.Context) (Record, error)
	// Swap saves next with the revision expected+1 when the record's revision is expected, and returns what it saved. Else it saves
	// nothing and returns the record as it is with ErrRevision. Overrides come back byte for byte; nil ones may come back as {}. A context that has ended
	// saves nothing.
	Swap(ctx context.Context, expected int64, next Record) (Record, error)
	// Persisted reports whether the record outlives the process.
	Persisted() bool
}

// MemoryRecords is a RecordStore that lives and ends with its process. The zero value is empty and ready.
type MemoryRecords struct {
	mu   sync.Mutex
	last Record
}

// Load returns the record. The only error is that of a context that has ended.
func (m *MemoryRecords) Load(ctx context.Context) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, nil
}

// Swap saves next when the revision is as expected. The errors are ErrRevision, a *StoreError for overrides that are too large, and that of a context that has ended.
func (m *MemoryRecords) Swap(ctx context.Context, expected int64, next Record) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	if len(next.Overrides) > MaxOverridesBytes {
		return Record{}, &StoreError{Verb: "save", Why: "they are above 524288 bytes", Err: ErrOverridesSize}
	}
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
