package live

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
)

// shared is a store of which a test decides when it answers, and with what.
type shared struct {
	mu     sync.Mutex
	kept   *config.MemoryRecords // nil is an empty one
	err    error
	answer func(config.Record) config.Record // of the next Load; nil gives what is stored
	hang   chan struct{}                     // a Load waits for it, past its context
	wake   func()
	deaf   bool // nobody is woken
}

// records is what is kept now.
func (s *shared) records() *config.MemoryRecords {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = &config.MemoryRecords{}
	}
	return s.kept
}

func (s *shared) Persisted() bool { return false }

func (s *shared) Load(ctx context.Context) (config.Record, error) {
	s.mu.Lock()
	err, answer, hang := s.err, s.answer, s.hang
	s.answer = nil
	s.mu.Unlock()
	r, _ := s.records().Load(context.WithoutCancel(ctx))
	if hang != nil {
		<-hang
	}
	if answer != nil {
		r = answer(r)
	}
	return r, err
}

func (s *shared) Swap(ctx context.Context, expected int64, next config.Record) (config.Record, error) {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return config.Record{}, err
	}
	return s.records().Swap(ctx, expected, next)
}

func (s *shared) Watch(ctx context.Context, wake func()) {
	s.mu.Lock()
	s.wake = wake
	s.mu.Unlock()
	<-ctx.Done()
}

func (s *shared) set(change func(*shared)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// elsewhere is a change that another process made.
func (s *shared) elsewhere(t *testing.T, expected int64, overrides string) {
	t.Helper()
	if _, err := s.records().Swap(t.Context(), expected, config.Record{Overrides: json.RawMessage(overrides), UpdatedBy: "10.0.0.2", UpdatedAt: day}); err != nil {
		t.Fatal(err)
	}
	if s.mu.Lock(); s.wake != nil && !s.deaf {
		s.wake()
	}
	s.mu.Unlock()
}

// following runs a desk that follows its store, in virtual time.
func following(t *testing.T, run func(*bench, *shared)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &shared{}
		b := start(t, environment(), s)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.Follow(ctx) }()
		synctest.Wait()
		run(b, s)
		stop()
		<-ended
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestS3_AnothersChangeIsInForceWithinTenSeconds(t *testing.T) {
	following(t, func(b *bench, s *shared) {
		s.elsewhere(t, 0, `{"sessions":5,"ofTheFuture":1}`)
		synctest.Wait() // woken: no time passes
		if doc := b.Current(); doc.Revision != 1 || doc.Effective.Sessions != 5 || doc.UpdatedBy != "10.0.0.2" || doc.Problem != "" || len(b.applied) != 1 {
			t.Fatalf("woken: %+v", doc)
		}
		s.set(func(s *shared) { s.deaf = true })
		s.elsewhere(t, 1, `{"sessions":6}`)
		pass(followEvery + loadTime)
		if doc := b.Current(); doc.Revision != 2 || doc.Effective.Sessions != 6 {
			t.Errorf("not woken: %+v", doc)
		}
		if len(b.changed) != 0 {
			t.Error("a change of another process was told as one of this")
		}
	})
}

func TestS3_ALateAnswerUndoesNothing(t *testing.T) {
	following(t, func(b *bench, s *shared) {
		b.must(`{"sessions":5}`)
		hang := make(chan struct{})
		s.set(func(s *shared) { s.hang = hang })
		pass(followEvery) // a look has read revision 1 and is on its way
		b.must(`{"sessions":7}`)
		s.set(func(s *shared) { s.hang = nil })
		close(hang)
		synctest.Wait()
		if doc := b.Current(); doc.Revision != 2 || doc.Effective.Sessions != 7 || doc.Problem != "" || len(b.applied) != 2 {
			t.Errorf("%+v, applied %+v", doc, b.applied)
		}
	})
}

func TestS3_AStoreThatFailsIsAProblemUntilItAnswers(t *testing.T) {
	known := &config.StoreError{Verb: "read", Why: "the database cannot be reached: connection refused"}
	for _, one := range []struct {
		err  error
		want string
	}{
		{known, known.Error()},
		{errBroken, "cannot read the live settings: the store does not answer"},
	} {
		following(t, func(b *bench, s *shared) {
			var told []string
			b.set.Noticed = func(d admin.SettingsDocument) { told = append(told, d.Problem) }
			b.must(`{"sessions":5}`)
			s.set(func(s *shared) { s.err = one.err })
			pass(3 * followEvery)
			doc := b.Current()
			if doc.Problem != one.want+"; what was read last stays in force" || doc.Effective.Sessions != 5 || doc.Revision != 1 {
				t.Errorf("%+v", doc)
			}
			if _, err := b.put(`{"sessions":9}`); !errors.Is(err, one.err) || b.Current().Effective.Sessions != 5 || strings.Contains(b.Current().Problem, "secret-host") {
				t.Errorf("a change while the store fails: %v, %+v", err, b.Current())
			}
			s.set(func(s *shared) { s.err = nil })
			pass(followEvery)
			if doc := b.Current(); doc.Problem != "" || doc.Effective.Sessions != 5 || len(b.applied) != 1 {
				t.Errorf("recovered: %+v", doc)
			}
			if len(told) != 2 || told[0] == "" || told[1] != "" {
				t.Errorf("told %q", told)
			}
		})
	}
}

func TestS3_AStoreThatFailsAtTheStartIsReadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{err: errBroken}
		b := start(t, environment(), s)
		if doc := b.Current(); !strings.HasSuffix(doc.Problem, "the environment is in force") || doc.Effective.Sessions != 16 {
			t.Errorf("%+v", doc)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); b.Follow(ctx) }()
		s.elsewhere(t, 0, `{"sessions":5}`)
		s.set(func(s *shared) { s.err = nil })
		pass(followEvery)
		if doc := b.Current(); doc.Problem != "" || doc.Effective.Sessions != 5 || doc.Revision != 1 {
			t.Errorf("%+v", doc)
		}
		stop()
		<-ended
	})
}

