package store

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/arkvory/sidecar/config"
)

// keyBytes is the length of the key.
const keyBytes = 32

const (
	selectKey = `SELECT key FROM arkvory_download_ticket_key WHERE id`
	insertKey = `INSERT INTO arkvory_download_ticket_key (id, key) VALUES (true, $1) ON CONFLICT (id) DO NOTHING`
)

// TicketKey returns the key of the installation's queue tickets (T3). Whoever comes first makes it of random bytes, all others read it: it is returned only as read back
// from the row. Errors are *config.StoreError and never hold a key.
func (p *Postgres) TicketKey(ctx context.Context) (key [keyBytes]byte, err error) {
	err = p.try(ctx, func() error {
		var kept []byte
		err := p.pool.QueryRow(ctx, selectKey).Scan(&kept)
		if errors.Is(err, pgx.ErrNoRows) {
			var fresh [keyBytes]byte
			rand.Read(fresh[:])
			if _, err = p.pool.Exec(ctx, insertKey, fresh[:]); err != nil {
				return err
			}
			err = p.pool.QueryRow(ctx, selectKey).Scan(&kept)
		}
		if err != nil {
			return err
		}
		if len(kept) != keyBytes {
			return &config.StoreError{Verb: "read", What: keyThing, Why: "the row of " + keyTable + " holds no key of 32 bytes: delete it, then one is made"}
		}
		copy(key[:], kept)
		return nil
	})
	if err == nil {
		return key, nil
	}
	err = fault(ctx, "read", keyTable, err)
	var known *config.StoreError
	if errors.As(err, &known) {
		known.What = keyThing
	}
	return [keyBytes]byte{}, err
}

const keyThing = "the ticket key"
