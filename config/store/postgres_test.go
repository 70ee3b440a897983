package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/config/store"
	"github.com/arkvory/sidecar/config/store/pgtest"
)

const secret = "s3cr3t-pa55"

// why fails unless an error is one of the store with these words, and nothing that must not be shown.
func why(t *testing.T, err error, words string, hidden ...string) {
	t.Helper()
	var known *config.StoreError
	if !errors.As(err, &known) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want a store's error with %q", err, words)
		return
	}
	for text := fmt.Sprintf("%+v %#v %v", err, err, errors.Unwrap(err)); len(hidden) > 0; hidden = hidden[1:] {
		if strings.Contains(text, hidden[0]) {
			t.Errorf("%q is shown in %s", hidden[0], text)
		}
	}
}

func TestS4_NoErrorShowsTheConnectionString(t *testing.T) {
	for _, url := range []string{"postgres://zoe7:" + secret + "@db.internal:x/q", "postgres://zoe7:" + secret + "@h/q?sslmode=" + secret, "host=h password=" + secret + " port=x",
		"postgres://zoe7:" + secret + "@h/q?sslmode=verify-full&sslrootcert=/nowhere/" + secret} {
		if _, err := store.OpenPostgres(url); err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "ARKVORY_DATABASE_URL") {
			t.Errorf("%v", err)
		}
	}
	s := openPostgres(t, "postgres://zoe7:"+secret+"@127.0.0.1:1/hiddendb?sslmode=disable")
	_, err := s.Load(t.Context())
	why(t, err, "cannot read the live settings: the database cannot be reached: connection refused", secret, "zoe7", "127.0.0.1", "hiddendb")
	_, err = s.TicketKey(t.Context())
	why(t, err, "cannot read the ticket key: the database cannot be reached: connection refused", secret, "zoe7")
	s = openPostgres(t, "postgres://zoe7:"+secret+"@/hiddendb?host=/nowhere")
	_, err = s.Swap(t.Context(), 0, config.Record{})
	why(t, err, "cannot save the live settings: the database cannot be reached: its socket is not there", secret, "/nowhere")
	c := pgtest.Shared(t)
	_, err = openPostgres(t, c.URL("hiddendb")).Load(t.Context())
	why(t, err, "does not exist", "hiddendb")
	_, err = openPostgres(t, c.URLOf("nosuchaccount", "postgres")).Load(t.Context())
	why(t, err, "does not accept the account", "nosuchaccount")
}

