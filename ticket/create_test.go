package ticket

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// asProcess makes the test binary a process that does nothing but print the key of that state directory.
const asProcess = "ARKVORY_TICKET_TEST_STATE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asProcess); dir != "" {
		key, err := FromStateDir(dir).Key(context.Background())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Printf("%s\n", hex.EncodeToString(key[:]))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestT3_KeyFileUnderAnyUmask has mode 0600.
func TestT3_KeyFileUnderAnyUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077, 0o277, 0o777} {
		dir := t.TempDir()
		old := syscall.Umask(mask)
		key, err := FromStateDir(dir).Key(t.Context())
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %#o: %v", mask, err)
		}
		onlyKey(t, dir, key)
	}
}

// TestT3_RacingCreatorsEndWithOneKey: many sources at once, as in several processes, then processes indeed.
func TestT3_RacingCreatorsEndWithOneKey(t *testing.T) {
	for range 15 {
		dir := t.TempDir()
		keys := make([]Key, 32)
		start := make(chan struct{})
		var group sync.WaitGroup
		for i := range keys {
			group.Go(func() {
				<-start
				key, err := FromStateDir(dir).Key(t.Context())
				if err != nil {
					t.Error(err)
				}
				keys[i] = key
			})
		}
		close(start)
		group.Wait()
		for _, key := range keys {
			if key != keys[0] {
				t.Fatal("two keys")
			}
		}
		onlyKey(t, dir, keys[0])
	}
	dir := t.TempDir()
	processes := make([]*exec.Cmd, 6)
	outputs := make([]bytes.Buffer, len(processes))
	for i := range processes {
		processes[i] = exec.CommandContext(t.Context(), os.Args[0])
		processes[i].Env = append(os.Environ(), asProcess+"="+dir)
		processes[i].Stdout, processes[i].Stderr = &outputs[i], &outputs[i]
		if err := processes[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, process := range processes {
		if err := process.Wait(); err != nil {
			t.Errorf("%v: %s", err, outputs[i].String())
		}
	}
	key := mustKey(t, dir)
	onlyKey(t, dir, key)
	for i := range outputs {
		if got := outputs[i].String(); got != line(key) {
			t.Errorf("process %d has %q", i, got)
		}
	}
}

// TestT3_CrashLeftovers: whatever a process that died while it made the key left behind, the next start ends with one whole key
// and nothing else, and a key that was there stays.
func TestT3_CrashLeftovers(t *testing.T) {
	temporary := func(dir string, n int) string { return fmt.Sprintf("%s.LEFTOVER%d.tmp", keyFile(dir), n) }
	for _, one := range []struct {
		what  string
		leave func(dir string)
		kept  bool // the key is testKey
	}{
		{"died after it created the file", func(dir string) { put(t, temporary(dir, 1), "", 0o600) }, false},
		{"died before it set the mode", func(dir string) { put(t, temporary(dir, 1), "", 0) }, false},
		{"died in the middle of writing", func(dir string) { put(t, temporary(dir, 1), line(testKey)[:20], 0o600) }, false},
		{"died before it linked", func(dir string) { put(t, temporary(dir, 1), line(testKey), 0o600) }, false},
		{"died many times", func(dir string) {
			for n := range 40 {
				put(t, temporary(dir, n), line(testKey), 0o600)
			}
		}, false},
		{"died before it removed the temporary name", func(dir string) {
			put(t, temporary(dir, 1), line(testKey), 0o600)
			if err := os.Link(temporary(dir, 1), keyFile(dir)); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"died after it lost the race", func(dir string) {
			put(t, keyFile(dir), line(testKey), 0o600)
			put(t, temporary(dir, 1), line(Key{1}), 0o600)
		}, true},
	} {
		dir := t.TempDir()
		one.leave(dir)
		key := mustKey(t, dir)
		if (key == testKey) != one.kept {
			t.Errorf("%s: the key was kept: %v, want %v", one.what, key == testKey, one.kept)
		}
		onlyKey(t, dir, key)
		if mustKey(t, dir) != key {
			t.Errorf("%s: the next start has another key", one.what)
		}
	}
}
