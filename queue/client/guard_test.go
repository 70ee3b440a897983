//go:build unix

package client

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestC3_StrangeFilesUnderTheNames: in a folder that others may write to, what lies under the names of a download may have been put
// there by them. It is neither followed, nor written through, nor believed, nor waited for.
func TestC3_StrangeFilesUnderTheNames(t *testing.T) {
	want := noise(60, 200_000)
	precious := []byte("a file that must not change")
	for _, name := range []string{".part", ".arkvory", ".arkvory.lock"} {
		for how, put := range map[string]func(victim, at string) error{
			"symbolic link": os.Symlink,
			"hard link":     os.Link,
			"dangling link": func(victim, at string) error { return os.Symlink(victim+".new", at) },
			"pipe":          func(_, at string) error { return syscall.Mkfifo(at, 0o666) },
			"folder":        func(_, at string) error { return os.Mkdir(at, 0o777) },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				folder := t.TempDir()
				victim, output := filepath.Join(folder, "victim"), filepath.Join(folder, "out")
				if err := errors.Join(os.WriteFile(victim, precious, 0o600), put(victim, output+name)); err != nil {
					t.Fatal(err)
				}
				_, err := Download(t.Context(), Options{URL: testURL, Output: output, Client: &http.Client{Transport: newOrigin(want)}})
				got, readErr := os.ReadFile(victim)
				if readErr != nil || !bytes.Equal(got, precious) {
					t.Errorf("the victim has now %d bytes, %v", len(got), readErr)
				}
				if _, e := os.Lstat(victim + ".new"); e == nil {
					t.Error("a file was made where a link led")
				}
				harmless := how == "hard link" && name != ".part" // read or locked only, and replaced by another name
				if !harmless && (!errors.Is(err, ErrDisk) || !strings.Contains(err.Error(), output+name)) || harmless && err != nil {
					t.Errorf("error %v", err)
				}
			})
		}
	}
}

// TestC3_FilesOfOtherUsers: a part that another user owns in a folder that is not ours could be changed by him after it was verified, and
// his checkpoint could call his file ours.
func TestC3_FilesOfOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can give files away: the rule is tested by itself")
	}
	for _, one := range []struct {
		file, folder, me uint32
		mode             os.FileMode
		fine             bool
	}{
		{1000, 0, 1000, os.ModeDir | os.ModeSticky | 0o777, true},
		{1001, 0, 1000, os.ModeDir | os.ModeSticky | 0o777, false},
		{1001, 0, 1000, os.ModeDir | 0o777, false},
		{1001, 1000, 1000, os.ModeDir | 0o775, false},
		{0, 0, 1000, os.ModeDir | os.ModeSticky | 0o777, true}, // the folder's owner can do all of it anyway
		{1000, 1000, 0, os.ModeDir | 0o755, true},              // root in a user's folder, a mount that knows one owner
		{1001, 1000, 1000, os.ModeDir | 0o755, true},           // nobody but its owner can have put it there
	} {
		if err := owned(one.file, one.folder, one.me, one.mode); (err == nil) != one.fine {
			t.Errorf("%+v: %v", one, err)
		}
	}
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		return
	}
	want := noise(61, 100_000)
	for _, name := range []string{".part", ".arkvory"} {
		output := filepath.Join(folder, "out"+name[1:])
		if err := errors.Join(os.WriteFile(output+name, nil, 0o666), os.Chown(output+name, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
		_, err := Download(t.Context(), Options{URL: testURL, Output: output, Client: &http.Client{Transport: newOrigin(want)}})
		if !errors.Is(err, ErrDisk) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s of another user: %v", name, err)
		}
	}
}

// TestC3_LockOfAPartThatWasNamed: who opened the part just before another process named it must not take the finished file for a part.
func TestC3_LockOfAPartThatWasNamed(t *testing.T) {
	folder := t.TempDir()
	part, output := filepath.Join(folder, "out.part"), filepath.Join(folder, "out")
	held, err := osDisk{}.open(part)
	if err != nil {
		t.Fatal(err)
	}
	first := true
	second, err := lockNamed(part, func() (*os.File, error) {
		file, err := openOwn(part, os.O_RDWR|os.O_CREATE, 0o666)
		if first { // between the second's open and its lock
			first = false
			err = errors.Join(err, os.Rename(part, output), held.Close())
		}
		return file, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	named, err := os.Stat(output)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := second.Stat(); err != nil || os.SameFile(got, named) {
		t.Errorf("the second has the finished file in hand, %v", err)
	}
}

// TestC3_CheckpointOfOthersCannotDraw: texts of a checkpoint are of whoever wrote it.
func TestC3_CheckpointOfOthersCannotDraw(t *testing.T) {
	data, err := checkpoint{URL: "http://other.test/\x1b[2J\x1b]0;owned\a\nline", ID: "x", Size: -1, Done: [][2]int64{}, Saved: time.Now()}.encode()
	if err != nil {
		t.Fatal(err)
	}
	r := newTrial(t, newOrigin(nil))
	if err := replace(r.disk, "/d/out.arkvory", data); err != nil {
		t.Fatal(err)
	}
	if err := r.ends(ErrCheckpoint); strings.ContainsAny(err.Error(), "\x1b\a\n") {
		t.Errorf("%q", err)
	}
}
