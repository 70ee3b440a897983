package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/ticket"
)

// loaded is the configuration of some variables.
func loaded(t *testing.T, environ ...string) config.Config {
	t.Helper()
	cfg, _, err := config.Load(append(environ, "ARKVORY_UPSTREAM=http://127.0.0.1:9"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestS4_TheStoreAndTheKeyAreChosen: database, else state directory, else this process.
func TestS4_TheStoreAndTheKeyAreChosen(t *testing.T) {
	dir := "ARKVORY_STATE_DIR=" + t.TempDir()
	const dead = "ARKVORY_DATABASE_URL=postgres://u:p4ssw0rd@127.0.0.1:1/d?sslmode=disable"
	for name, one := range map[string]struct {
		environ          []string
		persisted, ready bool
		source           string
	}{
		"memory":   {nil, false, true, ticket.SourceRandom},
		"file":     {[]string{dir}, true, true, ticket.SourceStateDir},
		"database": {[]string{dir, dead}, true, false, ticket.SourceDatabase},
		"variable": {[]string{dead, "ARKVORY_TICKET_KEY=" + strings.Repeat("0f", 32)}, true, true, ticket.SourceVariable},
	} {
		var said bytes.Buffer
		log := zerolog.New(&said)
		cfg := loaded(t, one.environ...)
		set, begin, err := settings(cfg, log)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := openTickets(cfg, &set, log); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if set.Records.Persisted() != one.persisted || set.Tickets.Ready() != one.ready || set.TicketSource != one.source || (set.Identity.Key != nil) != one.ready {
			t.Errorf("%s: persisted %v, ready %v, key of %s", name, set.Records.Persisted(), set.Tickets.Ready(), set.TicketSource)
		}
		begin()()
		if strings.Contains(said.String(), "p4ssw0rd") || strings.Contains(said.String(), "127.0.0.1:1") || !one.ready && !strings.Contains(said.String(), "working without queue tickets") {
			t.Errorf("%s: logged %s", name, said.String())
		}
	}
}
