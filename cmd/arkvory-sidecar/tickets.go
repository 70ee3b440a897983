package main

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy"
	"github.com/arkvory/sidecar/ticket"
)

// keyTime bounds the look for the key.
const keyTime = 10 * time.Second

// openTickets gives the proxy its ticket key (T3), and keyed hashes of tokens that outlive the process as the tickets do: a ticket names the principal, which for
// an opaque token is such a hash.
func openTickets(cfg config.Config, set *proxy.Settings, log zerolog.Logger) error {
	source, err := keySource(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyTime)
	defer cancel()
	key, err := source.Key(ctx)
	if err != nil {
		return err
	}
	set.Tickets, set.TicketSource = ticket.NewSigner(key), source.Name()
	identity := set.Tickets.Derive("identity")
	set.Identity.Key = identity[:]
	if source.Name() == ticket.SourceRandom {
		log.Warn().Str("variable", "ARKVORY_TICKET_KEY").
			Msg("queue tickets are signed with a random key: after a restart everybody queues anew; set it, or ARKVORY_STATE_DIR")
	}
	return nil
}

func keySource(cfg config.Config) (ticket.Source, error) {
	switch {
	case cfg.TicketKey != "":
		return ticket.FromVariable(cfg.TicketKey.Reveal())
	case cfg.StateDir != "":
		return ticket.FromStateDir(cfg.StateDir), nil
	}
	return ticket.Random(), nil
}
