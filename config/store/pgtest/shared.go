package pgtest

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

var shared struct {
	once    sync.Once
	mu      sync.Mutex
	cluster *Cluster
	err     error
}

// Shared returns the cluster that all tests of this binary share, started on first use. They must not stop, kill or freeze it. TestMain ends it with [Main] or
// [Close].
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() {
		cluster, err := open()
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.err = err; err == nil {
			shared.cluster = cluster
		}
	})
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Close ends the shared cluster, if there is one.
func Close() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil {
		return nil
	}
	cluster := shared.cluster
	shared.cluster, shared.err = nil, fmt.Errorf("the shared PostgreSQL was ended")
	return cluster.close()
}

// Main runs the tests and ends the shared cluster; it returns the exit code. A panic of m ends it too.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m interface{ Run() int }) (code int) {
	defer func() {
		if err := Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	return m.Run()
}
