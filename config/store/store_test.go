package store_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/config/store"
	"github.com/arkvory/sidecar/config/store/pgtest"
	"github.com/arkvory/sidecar/config/store/storetest"
)

func TestS4_PostgresConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (one, other config.RecordStore) {
		url := pgtest.Shared(t).Database(t)
		return openPostgres(t, url), openPostgres(t, url)
	})
}

func TestS4_FileConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (one, other config.RecordStore) {
		dir := t.TempDir()
		return store.OpenFile(dir), store.OpenFile(dir)
	})
}

func TestS4_MemoryConforms(t *testing.T) {
	storetest.Run(t, func(*testing.T) (one, other config.RecordStore) {
		s := &config.MemoryRecords{}
		return s, s
	})
}

// processes runs real processes over one store and returns what each printed.
func processes(t *testing.T, where string, n int) []string {
	t.Helper()
	all, outputs := make([]*exec.Cmd, n), make([]bytes.Buffer, n)
	for i := range all {
		all[i] = exec.CommandContext(t.Context(), os.Args[0])
		all[i].Env = append(os.Environ(), asProcess+"="+where)
		all[i].Stdout, all[i].Stderr = &outputs[i], &outputs[i]
		if err := all[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	said := make([]string, n)
	for i, one := range all {
		if err := one.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, outputs[i].String())
		}
		said[i] = strings.TrimSpace(outputs[i].String())
	}
	return said
}

// TestS2_RealProcessesLoseNothing: they start at once on an empty database, so they also race for its tables and for the ticket key.
func TestS2_RealProcessesLoseNothing(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	keys := processes(t, url, 4)
	s := openPostgres(t, url)
	if err := storetest.Counted(t.Context(), s, 4*eachProcess); err != nil {
		t.Error(err)
	}
	for _, key := range keys {
		if key != keys[0] || len(key) != 64 {
			t.Errorf("T3: processes have the keys %q", keys)
		}
	}
	dir := t.TempDir()
	processes(t, dir, 4)
	if err := storetest.Counted(t.Context(), store.OpenFile(dir), 4*eachProcess); err != nil {
		t.Error(err)
	}
}
