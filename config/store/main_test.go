package store_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/config/store"
	"github.com/arkvory/sidecar/config/store/pgtest"
	"github.com/arkvory/sidecar/config/store/storetest"
)

// asProcess makes the test binary a process that adds one to the number in a store, so many times, and prints the ticket key where the store has one.
const asProcess = "ARKVORY_STORE_TEST_PROCESS"

const eachProcess = 15

func TestMain(m *testing.M) {
	if where := os.Getenv(asProcess); where != "" {
		os.Exit(process(where))
	}
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func process(where string) int {
	var records config.RecordStore = store.OpenFile(where)
	if strings.HasPrefix(where, "postgres:") {
		pg, err := store.OpenPostgres(where)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer pg.Close()
		key, err := pg.TicketKey(context.Background())
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Printf("%x\n", key)
		records = pg
	}
	if err := storetest.Count(context.Background(), records, eachProcess); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// openPostgres opens the store of a connection string for the time of the test.
func openPostgres(t *testing.T, url string) *store.Postgres {
	t.Helper()
	s, err := store.OpenPostgres(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
