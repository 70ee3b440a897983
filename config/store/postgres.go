package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/arkvory/sidecar/config"
)

// Postgres keeps the record, and the key of the tickets, in a PostgreSQL database. It is safe for concurrent use and implements [config.RecordStore] and
// [config.RecordWatcher]. Invariants:
//
//	P1 Nothing is connected before the first call, and no call outlives its context.
//	P2 A change is one statement on one row: what it compares is what it replaces, whoever else tries.
//	P3 A change whose COMMIT was not sent is not made, also when the server was frozen meanwhile and wakes later.
//	P4 No error holds an address, an account, a password or the text of the server: see [config.StoreError].
//	P5 No statement is prepared by name and nothing depends on the state of a connection between two transactions, LISTEN apart, of which only speed depends.
type Postgres struct {
	pool *pgxpool.Pool

	// building holds one token: who has it may bring the tables up to date. It is a mutex whose wait ends with a context.
	building chan struct{}
	mu       sync.Mutex // guards built, retryAt
	built    bool
	retryAt  time.Time

	closing sync.Once
	done    chan struct{}
}

// Bounds of one process towards the database.
const (
	poolSize       = 4                // settings are rare: this is for one that hangs and the next
	dialTime       = 5 * time.Second  // unless the connection string says another
	statementTime  = 3 * time.Second  // of a change, on the server
	lockTime       = 2 * time.Second  // of the wait for another's change, on the server
	buildTime      = 10 * time.Second // of all migrations
	rebuildAfter   = 30 * time.Second // a refused migration is tried again then
	closeTime      = 2 * time.Second
	connectionIdle = 5 * time.Minute
)

// OpenPostgres returns the store of a database by its connection string, postgres://user:password@host:port/database?parameters as libpq has them (TLS: sslmode, sslrootcert
// and so on). It connects to nothing, so a database that is down stops no start. The error says that the string cannot be used and repeats none of it.
func OpenPostgres(url string) (*Postgres, error) {
	set, err := pgxpool.ParseConfig(url)
	if err != nil { // its text may show a password that it did not recognise
		return nil, errors.New("cannot use ARKVORY_DATABASE_URL: the connection string or a file that it names cannot be read; " +
			"example: postgres://arkvory:PASSWORD@db.internal:5432/arkvory?sslmode=verify-full")
	}
	set.MaxConns, set.MinConns, set.MinIdleConns, set.MaxConnIdleTime = poolSize, 0, 0, connectionIdle
	if set.ConnConfig.ConnectTimeout == 0 {
		set.ConnConfig.ConnectTimeout = dialTime
	}
	// The unnamed statement, in one message with its execution: what a pooler that gives each transaction another connection can carry.
	set.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	set.ConnConfig.StatementCacheCapacity, set.ConnConfig.DescriptionCacheCapacity = 0, 0
	if set.ConnConfig.RuntimeParams["application_name"] == "" {
		set.ConnConfig.RuntimeParams["application_name"] = "arkvory-sidecar"
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), set)
	if err != nil {
		return nil, errors.New("cannot use ARKVORY_DATABASE_URL: the connection string is refused")
	}
	return &Postgres{pool: pool, building: make(chan struct{}, 1), done: make(chan struct{})}, nil
}

// Persisted returns true.
func (*Postgres) Persisted() bool { return true }

// Close ends the connections and what waits on them. It waits at most two seconds: a frozen server does not keep a process from ending.
func (p *Postgres) Close() {
	p.closing.Do(func() {
		close(p.done)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.pool.Close()
		}()
		limit := time.NewTimer(closeTime)
		defer limit.Stop()
		select {
		case <-ended:
		case <-limit.C:
		}
	})
}

const selectRecord = `SELECT revision, overrides, updated_by, updated_at FROM arkvory_download_settings WHERE id`

// Load returns the record, the zero one when the table is empty. Errors are *config.StoreError.
func (p *Postgres) Load(ctx context.Context) (config.Record, error) {
	found := config.Record{}
	err := p.try(ctx, func() (err error) {
		found, err = scan(p.pool.QueryRow(ctx, selectRecord))
		return err
	})
	if err != nil {
		return config.Record{}, fault(ctx, "read", settingsTable, err)
	}
	return found, nil
}

// scan reads a record; no row is the zero one.
func scan(row pgx.Row) (config.Record, error) {
	var one config.Record
	var overrides string
	err := row.Scan(&one.Revision, &overrides, &one.UpdatedBy, &one.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return config.Record{}, nil
	}
	if err != nil {
		return config.Record{}, err
	}
	one.Overrides, one.UpdatedAt = []byte(overrides), one.UpdatedAt.UTC()
	return one, nil
}