// TestS3_AStoreThatWentBack: nothing older is applied, and changes can be saved again.
func TestS3_AStoreThatWentBack(t *testing.T) {
	following(t, func(b *bench, s *shared) {
		b.must(`{"sessions":5}`)
		b.must(`{"sessions":6}`)
		s.set(func(s *shared) { s.kept = nil }) // a restore
		pass(followEvery)
		if doc := b.Current(); doc.Revision != 0 || doc.Effective.Sessions != 6 || !strings.Contains(doc.Problem, "went back from revision 2 to 0") || len(b.applied) != 2 {
			t.Errorf("%+v", doc)
		}
		pass(2 * followEvery)
		if doc := b.Current(); !strings.Contains(doc.Problem, "went back") || len(b.applied) != 2 {
			t.Errorf("later: %+v", doc)
		}
		if doc := b.must(`{"sessions":7}`); doc.Revision != 1 || doc.Problem != "" || doc.Effective.Sessions != 7 {
			t.Errorf("%+v", doc)
		}
	})
}

// TestS3_AHangingStoreBlocksNobody: the desk answers and takes changes while a look hangs.
func TestS3_AHangingStoreBlocksNobody(t *testing.T) {
	following(t, func(b *bench, s *shared) {
		hang := make(chan struct{})
		s.set(func(s *shared) { s.hang = hang })
		pass(followEvery)
		if doc := b.must(`{"sessions":3}`); doc.Effective.Sessions != 3 {
			t.Errorf("%+v", doc)
		}
		close(hang)
		s.set(func(s *shared) { s.hang = nil })
	})
}

func TestS2_OverridesThatTheStoreCannotHoldAreAFault(t *testing.T) {
	b := start(t, environment(), &shared{err: &config.StoreError{Verb: "save", Why: "too large", Err: config.ErrOverridesSize}})
	_, err := b.put(`{"sessions":3}`)
	if wrong := faultsOf(t, err); len(wrong) != 1 || wrong[0].Field != "overrides" || len(b.applied) != 0 {
		t.Errorf("%+v", wrong)
	}
}
