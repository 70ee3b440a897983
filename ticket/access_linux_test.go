package ticket

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// unprivileged runs f with the file rights of an account that owns nothing, also when the tests run as root: the thread's
// file-system user changes, and the thread ends with its goroutine.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// TestT3_DirectoryWithoutRights: what the process may not do is said with the file and a remedy; a key that it may read is enough.
func TestT3_DirectoryWithoutRights(t *testing.T) {
	open := func(mode os.FileMode) string {
		dir := t.TempDir()
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // others must come that far
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o700) })
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	closed, listed, unwritable := open(0), open(0o444), open(0o555)
	unreadable := open(0o755)
	put(t, keyFile(unreadable), line(testKey), 0)
	unprivileged(t, func() {
		refused(t, closed, "a closed directory", "", "cannot be opened", "permission denied", "mode 0700")
		refused(t, listed, "an unsearchable directory", "", "permission denied")
		refused(t, unwritable, "an unwritable directory", "", "cannot create", "permission denied", "write to the directory")
		refused(t, unreadable, "an unreadable file", "", "cannot be opened", "permission denied", "chown")
	})

	// A volume that is mounted read-only, with what a crash left.
	dir := open(0o755)
	put(t, keyFile(dir), line(testKey), 0o600)
	put(t, keyFile(dir)+".X.tmp", "", 0o600)
	if os.Geteuid() == 0 {
		for _, path := range []string{keyFile(dir), keyFile(dir) + ".X.tmp"} {
			if err := os.Chown(path, 65534, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	unprivileged(t, func() {
		if key, err := FromStateDir(dir).Key(t.Context()); err != nil || key != testKey {
			t.Errorf("read-only: %v", err)
		}
	})
}

// TestT3_NoSpace: a directory that takes no new file leaves nothing behind. /proc is such a directory for everybody.
func TestT3_NoSpace(t *testing.T) {
	_, err := FromStateDir("/proc/self").Key(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot create the ticket key /proc/self/ticket.key (ARKVORY_STATE_DIR)") {
		t.Error(err)
	}
}
