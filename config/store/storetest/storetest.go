package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
)

// Open returns two stores of one record that nobody has changed yet: two pools of one database, two handles of one directory. They may be the same one where a store
// cannot be shared.
type Open func(t *testing.T) (one, other config.RecordStore)

// Run holds an implementation to what config.RecordStore says.
func Run(t *testing.T, open Open) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, config.RecordStore, config.RecordStore)
	}{
		{"Empty", empty}, {"Revisions", revisions}, {"ByteExact", byteExact}, {"Size", size}, {"Cancelled", cancelled}, {"OneRacerWins", oneRacerWins}, {"NothingIsLost", nothingIsLost},
	} {
		t.Run("S2_"+part.name, func(t *testing.T) {
			one, other := open(t)
			part.run(t, one, other)
		})
	}
}

var day = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)

func empty(t *testing.T, one, other config.RecordStore) {
	for _, s := range []config.RecordStore{one, other} {
		if r, err := s.Load(t.Context()); err != nil || r.Revision != 0 || len(r.Overrides) != 0 || r.UpdatedBy != "" || !r.UpdatedAt.IsZero() {
			t.Errorf("an empty store holds %+v, %v", r, err)
		}
		if _, err := s.Swap(t.Context(), 1, config.Record{}); !errors.Is(err, config.ErrRevision) {
			t.Errorf("revision 1 of nothing: %v", err)
		}
	}
	if one.Persisted() != other.Persisted() {
		t.Error("they disagree on whether the record outlives the process")
	}
}

func revisions(t *testing.T, one, other config.RecordStore) {
	stores := []config.RecordStore{one, other}
	for n := range int64(6) {
		writer, reader := stores[n%2], stores[(n+1)%2]
		next := config.Record{Revision: 99, Overrides: fmt.Appendf(nil, `{"sessions":%d}`, n+1), UpdatedBy: "token", UpdatedAt: day.Add(time.Duration(n) * time.Hour)}
		saved, err := writer.Swap(t.Context(), n, next)
		if err != nil || saved.Revision != n+1 {
			t.Fatalf("saved %+v, %v", saved, err)
		}
		for _, expected := range []int64{n, n + 2, -1} {
			now, err := reader.Swap(t.Context(), expected, config.Record{Overrides: []byte(`{"sessions":999}`)})
			if !errors.Is(err, config.ErrRevision) || now.Revision != n+1 || string(now.Overrides) != string(next.Overrides) {
				t.Errorf("revision %d while it is %d: %+v, %v", expected, n+1, now, err)
			}
		}
		got, err := reader.Load(t.Context())
		if err != nil || got.Revision != n+1 || string(got.Overrides) != string(next.Overrides) || got.UpdatedBy != "token" || !got.UpdatedAt.Equal(next.UpdatedAt) {
			t.Errorf("the other one reads %+v, %v", got, err)
		}
	}
	if r, err := one.Swap(t.Context(), 6, config.Record{UpdatedBy: "127.0.0.1", UpdatedAt: day}); err != nil || r.Revision != 7 {
		t.Errorf("no overrides: %+v, %v", r, err)
	}
	if r, err := other.Load(t.Context()); err != nil || len(r.Overrides) != 0 && string(r.Overrides) != "{}" {
		t.Errorf("no overrides are %q, %v", r.Overrides, err)
	}
}

