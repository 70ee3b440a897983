package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/config/store"
	"github.com/arkvory/sidecar/config/store/pgtest"
)

// TestS3_OutagesEndWithTheirCause: down at the start, stopped, killed, restarted behind idle connections. Nothing has to be opened anew.
func TestS3_OutagesEndWithTheirCause(t *testing.T) {
	c := pgtest.Start(t)
	url := c.Database(t)
	c.Stop(t)
	one, other := openPostgres(t, url), openPostgres(t, url)
	_, err := one.Load(t.Context())
	why(t, err, "the database cannot be reached")
	c.Start(t)
	for n, end := range []func(testing.TB){c.Stop, c.Kill} {
		if r, err := one.Swap(t.Context(), int64(2*n), config.Record{}); err != nil || r.Revision != int64(2*n+1) {
			t.Fatalf("%+v, %v", r, err)
		}
		if r, err := other.Load(t.Context()); err != nil || r.Revision != int64(2*n+1) {
			t.Errorf("the other one: %+v, %v", r, err)
		}
		end(t)
		_, err := one.Swap(t.Context(), int64(2*n+1), config.Record{})
		why(t, err, "cannot save the live settings: the ")
		c.Start(t)
		if r, err := other.Swap(t.Context(), int64(2*n+1), config.Record{}); err != nil || r.Revision != int64(2*n+2) {
			t.Errorf("after it came back: %+v, %v", r, err)
		}
		if r, err := one.Load(t.Context()); err != nil || r.Revision != int64(2*n+2) {
			t.Errorf("what failed was saved, or is not seen: %+v, %v", r, err)
		}
	}
}

// TestS3_AChangeThatAFrozenServerDidNotAnswerIsNotMade, also after the server woke and found it in its socket.
func TestS3_AChangeThatAFrozenServerDidNotAnswerIsNotMade(t *testing.T) {
	c := pgtest.Start(t)
	url := c.Database(t)
	s := openPostgres(t, url)
	if _, err := s.Swap(t.Context(), 0, config.Record{}); err != nil {
		t.Fatal(err)
	}
	c.Pause(t)
	for range 2 { // on a connection that was open, and on a new one
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := s.Swap(ctx, 1, config.Record{})
		cancel()
		why(t, err, "does not answer in time")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	c.Resume(t)
	if r, err := s.Load(t.Context()); err != nil || r.Revision != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.Swap(t.Context(), 1, config.Record{}); err != nil || r.Revision != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestS4_AClosedStoreAnswers(t *testing.T) {
	s, err := store.OpenPostgres(pgtest.Shared(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	_, err = s.Load(t.Context())
	why(t, err, "closed")
	s.Watch(t.Context(), func() { t.Error("woken by a closed store") })
}