// A change is one of these statements. A read committed transaction waits for another's change of the row, or for another's first row, and then compares anew.
const (
	firstRecord = `INSERT INTO arkvory_download_settings (id, revision, overrides, updated_by, updated_at)
		VALUES (true, 1, $1, $2, coalesce($3, clock_timestamp())) ON CONFLICT (id) DO NOTHING RETURNING revision, overrides, updated_by, updated_at`
	nextRecord = `UPDATE arkvory_download_settings SET revision = revision + 1, overrides = $1, updated_by = $2, updated_at = coalesce($3, clock_timestamp())
		WHERE id AND revision = $4 RETURNING revision, overrides, updated_by, updated_at`
	tellOthers = `SELECT pg_notify('` + channel + `', '')`
)

// Swap compares and swaps in one statement. A zero UpdatedAt becomes the database's time; times are kept to the microsecond. Errors are config.ErrRevision, or a
// *config.StoreError: then nothing was saved, unless the answer to the commit itself was lost, which the error says.
func (p *Postgres) Swap(ctx context.Context, expected int64, next config.Record) (config.Record, error) {
	if err := judge(next); err != nil {
		return config.Record{}, err
	}
	var saved config.Record
	var sent bool
	err := p.try(ctx, func() (err error) {
		saved, sent, err = p.swap(ctx, expected, next)
		return err
	})
	switch {
	case errors.Is(err, config.ErrRevision):
		return saved, config.ErrRevision
	case err != nil && sent:
		return config.Record{}, &config.StoreError{Verb: "save", Why: "the answer of the database was lost, so the change may have been saved; read the settings again", Err: ctx.Err()}
	case err != nil:
		return config.Record{}, fault(ctx, "save", settingsTable, err)
	}
	return saved, nil
}

// swap is the transaction of a change. Sent: its commit was.
func (p *Postgres) swap(ctx context.Context, expected int64, next config.Record) (saved config.Record, sent bool, err error) {
	tx, err := p.begin(ctx)
	if err != nil {
		return config.Record{}, false, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // of no effect after the commit; a connection that is not in order is not used again
	var at *time.Time
	if !next.UpdatedAt.IsZero() {
		at = &next.UpdatedAt
	}
	overrides := string(next.Overrides)
	if len(overrides) == 0 {
		overrides = "{}"
	}
	if expected == 0 {
		saved, err = scan(tx.QueryRow(ctx, firstRecord, overrides, next.UpdatedBy, at))
	} else {
		saved, err = scan(tx.QueryRow(ctx, nextRecord, overrides, next.UpdatedBy, at, expected))
	}
	if err != nil {
		return config.Record{}, false, err
	}
	if saved.Revision == 0 { // no row had the expected revision
		if saved, err = scan(tx.QueryRow(ctx, selectRecord)); err != nil {
			return config.Record{}, false, err
		}
		return saved, false, config.ErrRevision
	}
	if _, err = tx.Exec(ctx, tellOthers); err != nil {
		return config.Record{}, false, err
	}
	if err = ctx.Err(); err != nil {
		return config.Record{}, false, err
	}
	return saved, true, tx.Commit(ctx)
}

// begin opens a transaction whose statements end on the server too: what a client gave up must not be carried out an hour later, and one that froze must not keep
// others from changing the settings.
func (p *Postgres) begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := p.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return nil, err
	}
	for _, one := range [...]struct {
		name string
		time time.Duration
	}{{"statement_timeout", statementTime}, {"lock_timeout", lockTime}, {"idle_in_transaction_session_timeout", statementTime}} {
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL %s = %d", one.name, one.time.Milliseconds())); err != nil {
			_ = tx.Rollback(ctx)
			return nil, err
		}
	}
	return tx, nil
}

// try brings the tables up to date and does something, a second time where the first only found that an idle connection had died: the server was restarted since.
func (p *Postgres) try(ctx context.Context, do func() error) error {
	select {
	case <-p.done:
		return errClosed
	default:
	}
	unbuilt := p.build(ctx)
	err := do()
	if stale(err) && ctx.Err() == nil {
		err = do()
	}
	if unbuilt != nil && err != nil && missing(err) {
		return unbuilt // why there is no table says more than that there is none
	}
	if err != nil && missing(err) && p.rebuild(ctx) == nil {
		err = do()
	}
	return err
}
