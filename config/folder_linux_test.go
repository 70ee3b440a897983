package config

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// TestL2_TheStateDirectoryMustBeReadAndWritten takes rights away one by one. access(2) asks for the real user, so one thread
// gives up root for it; the path is relative, since the folders above are closed to others.
func TestL2_TheStateDirectoryMustBeReadAndWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, mode := range map[string]os.FileMode{".": 0o755, "state": 0o777} {
		if err := os.MkdirAll(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for mode, accepted := range map[os.FileMode]bool{0o777: true, 0o555: false, 0o333: false, 0o666: false, 0o000: false} {
		if err := os.Chmod("state", mode); err != nil {
			t.Fatal(err)
		}
		err := asNobody(t, func() error { _, err := checkFolder("state"); return err })
		if (err == nil) != accepted || err != nil && err.Error() != "cannot be read and written to: permission denied" {
			t.Errorf("mode %#o: %v, want accepted %v", mode, err, accepted)
		}
	}
	if err := os.Chmod("state", 0o700); err != nil { // for the removal
		t.Fatal(err)
	}
}

// asNobody calls f with the real user of nobody when the test runs as root, whom no mode stops. The thread is given up with its goroutine.
func asNobody(t *testing.T, f func() error) error {
	t.Helper()
	if os.Getuid() != 0 {
		return f()
	}
	const nobody, keep = 65534, ^uintptr(0)
	result := make(chan error)
	var errno syscall.Errno
	go func() {
		runtime.LockOSThread()
		if _, _, errno = syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, keep, keep); errno != 0 {
			result <- nil
			return
		}
		result <- f()
	}()
	err := <-result
	if errno != 0 {
		t.Fatalf("cannot give up root: %v", errno)
	}
	return err
}
