package ticket

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func keyFile(dir string) string { return filepath.Join(dir, "ticket.key") }

// line is the text of a key's file.
func line(key Key) string { return hex.EncodeToString(key[:]) + "\n" }

// put writes a file with exactly that mode, whatever the umask.
func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// mustKey returns the key of a directory.
func mustKey(t *testing.T, dir string) Key {
	t.Helper()
	key, err := FromStateDir(dir).Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// onlyKey fails if anything but the key's file is in a directory, or if that is not as it should be.
func onlyKey(t *testing.T, dir string, key Key) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "ticket.key" {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	info, err := os.Lstat(keyFile(dir))
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(keyFile(dir)); err != nil || string(text) != line(key) {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// refused fails unless the key is refused with an error that names variable, file, rule and remedy, and shows no secret.
func refused(t *testing.T, dir, what, secret string, says ...string) {
	t.Helper()
	key, err := FromStateDir(dir).Key(t.Context())
	if err == nil || key != (Key{}) {
		t.Errorf("%s is accepted", what)
		return
	}
	t.Logf("%-24s %v", what, strings.ReplaceAll(err.Error(), dir, "/var/lib/arkvory"))
	for _, part := range append(says, "ARKVORY_STATE_DIR", keyFile(dir), "mode 0600", "64 hex digits", "remedy: ") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q does not say %q", what, err, part)
		}
	}
	if secret != "" && strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: the error shows the file: %v", what, err)
	}
}

// TestT3_KeyFileSurvives: the first call makes the file, every later one of any process reads it, tickets stay good, and its line is
// accepted by the variable.
func TestT3_KeyFileSurvives(t *testing.T) {
	dir := t.TempDir()
	source := FromStateDir(dir)
	key := mustKey(t, dir)
	onlyKey(t, dir, key)
	text := NewSigner(key).Append(nil, testSession, testArrival, testNow)
	again, err := source.Key(t.Context())
	if err != nil || again != key || source.Name() != "state-dir" || key == (Key{}) {
		t.Errorf("%v, the same %v, name %s", err, again == key, source.Name())
	}
	restarted := mustKey(t, dir)
	if arrival, _, o := NewSigner(restarted).Verify(text, testSession, testNow); o != Accepted || !arrival.Equal(testArrival) {
		t.Errorf("after a restart: %v, %v", o, arrival)
	}
	onlyKey(t, dir, key)
	file, err := os.ReadFile(keyFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	copied, err := FromVariable(string(file))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := copied.Key(t.Context()); err != nil || got != key {
		t.Errorf("the copied line is another key, %v", err)
	}
	if other := mustKey(t, t.TempDir()); other == key {
		t.Error("two installations have one key")
	}
}

// TestT3_OtherFilesStay: only the source's own temporary files are removed.
func TestT3_OtherFilesStay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"settings.json", "settings.json.X.tmp", "ticket.key.bak", "ticket.keys.tmp", "other.ticket.key.X.tmp"} {
		put(t, filepath.Join(dir, name), "kept", 0o644)
	}
	if err := os.Mkdir(filepath.Join(dir, "ticket.key.D.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("settings.json", filepath.Join(dir, "ticket.key.L.tmp")); err != nil {
		t.Fatal(err)
	}
	mustKey(t, dir)
	mustKey(t, dir)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 8 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestT3_KeyFileThatOthersMayReadIsRefused, and left as it is. The bits are judged, so root is told too.
func TestT3_KeyFileThatOthersMayReadIsRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o644, 0o660, 0o620, 0o602, 0o610, 0o601, 0o666, 0o777} {
		dir := t.TempDir()
		put(t, keyFile(dir), line(testKey), mode)
		refused(t, dir, fmt.Sprintf("mode %#o", mode), line(testKey)[:8], fmt.Sprintf("its mode is %#o", mode), "chmod 600")
		if info, err := os.Lstat(keyFile(dir)); err != nil || info.Mode() != mode {
			t.Errorf("mode %#o became %v, %v", mode, info.Mode(), err)
		}
		if err := os.Chmod(keyFile(dir), 0o600); err != nil { // the remedy
			t.Fatal(err)
		}
		if mustKey(t, dir) != testKey {
			t.Errorf("mode %#o: another key after chmod", mode)
		}
	}
	dir := t.TempDir()
	put(t, keyFile(dir), line(testKey), 0o400)
	if mustKey(t, dir) != testKey {
		t.Error("a file that nobody may write is another key")
	}
}

