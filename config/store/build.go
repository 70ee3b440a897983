package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var files embed.FS

const (
	// versionsTable is where goose notes which migrations a database has.
	versionsTable = "arkvory_migrations"
	settingsTable = "arkvory_download_settings"
	keyTable      = "arkvory_download_ticket_key"
	// schemaVersion is the newest migration of this binary; a test compares it with the files.
	schemaVersion = 1
	// buildLock is the advisory lock under which tables are changed: "arkvory" in ASCII.
	buildLock = 0x61726b766f7279
)

// build brings the tables up to date once in the life of the process. An error stops nobody: tables that another account made may be there all the same. It is tried
// again after rebuildAfter.
func (p *Postgres) build(ctx context.Context) error {
	select {
	case p.building <- struct{}{}:
		defer func() { <-p.building }()
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	wait := p.built || time.Now().Before(p.retryAt)
	p.mu.Unlock()
	if wait {
		return nil
	}
	err := p.migrate(ctx, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.built = err == nil
	if err != nil && code(err) != "" { // refused; where nobody answered the next call asks anew
		p.retryAt = time.Now().Add(rebuildAfter)
	}
	return err
}

// rebuild makes tables that are missing although their migrations are noted, as after a restore of a backup from which they were excluded. Where a newer version was
// here it makes nothing: it does not know how the tables should look.
func (p *Postgres) rebuild(ctx context.Context) error {
	select {
	case p.building <- struct{}{}:
		defer func() { <-p.building }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if version, err := p.version(ctx); err != nil || version != schemaVersion {
		return errors.Join(err, errNewer)
	}
	return p.migrate(ctx, true)
}

var errNewer = errors.New("the tables are those of another version")

// version returns the newest migration that the database has.
func (p *Postgres) version(ctx context.Context) (version int64, err error) {
	do := func() error {
		return p.pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+versionsTable+" WHERE is_applied").Scan(&version)
	}
	if err = do(); stale(err) {
		err = do()
	}
	return version, err
}

// migrate carries out the migrations that the database does not have, or all of them anew. A database that is newer than this binary is left as it is. Of many
// processes one does it and the others wait: the lock belongs to a transaction, since a pooler may give a session to somebody else.
func (p *Postgres) migrate(ctx context.Context, anew bool) error {
	if version, err := p.version(ctx); !anew && err == nil && version >= schemaVersion {
		return nil
	} else if err != nil && !missing(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	tx, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // releases the lock
	// The holder is at work on its other connection while this one idles.
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", buildTime.Milliseconds())); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", buildTime.Milliseconds())); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", buildTime.Milliseconds())); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(buildLock)); err != nil {
		return err
	}
	return p.up(ctx, anew)
}

// up runs goose over one connection of its own.
func (p *Postgres) up(ctx context.Context, anew bool) (err error) {
	folder, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*p.pool.Config().ConnConfig)
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, folder, goose.WithTableName(versionsTable), goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()), goose.WithDisableVersioning(anew))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
