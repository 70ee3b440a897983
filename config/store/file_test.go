package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/config/store"
)

func TestS4_FileIsPrivateAndWhole(t *testing.T) {
	old := syscall.Umask(0o377)
	defer syscall.Umask(old)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(dir, store.FileName+".CRASHED.tmp")
	if err := os.WriteFile(leftover, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenFile(dir).Swap(t.Context(), 0, config.Record{Overrides: []byte(`{"sessions":4}`), UpdatedBy: "token"}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != store.FileName || entries[1].Name() != store.LockName {
		t.Errorf("%v, %v", entries, err)
	}
	info, err := os.Stat(filepath.Join(dir, store.FileName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestS4_ForeignFileIsNeitherUsedNorReplaced whatever is under the name.
func TestS4_ForeignFileIsNeitherUsedNorReplaced(t *testing.T) {
	whole := `{"format":"arkvory-settings/1","revision":3,"updatedBy":"x","updatedAt":"2026-03-04T05:06:07Z","overrides":{"sessions":4}}` + "\n"
	for _, text := range []string{"", "{", whole[:60], `{"sessions":4}`, strings.Replace(whole, "/1", "/2", 1), strings.Replace(whole, ":3", ":0", 1), strings.Replace(whole, ":3", `:"3"`, 1), "\x00\xff",
		whole + whole, whole[:len(whole)-2] + `,"x":"` + strings.Repeat("x", 600<<10) + `"}`} {
		dir := t.TempDir()
		path := filepath.Join(dir, store.FileName)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := store.OpenFile(dir)
		_, err := s.Load(t.Context())
		why(t, err, "is not what this program writes", dir)
		_, err = s.Swap(t.Context(), 0, config.Record{})
		why(t, err, "neither used nor replaced", dir)
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%.40q became %.40q, %v", text, now, err)
		}
	}
	for name, put := range map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink("/etc/hostname", path) },
		"dangling":  func(path string) error { return os.Symlink("nowhere", path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		for _, file := range []string{store.FileName, store.LockName} {
			dir := t.TempDir()
			if err := put(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			s := store.OpenFile(dir)
			_, err := s.Swap(t.Context(), 0, config.Record{})
			why(t, err, file+" in ARKVORY_STATE_DIR is not a regular file", dir)
			if _, err = s.Load(t.Context()); file == store.FileName {
				why(t, err, "is not a regular file", dir)
			}
			if _, err := os.Lstat(filepath.Join(dir, file)); err != nil {
				t.Errorf("%s %s is gone: %v", name, file, err)
			}
		}
	}
	_, err := store.OpenFile("/nowhere/at/all").Load(t.Context())
	why(t, err, "ARKVORY_STATE_DIR cannot be opened", "/nowhere")
}

// TestS2_ALockThatIsHeldEndsWithTheContext and a change that gave up changed nothing.
func TestS2_ALockThatIsHeldEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	lock, err := os.Create(filepath.Join(dir, store.LockName))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	s := store.OpenFile(dir)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := s.Swap(ctx, 0, config.Record{}); ended <- err }()
	if _, err := s.Load(t.Context()); err != nil { // reading needs no lock
		t.Error(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	go func() { _, err := s.Swap(t.Context(), 0, config.Record{}); ended <- err }()
	lock.Close() // as the end of the process that held it
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestS3_AChangeOfTheFileIsSeen(t *testing.T) {
	dir := t.TempDir()
	one, other := store.OpenFile(dir), store.OpenFile(dir)
	ctx, stop := context.WithCancel(t.Context())
	seen, ended := make(chan struct{}, 10), make(chan struct{})
	go func() { defer close(ended); other.Watch(ctx, func() { seen <- struct{}{} }) }()
	defer func() { stop(); <-ended }()
	for n := int64(0); ; n++ { // the first ones may come before the first look
		if _, err := one.Swap(t.Context(), n, config.Record{}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-seen:
			return
		default:
		}
	}
}