// TestT3_KeyFileOfWrongContentIsRefused, and never overwritten.
func TestT3_KeyFileOfWrongContentIsRefused(t *testing.T) {
	good := line(testKey)
	for what, text := range map[string]string{
		"empty": "", "only a line's end": "\n", "half a key": good[:32] + "\n", "a digit short": good[1:], "a digit too many": "0" + good,
		"no hex digit": "g" + good[1:], "two line ends": good + "\n", "two lines": good + good, "carriage return": good[:64] + "\r\n", "space before": " " + good,
		"32 raw bytes": string(testKey[:]), "base64": "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=\n", "a big file": strings.Repeat(good, 10000),
	} {
		dir := t.TempDir()
		put(t, keyFile(dir), text, 0o600)
		refused(t, dir, what, good[8:24], fmt.Sprintf("its %d bytes are no key", len(text)), "remove it")
		if after, err := os.ReadFile(keyFile(dir)); err != nil || string(after) != text {
			t.Errorf("%s: the file was changed, %v", what, err)
		}
	}
	for what, text := range map[string]string{"no line's end": good[:64], "upper case": strings.ToUpper(good)} {
		dir := t.TempDir()
		put(t, keyFile(dir), text, 0o600)
		if mustKey(t, dir) != testKey {
			t.Errorf("%s: another key", what)
		}
	}
}

// TestT3_KeyFileMustBeAFile: links, directories and pipes under its name are refused without waiting for a pipe's other end.
func TestT3_KeyFileMustBeAFile(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "key")
	put(t, elsewhere, line(testKey), 0o600)
	for _, one := range []struct {
		what, says string
		make       func(dir, path string) error
	}{
		{"a link to a good key", "symbolic link", func(_, path string) error { return os.Symlink(elsewhere, path) }},
		{"a link within", "symbolic link", func(dir, path string) error {
			put(t, filepath.Join(dir, "k"), line(testKey), 0o600)
			return os.Symlink("k", path)
		}},
		{"a dangling link", "symbolic link", func(_, path string) error { return os.Symlink("nowhere", path) }},
		{"a link to itself", "symbolic link", func(_, path string) error { return os.Symlink("ticket.key", path) }},
		{"a directory", "a directory", func(_, path string) error { return os.Mkdir(path, 0o700) }},
		{"a pipe", "no regular file", func(_, path string) error { return syscall.Mkfifo(path, 0o600) }},
	} {
		dir := t.TempDir()
		if err := one.make(dir, keyFile(dir)); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(keyFile(dir))
		refused(t, dir, one.what, line(testKey)[:8], one.says)
		if after, err := os.Lstat(keyFile(dir)); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was replaced, %v", one.what, err)
		}
	}
}

// TestT3_SwappedBetweenLookAndOpening: who can rename in the directory cannot make the process read a file through a link, or one that
// was opened to others, that takes the name after it was judged.
func TestT3_SwappedBetweenLookAndOpening(t *testing.T) {
	for what, swap := range map[string]func(dir, path string) error{
		"a link": func(_, path string) error { return os.Symlink("victim", path) },
		"a file": func(dir, path string) error { return os.Rename(filepath.Join(dir, "victim"), path) },
		"rights": func(_, path string) error { return os.Chmod(path, 0o644) },
	} {
		dir := t.TempDir()
		put(t, keyFile(dir), line(testKey), 0o600)
		put(t, filepath.Join(dir, "victim"), line(Key{9}), 0o600)
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		judged, err := root.Lstat(FileName)
		if err != nil {
			t.Fatal(err)
		}
		source := &fileSource{dir: dir}
		if key, err := source.readJudged(root, judged); err != nil || key != testKey {
			t.Fatalf("before: %v", err)
		}
		problem := "its mode is 0644"
		if what != "rights" {
			problem = "replaced while it was read"
			if err := os.Rename(keyFile(dir), filepath.Join(dir, "aside")); err != nil {
				t.Fatal(err)
			}
		}
		if err := swap(dir, keyFile(dir)); err != nil {
			t.Fatal(err)
		}
		if key, err := source.readJudged(root, judged); err == nil || key != (Key{}) || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestT3_GoneBeforeOpening: a file that an operator removes in that moment is as one that was never there.
func TestT3_GoneBeforeOpening(t *testing.T) {
	dir := t.TempDir()
	put(t, keyFile(dir), line(testKey), 0o600)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	judged, err := root.Lstat(FileName)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(keyFile(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := (&fileSource{dir: dir}).readJudged(root, judged); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not ask for another try", err)
	}
}

// TestT3_NoDirectory: it is not made, and the error says what to do.
func TestT3_NoDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	put(t, file, "", 0o600)
	refused(t, filepath.Join(dir, "missing"), "a missing directory", "", "create it", "no such file")
	refused(t, file, "a file for a directory", "", "not a directory")
	refused(t, "", "no name", "", "set ARKVORY_STATE_DIR")
	if _, err := os.Lstat(filepath.Join(dir, "missing")); err == nil {
		t.Error("the directory was made")
	}
}
