package main

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/config/store"
	"github.com/arkvory/sidecar/proxy"
	"github.com/arkvory/sidecar/ticket"
)

const (
	// keyTime bounds the look for the key at the start.
	keyTime = 10 * time.Second
	// keyEvery is how often a database that did not give it is asked again (T3).
	keyEvery = 30 * time.Second
)

// records is the store of the live settings, and what else its database gives: the ticket key, now or later.
type records struct {
	config.RecordWatcher
	database *store.Postgres // nil: none

	source  ticket.Source // of the key that pending waits for
	pending *ticket.Signer
}

// openRecords chooses the store of the live settings (S4): the database, else a file of the state directory, else the memory of this process. It connects to nothing.
func openRecords(cfg config.Config) (*records, error) {
	switch {
	case cfg.DatabaseURL != "":
		database, err := store.OpenPostgres(cfg.DatabaseURL.Reveal())
		if err != nil {
			return nil, err
		}
		return &records{RecordWatcher: database, database: database}, nil
	case cfg.StateDir != "":
		return &records{RecordWatcher: store.OpenFile(cfg.StateDir)}, nil
	}
	return &records{RecordWatcher: unwatched{&config.MemoryRecords{}}}, nil
}

// unwatched is a store that nobody else changes.
type unwatched struct{ config.RecordStore }

// Watch waits for the end of ctx.
func (unwatched) Watch(ctx context.Context, _ func()) { <-ctx.Done() }

// begin looks for the key that the start did not get. The returned function ends that and closes the store: call it when the proxy has ended.
func (r *records) begin(log zerolog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	if r.pending != nil {
		wait.Go(func() { awaitKey(ctx, r.source, r.pending, log) })
	}
	return func() {
		cancel()
		wait.Wait()
		if r.database != nil {
			r.database.Close()
		}
	}
}

// awaitKey asks for the key until it is there or ctx ends. A reason is logged when it is another than before.
func awaitKey(ctx context.Context, source ticket.Source, signer *ticket.Signer, log zerolog.Logger) {
	tick := time.NewTicker(keyEvery)
	defer tick.Stop()
	for told := ""; ; {
		bounded, cancel := context.WithTimeout(ctx, keyTime)
		key, err := source.Key(bounded)
		cancel()
		if err == nil {
			signer.SetKey(key)
			log.Info().Str("source", source.Name()).Msg("the ticket key is there: queue tickets are given and taken from now on")
			return
		}
		if text := err.Error(); text != told && ctx.Err() == nil {
			told = text
			log.Warn().Err(err).Msg("the ticket key is still not there")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// openTickets gives the proxy its ticket key (T3), and keyed hashes of tokens that outlive the process as the tickets do: a ticket names the principal, which for
// an opaque token is such a hash. A database that does not give the key stops nothing: the proxy works without tickets until it does, and hashes opaque tokens with a key of
// its own until it is started anew, since another hash in mid-run would be another principal.
func openTickets(cfg config.Config, set *proxy.Settings, log zerolog.Logger) error {
	kept, _ := set.Records.(*records)
	source, err := keySource(cfg, kept)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyTime)
	defer cancel()
	set.TicketSource = source.Name()
	key, err := source.Key(ctx)
	if err != nil && source.Name() == ticket.SourceDatabase {
		kept.source, kept.pending = source, ticket.NewPendingSigner()
		set.Tickets = kept.pending
		log.Warn().Err(err).Str("variable", "ARKVORY_DATABASE_URL").Msg("working without queue tickets until the database gives their key")
		return nil
	}
	if err != nil {
		return err
	}
	set.Tickets = ticket.NewSigner(key)
	identity := set.Tickets.Derive("identity")
	set.Identity.Key = identity[:]
	if source.Name() == ticket.SourceRandom {
		log.Warn().Str("variable", "ARKVORY_TICKET_KEY").
			Msg("queue tickets are signed with a random key: after a restart everybody queues anew; set it, or ARKVORY_STATE_DIR")
	}
	return nil
}

func keySource(cfg config.Config, kept *records) (ticket.Source, error) {
	switch {
	case cfg.TicketKey != "":
		return ticket.FromVariable(cfg.TicketKey.Reveal())
	case kept != nil && kept.database != nil:
		return ticket.FromDatabase(kept.database.TicketKey), nil
	case cfg.StateDir != "":
		return ticket.FromStateDir(cfg.StateDir), nil
	}
	return ticket.Random(), nil
}
