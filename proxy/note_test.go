package proxy

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestX8_TheNoteTouchesNothingElse: a link in its way is not followed, a pipe is not waited for, a failure leaves no file.
func TestX8_TheNoteTouchesNothingElse(t *testing.T) {
	dir := t.TempDir()
	path, key := filepath.Join(dir, noteName), filepath.Join(dir, "ticket.key")
	if err := os.WriteFile(key, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(key, path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := writeNote(path, note{Version: 1, Sessions: 3, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(key); err != nil || string(b) != "secret" {
		t.Errorf("the key became %q, %v", b, err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if n, err := readNote(path); err != nil || n.Sessions != 3 {
		t.Errorf("%+v, %v", n, err)
	}

	other := t.TempDir()
	path = filepath.Join(other, noteName)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeNote(path, note{Version: 1}); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, _ := os.ReadDir(other); len(entries) != 1 {
		t.Errorf("a failure left %v", entries)
	}

	path = filepath.Join(t.TempDir(), noteName)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() { _, err := readNote(path); read <- err }()
	select {
	case err := <-read:
		if err == nil {
			t.Error("a pipe was read as a note")
		}
	case <-time.After(5 * time.Second):
		t.Error("a pipe blocks the start")
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_ = f.Close()
		}
	}
}

// TestX8_TwoThatShareADirectoryLeaveAWholeNote: at no moment is there less than a note.
func TestX8_TwoThatShareADirectoryLeaveAWholeNote(t *testing.T) {
	path := filepath.Join(t.TempDir(), noteName)
	if err := writeNote(path, note{Version: 1, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 50 {
				if err := writeNote(path, note{Version: 1, Sessions: 1 << (8 * i), At: time.Now()}); err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				if _, err := readNote(path); err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
			}
		})
	}
	writers.Wait()
}