// byteExact: what a newer version saved is kept as it wrote it, also what an encoder would write otherwise.
func byteExact(t *testing.T, one, other config.RecordStore) {
	for n, text := range []string{
		`{}`, `{ "sessions" : 8 , "ofTheFuture":{"a":[1, 2.50, 1e3]}}`, `{"html":"<&>\u2028","more":"é𝄞"}`, `{"a":1,"a":2}`, "{\n\t\"a\":\r\n\"\\u0000 \\\\ ' '' $1 ;--\"}",
		`{"n":123456789012345678901234567890.10}`,
	} {
		if _, err := one.Swap(t.Context(), int64(n), config.Record{Overrides: json.RawMessage(text), UpdatedBy: `o'n "x" $1 é`, UpdatedAt: day}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if r, err := other.Load(t.Context()); err != nil || string(r.Overrides) != text || r.UpdatedBy != `o'n "x" $1 é` {
			t.Errorf("%q came back as %q, %v", text, r.Overrides, err)
		}
	}
	buffer := []byte(`{"a":1}`)
	if _, err := one.Swap(t.Context(), 6, config.Record{Overrides: buffer}); err != nil {
		t.Fatal(err)
	}
	copy(buffer, "scribble"[:7]) // the caller's buffer is the caller's
	if r, err := one.Load(t.Context()); err != nil || string(r.Overrides) != `{"a":1}` {
		t.Errorf("%q, %v", r.Overrides, err)
	}
}

func size(t *testing.T, one, other config.RecordStore) {
	of := func(n int) json.RawMessage { return json.RawMessage(`{"a":"` + strings.Repeat("x", n-8) + `"}`) }
	if _, err := one.Swap(t.Context(), 0, config.Record{Overrides: of(config.MaxOverridesBytes)}); err != nil {
		t.Errorf("the largest: %v", err)
	}
	var known *config.StoreError
	if _, err := one.Swap(t.Context(), 1, config.Record{Overrides: of(config.MaxOverridesBytes + 1)}); !errors.As(err, &known) || !errors.Is(err, config.ErrOverridesSize) {
		t.Errorf("one byte more: %v", err)
	}
	if r, err := other.Load(t.Context()); err != nil || r.Revision != 1 || len(r.Overrides) != config.MaxOverridesBytes {
		t.Errorf("revision %d of %d bytes, %v", r.Revision, len(r.Overrides), err)
	}
}

func cancelled(t *testing.T, one, other config.RecordStore) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := one.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if _, err := one.Swap(ctx, 0, config.Record{Overrides: []byte(`{"sessions":1}`)}); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	if r, err := other.Load(t.Context()); err != nil || r.Revision != 0 {
		t.Errorf("it was saved: %+v, %v", r, err)
	}
}

func oneRacerWins(t *testing.T, one, other config.RecordStore) {
	for round := range int64(8) {
		const racers = 8
		var wait sync.WaitGroup
		var won [racers]bool
		start := make(chan struct{})
		for i := range racers {
			wait.Go(func() {
				<-start
				saved, err := []config.RecordStore{one, other}[i%2].Swap(t.Context(), round, config.Record{Overrides: fmt.Appendf(nil, `{"a":%d}`, i)})
				switch {
				case err == nil && saved.Revision == round+1:
					won[i] = true
				case !errors.Is(err, config.ErrRevision), saved.Revision != round+1:
					t.Errorf("a loser got %+v, %v", saved, err)
				}
			})
		}
		close(start)
		wait.Wait()
		winner, winners := 0, 0
		for i := range won {
			if won[i] {
				winner, winners = i, winners+1
			}
		}
		r, err := other.Load(t.Context())
		if err != nil || winners != 1 || string(r.Overrides) != fmt.Sprintf(`{"a":%d}`, winner) {
			t.Fatalf("round %d: %d winners, %+v, %v", round, winners, r, err)
		}
	}
}

func nothingIsLost(t *testing.T, one, other config.RecordStore) {
	const each = 10
	var wait sync.WaitGroup
	for _, s := range []config.RecordStore{one, other, one, other} {
		wait.Go(func() {
			if err := Count(t.Context(), s, each); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if err := Counted(t.Context(), one, 4*each); err != nil {
		t.Error(err)
	}
}

// Count adds one to the number in the record, times over, as an operator who reads, changes and saves, and tries again when another was faster.
func Count(ctx context.Context, s config.RecordStore, times int) error {
	for range times {
		now, err := s.Load(ctx)
		for {
			if err != nil {
				return err
			}
			number, wrong := numberOf(now)
			if wrong != nil {
				return wrong
			}
			if now, err = s.Swap(ctx, now.Revision, config.Record{Overrides: fmt.Appendf(nil, `{"number":%d}`, number+1)}); err == nil {
				break
			}
			if errors.Is(err, config.ErrRevision) {
				err = nil
			}
		}
	}
	return nil
}

// Counted returns an error unless the number in the record and its revision are as many as were added.
func Counted(ctx context.Context, s config.RecordStore, want int) error {
	now, err := s.Load(ctx)
	if err != nil {
		return err
	}
	if number, err := numberOf(now); err != nil || number != want || now.Revision != int64(want) {
		return fmt.Errorf("the number is %d at revision %d, want %d: %w", number, now.Revision, want, err)
	}
	return nil
}

func numberOf(r config.Record) (int, error) {
	var found struct{ Number int }
	if len(r.Overrides) == 0 {
		return 0, nil
	}
	err := json.Unmarshal(r.Overrides, &found)
	return found.Number, err
}
