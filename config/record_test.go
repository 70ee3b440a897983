package config

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestS2_SwapTakesTheExpectedRevisionOnly(t *testing.T) {
	var store MemoryRecords
	if r, err := store.Load(t.Context()); err != nil || r.Revision != 0 || r.Overrides != nil {
		t.Fatalf("an empty store holds %+v, %v", r, err)
	}
	if store.Persisted() {
		t.Error("memory claims to outlive the process")
	}
	text := json.RawMessage(`{"sessions":3}`)
	saved, err := store.Swap(t.Context(), 0, Record{Revision: 77, Overrides: text, UpdatedBy: "token", UpdatedAt: time.Unix(9, 0)})
	if err != nil || saved.Revision != 1 || saved.UpdatedBy != "token" {
		t.Fatalf("saved %+v, %v", saved, err)
	}
	text[2] = 'X' // the caller's buffer is the caller's
	for _, expected := range []int64{0, 2, -1} {
		if r, err := store.Swap(t.Context(), expected, Record{Overrides: json.RawMessage(`{}`)}); !errors.Is(err, ErrRevision) || r.Revision != 1 {
			t.Errorf("revision %d: %+v, %v", expected, r, err)
		}
	}
	if r, _ := store.Load(t.Context()); string(r.Overrides) != `{"sessions":3}` || r.UpdatedAt != time.Unix(9, 0) {
		t.Errorf("the store holds %s of %v", r.Overrides, r.UpdatedAt)
	}
}

func TestS2_OfManyRacersOneWins(t *testing.T) {
	var store MemoryRecords
	var won atomic.Int64
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			if _, err := store.Swap(t.Context(), 0, Record{}); err == nil {
				won.Add(1)
			}
		})
	}
	wait.Wait()
	if won.Load() != 1 {
		t.Errorf("%d racers won", won.Load())
	}
}