// TestS4_AccountWithFewRights: it says what is missing, and goes on with what it may.
func TestS4_AccountWithFewRights(t *testing.T) {
	c := pgtest.Shared(t)
	name := pgtest.Name(c.Database(t))
	role := "r" + name
	c.SQL(t, name, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { c.SQL(t, "postgres", "DROP ROLE "+role) })
	t.Cleanup(func() { c.SQL(t, name, "DROP OWNED BY "+role) })
	poor := openPostgres(t, c.URLOf(role, name))
	_, err := poor.Load(t.Context())
	why(t, err, "has not the rights", role)

	rich := openPostgres(t, c.URL(name))
	if _, err := rich.Swap(t.Context(), 0, config.Record{Overrides: []byte(`{"sessions":4}`)}); err != nil {
		t.Fatal(err)
	}
	key, err := rich.TicketKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.SQL(t, name, "GRANT SELECT ON arkvory_download_settings, arkvory_download_ticket_key TO "+role)
	if r, err := poor.Load(t.Context()); err != nil || r.Revision != 1 {
		t.Errorf("reading: %+v, %v", r, err)
	}
	if got, err := poor.TicketKey(t.Context()); err != nil || got != key {
		t.Errorf("T3: the key of the others: %v", err)
	}
	_, err = poor.Swap(t.Context(), 1, config.Record{Overrides: []byte(`{}`)})
	why(t, err, "grant it SELECT, INSERT and UPDATE on arkvory_download_settings", role)
	c.SQL(t, name, "GRANT INSERT, UPDATE ON arkvory_download_settings TO "+role)
	if r, err := poor.Swap(t.Context(), 1, config.Record{Overrides: []byte(`{}`)}); err != nil || r.Revision != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestS3_NewerDatabaseServesAnOlderBinary: a newer version added a migration and a column. Rolling back goes on (6.2).
func TestS3_NewerDatabaseServesAnOlderBinary(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	if _, err := openPostgres(t, url).Swap(t.Context(), 0, config.Record{Overrides: []byte(`{"sessions":4}`)}); err != nil {
		t.Fatal(err)
	}
	c.SQL(t, pgtest.Name(url), "INSERT INTO arkvory_migrations (version_id, is_applied) VALUES (2, true), (7, true); ALTER TABLE arkvory_download_settings ADD COLUMN more text NOT NULL DEFAULT 'x'")
	older := openPostgres(t, url)
	if r, err := older.Swap(t.Context(), 1, config.Record{Overrides: []byte(`{"sessions":5}`)}); err != nil || r.Revision != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	c.SQL(t, pgtest.Name(url), "ALTER TABLE arkvory_download_settings DROP COLUMN overrides")
	_, err := older.Load(t.Context())
	why(t, err, "of another version")
	c.SQL(t, pgtest.Name(url), "DROP TABLE arkvory_download_settings") // which this version must not make in its own shape
	_, err = openPostgres(t, url).Load(t.Context())
	why(t, err, "is missing")
}

// TestH6_TablesLeftOutOfABackupAreMadeAgain, and say that they may be left out.
func TestH6_TablesLeftOutOfABackupAreMadeAgain(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	s := openPostgres(t, url)
	first, err := s.TicketKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"arkvory_download_settings", "arkvory_download_ticket_key"} {
		if got := c.SQL(t, pgtest.Name(url), "SELECT obj_description('"+table+"'::regclass)"); !strings.Contains(got, "Exclude from backups") {
			t.Errorf("%s: %q", table, got)
		}
	}
	c.SQL(t, pgtest.Name(url), "DROP TABLE arkvory_download_settings, arkvory_download_ticket_key")
	if r, err := s.Swap(t.Context(), 0, config.Record{Overrides: []byte(`{}`)}); err != nil || r.Revision != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if key, err := s.TicketKey(t.Context()); err != nil || key == first {
		t.Errorf("the key of before the restore: %v", err)
	}
	c.SQL(t, pgtest.Name(url), "DELETE FROM arkvory_download_settings")
	if r, err := s.Load(t.Context()); err != nil || r.Revision != 0 {
		t.Errorf("an empty table: %+v, %v", r, err)
	}
}

// TestS2_AnotherTransactionHoldsTheRow: the change is given up on the server, and says so.
func TestS2_AnotherTransactionHoldsTheRow(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	s := openPostgres(t, url)
	if _, err := s.Swap(t.Context(), 0, config.Record{}); err != nil {
		t.Fatal(err)
	}
	hold, held := c.Hold(t, pgtest.Name(url), "SELECT revision FROM arkvory_download_settings FOR UPDATE")
	<-held
	_, err := s.Swap(t.Context(), 1, config.Record{})
	hold()
	why(t, err, "did not finish it in time")
	if r, err := s.Swap(t.Context(), 1, config.Record{}); err != nil || r.Revision != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestS3_ChangesAreHeard by another pool, and again after the server was restarted.
func TestS3_ChangesAreHeard(t *testing.T) {
	c := pgtest.Start(t)
	url := c.Database(t)
	one, other := openPostgres(t, url), openPostgres(t, url)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	heard, ended := make(chan struct{}, 100), make(chan struct{})
	go func() { defer close(ended); other.Watch(ctx, func() { heard <- struct{}{} }) }()
	defer func() { stop(); <-ended }()
	hear := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-ctx.Done():
			t.Fatal(what, "was not heard")
		}
	}
	hear("the connection")
	for n := range int64(2) {
		if _, err := one.Swap(t.Context(), n, config.Record{}); err != nil {
			t.Fatal(err)
		}
		hear("the change")
		c.Restart(t)
		hear("the connection after the restart")
	}
}
