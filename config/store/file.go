package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/arkvory/sidecar/config"
)

const (
	// FileName is the file of the record in the state directory, LockName the one whose lock a change holds. Both have mode 0600.
	FileName = "settings.json"
	LockName = "settings.lock"

	fileFormat      = "arkvory-settings/1"
	fileMode        = fs.FileMode(0o600)
	fileBytes       = config.MaxOverridesBytes + 4096 // the record and its head
	temporarySuffix = ".tmp"
	lockPoll        = 5 * time.Millisecond
	watchEvery      = time.Second
)

// File keeps the record in a file of the state directory, for all processes that share it. It is safe for concurrent use and implements [config.RecordStore] and
// [config.RecordWatcher]. Invariants:
//
//	F1 The file appears under its name whole and synced, or not at all: a crash leaves the old record or the new one.
//	F2 Between comparing and replacing, the process has the lock on the file settings.lock, which is never removed.
//	F3 A file that this program did not write is neither used nor replaced: not a link, not a directory, not one with other content.
type File struct{ dir string }

// OpenFile returns the store of a state directory, which must exist when it is used. It opens nothing.
func OpenFile(dir string) *File { return &File{dir: dir} }

// Persisted returns true.
func (*File) Persisted() bool { return true }

// kept is the head of the file. The overrides follow it as the last field, byte for byte.
type kept struct {
	Format    string          `json:"format"`
	Revision  int64           `json:"revision"`
	UpdatedBy string          `json:"updatedBy"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Overrides json.RawMessage `json:"overrides,omitempty"`
}

// Load returns the record, the zero one when there is no file. Errors are *config.StoreError.
func (f *File) Load(ctx context.Context) (config.Record, error) {
	root, err := f.open(ctx, "read")
	if err != nil {
		return config.Record{}, err
	}
	defer func() { _ = root.Close() }()
	return load(root, "read")
}

// Swap compares and replaces under the lock. Errors are config.ErrRevision, or a *config.StoreError: then nothing was saved.
func (f *File) Swap(ctx context.Context, expected int64, next config.Record) (config.Record, error) {
	if err := judge(next); err != nil {
		return config.Record{}, err
	}
	root, err := f.open(ctx, "save")
	if err != nil {
		return config.Record{}, err
	}
	defer func() { _ = root.Close() }()
	lock, err := lockFile(ctx, root)
	if err != nil {
		return config.Record{}, err
	}
	defer func() { _ = lock.Close() }() // which releases it
	now, err := load(root, "save")
	switch {
	case err != nil:
		return config.Record{}, err
	case now.Revision != expected:
		return now, config.ErrRevision
	}
	next.Revision = expected + 1
	if next.UpdatedAt.IsZero() {
		next.UpdatedAt = time.Now()
	}
	next.UpdatedAt = next.UpdatedAt.UTC()
	next.Overrides = bytes.Clone(next.Overrides)
	if err := replace(root, next); err != nil {
		return config.Record{}, fileFault("save", "the file settings.json in ARKVORY_STATE_DIR cannot be written", err)
	}
	return next, nil
}

// open opens the directory: one throughout, even if its path is given to another meanwhile.
func (f *File) open(ctx context.Context, verb string) (*os.Root, error) {
	if err := ctx.Err(); err != nil {
		return nil, &config.StoreError{Verb: verb, Why: "the request was given up", Err: err}
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, fileFault(verb, "the directory of ARKVORY_STATE_DIR cannot be opened", err)
	}
	return root, nil
}

// openPlain opens a regular file of a directory, and refuses what is another thing under its name.
func openPlain(root *os.Root, name, verb string, flag int) (*os.File, error) {
	named, err := root.Lstat(name)
	if err == nil && !named.Mode().IsRegular() {
		return nil, fileFault(verb, name+" in ARKVORY_STATE_DIR is not a regular file (a link, perhaps): put the file itself there, or remove it", nil)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fileFault(verb, name+" in ARKVORY_STATE_DIR cannot be examined", err)
	}
	file, err := root.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, fileMode)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	if now, again := root.Lstat(name); err != nil || again != nil || !opened.Mode().IsRegular() || now.Mode()&fs.ModeSymlink != 0 {
		_ = file.Close()
		return nil, fileFault(verb, name+" in ARKVORY_STATE_DIR was replaced while it was opened: try again", nil)
	}
	return file, nil
}

// load reads the record of a directory.
func load(root *os.Root, verb string) (config.Record, error) {
	file, err := openPlain(root, FileName, verb, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return config.Record{}, nil
	}
	if err != nil {
		return config.Record{}, fileFault(verb, "settings.json in ARKVORY_STATE_DIR cannot be opened", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, fileBytes+1))
	if err != nil {
		return config.Record{}, fileFault(verb, "settings.json in ARKVORY_STATE_DIR cannot be read", err)
	}
	var found kept
	if err := json.Unmarshal(text, &found); err != nil || len(text) > fileBytes || found.Format != fileFormat || found.Revision < 1 ||
		len(found.Overrides) > config.MaxOverridesBytes {
		return config.Record{}, fileFault(verb, "settings.json in ARKVORY_STATE_DIR is not what this program writes, so it is neither used nor replaced: "+
			"restore it, or move it away to return to the environment", nil)
	}
	return config.Record{Revision: found.Revision, Overrides: found.Overrides, UpdatedBy: found.UpdatedBy, UpdatedAt: found.UpdatedAt}, nil
}

// lockFile waits for the lock until the context ends. The kernel gives it back when the file is closed or its process ends, however it ends.
func lockFile(ctx context.Context, root *os.Root) (*os.File, error) {
	file, err := openPlain(root, LockName, "save", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fileFault("save", "settings.lock in ARKVORY_STATE_DIR cannot be opened", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, fileFault("save", "settings.lock in ARKVORY_STATE_DIR cannot be locked", err)
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			_ = file.Close()
			return nil, &config.StoreError{Verb: "save", Why: "another change holds settings.lock in ARKVORY_STATE_DIR", Err: ctx.Err()}
		}
	}
}

// replace puts a record under the name in one step.
func replace(root *os.Root, next config.Record) error {
	head, err := json.Marshal(kept{Format: fileFormat, Revision: next.Revision, UpdatedBy: next.UpdatedBy, UpdatedAt: next.UpdatedAt})
	if err != nil {
		return err
	}
	if len(next.Overrides) > 0 { // by hand: the encoder would write other bytes of the same meaning
		head = append(head[:len(head)-1], `,"overrides":`...)
		head = append(append(head, next.Overrides...), '}')
	}
	sweep(root)
	temporary := FileName + "." + rand.Text() + temporarySuffix
	if err := writeSynced(root, temporary, append(head, '\n')); err != nil {
		_ = root.Remove(temporary)
		return err
	}
	if err := root.Rename(temporary, FileName); err != nil {
		_ = root.Remove(temporary)
		return err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil // it is in place; only a power cut could take it back
	}
	defer func() { _ = dir.Close() }()
	_ = dir.Sync()
	return nil
}

// writeSynced writes a new file.
func writeSynced(root *os.Root, name string, text []byte) (err error) {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Chmod(fileMode); err != nil { // a umask may have taken the owner's rights
		return err
	}
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Sync()
}

// sweep removes what crashed processes left. The lock is held, so none of it is in use.
func sweep(root *os.Root) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	entries, _ := dir.ReadDir(-1)
	for _, one := range entries {
		if name := one.Name(); one.Type().IsRegular() && strings.HasPrefix(name, FileName+".") && strings.HasSuffix(name, temporarySuffix) {
			_ = root.Remove(name)
		}
	}
}

// fileFault words an error without the path.
func fileFault(verb, why string, cause error) error {
	var known *config.StoreError
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(cause, &known):
		return known
	case errors.As(cause, &path):
		why += ": " + path.Err.Error()
	case errors.As(cause, &link):
		why += ": " + link.Err.Error()
	case cause != nil:
		why += ": " + cause.Error()
	}
	return &config.StoreError{Verb: verb, Why: why}
}

// Watch calls wake when the file was replaced, removed or changed, seen once a second.
func (f *File) Watch(ctx context.Context, wake func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for last := f.stamp(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := f.stamp(); now != last {
			last = now
			wake()
		}
	}
}

// stamp is what tells one version of the file from another: a replaced file has another inode.
type stamp struct {
	inode uint64
	size  int64
	time  int64
}

func (f *File) stamp() stamp {
	info, err := os.Lstat(f.dir + "/" + FileName)
	if err != nil {
		return stamp{}
	}
	s := stamp{size: info.Size(), time: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}
