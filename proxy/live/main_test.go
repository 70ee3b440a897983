package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/config/store/pgtest"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bench is a desk whose queue remembers what it was told.
type bench struct {
	*Desk
	t       *testing.T
	applied []queue.Policy
	last    Effective // that was applied
	changed []admin.SettingsDocument
	refuse  error // of Apply
}

var day = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// environment is 16 slots, elastic to 32, a queue of 512.
func environment() queue.Policy {
	p := queue.DefaultPolicy(16)
	p.SessionsElastic, p.QueueLimit, p.QueuePerPrincipal = 32, 512, 512
	return p
}

func start(t *testing.T, base queue.Policy, store config.RecordStore) *bench {
	t.Helper()
	b := &bench{t: t}
	b.Desk = New(t.Context(), Settings{Base: base, Store: store, Now: func() time.Time { return day },
		Apply: func(e Effective) error {
			if b.refuse == nil {
				b.applied, b.last = append(b.applied, e.Policy), e
			}
			return b.refuse
		},
		Changed: func(d admin.SettingsDocument) { b.changed = append(b.changed, d) }})
	return b
}

// same compares what two documents say is in force: every field, also those of fields.
func same(a, b admin.EffectiveSettings) bool { return reflect.DeepEqual(a, b) }

// put sends overrides with the current revision.
func (b *bench) put(overrides string) (admin.SettingsDocument, error) {
	return b.Change(context.Background(), fmt.Appendf(nil, `{"expectedRevision":%d,"overrides":%s}`, b.Current().Revision, overrides), "token")
}

// must is put that has to succeed.
func (b *bench) must(overrides string) admin.SettingsDocument {
	b.t.Helper()
	doc, err := b.put(overrides)
	if err != nil {
		b.t.Fatalf("%s: %v", overrides, err)
	}
	return doc
}

// faultsOf returns the faults of an error; it fails the test when the error is none of settings.
func faultsOf(t *testing.T, err error) []admin.SettingFault {
	t.Helper()
	var wrong *admin.SettingsError
	if !errors.As(err, &wrong) {
		t.Errorf("got %v, want faults", err)
		return nil
	}
	return wrong.Faults
}

// broken is a store that does not answer.
type broken struct{ config.RecordStore }

var errBroken = errors.New("connection refused to secret-host")

func (broken) Load(context.Context) (config.Record, error) { return config.Record{}, errBroken }
func (broken) Swap(context.Context, int64, config.Record) (config.Record, error) {
	return config.Record{}, errBroken
}
func (broken) Persisted() bool { return true }

// holding is a store that holds a record already.
func holding(t *testing.T, overrides string) *config.MemoryRecords {
	t.Helper()
	var store config.MemoryRecords
	if _, err := store.Swap(t.Context(), 0, config.Record{Overrides: json.RawMessage(overrides), UpdatedBy: "token", UpdatedAt: day}); err != nil {
		t.Fatal(err)
	}
	return &store
}
