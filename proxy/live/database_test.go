package live

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config/store"
	"github.com/arkvory/sidecar/config/store/pgtest"
	"github.com/arkvory/sidecar/proxy/admin"
)

// desk is what one process has: a pool of its own and a desk that follows it.
type desk struct {
	*bench
	noticed chan admin.SettingsDocument
}

func joined(t *testing.T, url string) *desk {
	t.Helper()
	s, err := store.OpenPostgres(url)
	if err != nil {
		t.Fatal(err)
	}
	b, noticed := start(t, environment(), s), make(chan admin.SettingsDocument, 100)
	b.set.Noticed = func(d admin.SettingsDocument) { noticed <- d }
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); b.Follow(ctx) }()
	t.Cleanup(func() { stop(); <-ended; s.Close() })
	return &desk{b, noticed}
}

// until waits for what following finds.
func (d *desk) until(what string, is func(admin.SettingsDocument) bool) admin.SettingsDocument {
	d.t.Helper()
	limit := time.After(time.Minute) // far beyond the 10 s that are promised, for a machine that is busy
	for doc := d.Current(); ; {
		if is(doc) {
			return doc
		}
		select {
		case doc = <-d.noticed:
		case <-limit:
			d.t.Fatalf("%s: %+v", what, d.Current())
		}
	}
}

func sessions(n int) func(admin.SettingsDocument) bool {
	return func(d admin.SettingsDocument) bool { return d.Effective.Sessions == n && d.Problem == "" }
}

// TestS3_TwoProcessesOnOneDatabase: a change at one is live at the other; of two operators one is refused and nothing is lost.
func TestS3_TwoProcessesOnOneDatabase(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	one, other := joined(t, url), joined(t, url)
	one.must(`{"sessions":5}`)
	if doc := other.until("the change of the other process", sessions(5)); doc.Revision != 1 || !doc.Persisted || doc.UpdatedBy != "token" {
		t.Errorf("%+v", doc)
	}
	for round := range 5 {
		revision := one.Current().Revision
		one.until("the same revision", func(d admin.SettingsDocument) bool { return d.Revision == revision })
		other.until("the same revision", func(d admin.SettingsDocument) bool { return d.Revision == revision })
		errs := make(chan error, 2)
		for i, d := range []*desk{one, other} {
			overrides := []string{`{"sessions":6}`, `{"sessions":7}`}[i]
			go func() { _, err := d.put(overrides); errs <- err }()
		}
		a, b := <-errs, <-errs
		if a == nil {
			a, b = b, a
		}
		var stale *admin.RevisionError
		if b != nil || !errors.As(a, &stale) || stale.Current != revision+1 {
			t.Fatalf("round %d: %v and %v", round, a, b)
		}
		n := one.until("the winner's", func(d admin.SettingsDocument) bool { return d.Revision == revision+1 }).Effective.Sessions
		if doc := other.until("the winner's", func(d admin.SettingsDocument) bool { return d.Revision == revision+1 }); doc.Effective.Sessions != n {
			t.Errorf("round %d: one has %d slots, the other %d", round, n, doc.Effective.Sessions)
		}
	}
}

// TestS3_DatabaseOutages: down at the start, stopped in the middle, frozen, each time with a change that is refused and a recovery that nobody helps.
func TestS3_DatabaseOutages(t *testing.T) {
	c := pgtest.Start(t)
	url := c.Database(t)
	c.Stop(t)
	one := joined(t, url)
	if doc := one.Current(); !strings.HasPrefix(doc.Problem, "cannot read the live settings: the database cannot be reached") || doc.Effective.Sessions != 16 {
		t.Errorf("down at the start: %+v", doc)
	}
	c.Start(t)
	one.until("recovery from the start", sessions(16))
	one.must(`{"sessions":5}`)
	for name, outage := range map[string]struct{ begin, end func(testing.TB) }{"stopped": {c.Stop, c.Start}, "killed": {c.Kill, c.Start}, "frozen": {c.Pause, c.Resume}} {
		before := one.Current()
		outage.begin(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := one.Change(ctx, []byte(`{"expectedRevision":`+strconv.FormatInt(before.Revision, 10)+`,"overrides":{"sessions":9}}`), "token")
		cancel()
		if err == nil {
			t.Errorf("%s: a change was taken", name)
		}
		doc := one.until(name, func(d admin.SettingsDocument) bool {
			return strings.HasPrefix(d.Problem, "cannot read the live settings: the ")
		})
		if doc.Effective.Sessions != 5 || doc.Revision != before.Revision {
			t.Errorf("%s: %+v", name, doc)
		}
		outage.end(t)
		if doc := one.until(name+", recovery", sessions(5)); doc.Revision != before.Revision {
			t.Errorf("%s: the refused change was saved: %+v", name, doc)
		}
		if doc := one.must(`{"sessions":5}`); doc.Revision != before.Revision+1 {
			t.Errorf("%s: %+v", name, doc)
		}
	}
}
