package ticket

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// FileName is the file of the key in the state directory.
	FileName = "ticket.key"

	stateDir  = "ARKVORY_STATE_DIR"
	fileRule  = "a regular file of mode 0600 with one line of 64 hex digits"
	fileMode  = fs.FileMode(0o600)
	othersMay = fs.FileMode(0o077)
	fileBytes = 2*KeyBytes + 1 // the digits and the line's end
	// temporaries are FileName, a dot, a random word and this.
	temporarySuffix = ".tmp"
	// maxTries bounds meetings with processes that clean up or replace files at the same moment.
	maxTries = 16
)

// fileSource keeps the key in a file. Invariants:
//
//	F1 the file appears under its name whole, synced and of mode 0600, or not at all
//	F2 it is never written again nor replaced: who creates it is who links it first, all others read it
//	F3 a key is returned only as read back from the file under its name
//	F4 temporary files are removed only once the key exists, when they are of no more use to anybody
type fileSource struct {
	dir string
}

// FromStateDir returns the source of a key that is kept in the file ticket.key of a directory, ARKVORY_STATE_DIR. Key reads
// it, and creates it from random bytes when there is none: processes that do so at the same moment all end with one key, and a
// crash at any point leaves either no key or a whole one. The file's line may be copied into ARKVORY_TICKET_KEY.
//
// The directory must exist and be on a file system with hard links. A symbolic link, a directory, a file that group or others have any
// right to, or one with other content is refused; the error names the variable, the file, the rule and the remedy.
func FromStateDir(dir string) Source {
	return &fileSource{dir: dir}
}

func (s *fileSource) Name() string { return SourceStateDir }

func (s *fileSource) path() string { return filepath.Join(s.dir, FileName) }

// fault words an error of this source.
func (s *fileSource) fault(verb, problem, remedy string, cause error) error {
	text := fmt.Sprintf("cannot %s the ticket key %s (%s): %s", verb, s.path(), stateDir, problem)
	if cause != nil {
		var path *fs.PathError
		var link *os.LinkError
		switch { // the file is named already
		case errors.As(cause, &path):
			cause = path.Err
		case errors.As(cause, &link):
			cause = link.Err
		}
		return fmt.Errorf("%s: %w; rule: %s; remedy: %s", text, cause, fileRule, remedy)
	}
	return fmt.Errorf("%s; rule: %s; remedy: %s", text, fileRule, remedy)
}

// Key reads the key or creates it.
func (s *fileSource) Key(ctx context.Context) (Key, error) {
	if s.dir == "" {
		return Key{}, s.fault("keep", "the directory is not named", "set "+stateDir+" to a directory that outlives the process", nil)
	}
	root, err := os.OpenRoot(s.dir) // one directory throughout, even if its path is given to another meanwhile
	if err != nil {
		return Key{}, s.fault("reach", "the directory cannot be opened",
			"create it, or give it to the account of this process (chown), with mode 0700, or set "+variable, err)
	}
	defer root.Close()
	for range maxTries {
		if err := ctx.Err(); err != nil {
			return Key{}, err
		}
		key, err := s.read(root)
		if err == nil {
			sweep(root)
			return key, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return Key{}, err
		}
		if err := s.create(root); err != nil {
			return Key{}, err
		}
	}
	return Key{}, s.fault("create", "it was removed each time it had been made", "find out what removes it", nil)
}

// read returns the key of the file, an error that wraps fs.ErrNotExist if there is none, or the reason why it is refused.
func (s *fileSource) read(root *os.Root) (Key, error) {
	named, err := root.Lstat(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, err
	}
	if err != nil {
		return Key{}, s.fault("use", "it cannot be examined", "give the directory to the account of this process", err)
	}
	if err := s.judge(named); err != nil {
		return Key{}, err
	}
	return s.readJudged(root, named)
}

// readJudged returns the key of the file that was found good, and of no other that has its name by now.
func (s *fileSource) readJudged(root *os.Root, named fs.FileInfo) (Key, error) {
	const verb = "use"
	file, err := root.Open(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, err
	}
	if err != nil {
		return Key{}, s.fault(verb, "it cannot be opened", "give the file to the account of this process (chown)", err)
	}
	defer file.Close()
	opened, err := file.Stat()
	if err != nil {
		return Key{}, s.fault(verb, "it cannot be examined", "check the file system", err)
	}
	if !os.SameFile(named, opened) { // what was judged is not what was opened, a link perhaps
		return Key{}, s.fault(verb, "it was replaced while it was read", "start again", nil)
	}
	if err := s.judge(opened); err != nil {
		return Key{}, err
	}
	text, err := io.ReadAll(io.LimitReader(file, fileBytes+1))
	if err != nil {
		return Key{}, s.fault(verb, "it cannot be read", "check the file system", err)
	}
	key, ok := parseHex([]byte(strings.TrimSuffix(string(text), "\n")))
	if !ok {
		return Key{}, s.fault(verb, fmt.Sprintf("its %d bytes are no key", opened.Size()),
			"restore it, or remove it so that a new key is made (waiting downloads then join anew, once)", nil)
	}
	return key, nil
}

// judge refuses what is no plain file or what others than its owner may touch.
func (s *fileSource) judge(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return s.fault("use", "it is a symbolic link", "put the file itself there, or set "+variable, nil)
	case mode.IsDir():
		return s.fault("use", "it is a directory", "remove it, so that a key is made", nil)
	case !mode.IsRegular():
		return s.fault("use", "it is no regular file", "remove it, so that a key is made", nil)
	case mode&othersMay != 0:
		return s.fault("use", fmt.Sprintf("others may have read it, its mode is %#o", mode.Perm()),
			"remove it, so that a new key is made, or run chmod 600 if nobody else had access to the directory", nil)
	}
	return nil
}

// create puts a new key under the name, unless one is there by then. A nil error means that it is worth reading (again).
func (s *fileSource) create(root *os.Root) error {
	const verb = "create"
	temporary := FileName + "." + rand.Text() + temporarySuffix
	err := writeKey(root, temporary)
	if err != nil {
		root.Remove(temporary)
		return s.fault(verb, "its first version cannot be written",
			"let the account of this process write to the directory and check its free space, or set "+variable, err)
	}
	err = root.Link(temporary, FileName) // unlike rename it never replaces the key of another process
	root.Remove(temporary)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
	case errors.Is(err, fs.ErrNotExist): // swept away by a process whose key was there first
		return nil
	default:
		return s.fault(verb, "it cannot be linked to its name",
			"use a file system with hard links, or set "+variable, err)
	}
	// The loser of a race syncs too: it may sign before the winner gets round to it.
	if err := syncDir(root); err != nil {
		return s.fault(verb, "the directory cannot be synced", "check the file system, then start again", err)
	}
	return nil
}

// writeKey writes a new random key to a new file and syncs it.
func writeKey(root *os.Root, name string) (err error) {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Chmod(fileMode); err != nil { // a umask may have taken the owner's rights
		return err
	}
	var key Key
	rand.Read(key[:])
	if _, err := file.Write(append(hex.AppendEncode(nil, key[:]), '\n')); err != nil {
		return err
	}
	return file.Sync()
}

// syncDir makes a new name durable. File systems that cannot sync directories are taken to need none.
func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// sweep removes what crashed processes left: each such file holds a key, perhaps this one. It may fail, in a directory that
// cannot be written to for instance, and nothing depends on it.
func sweep(root *os.Root) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(-1)
	for _, entry := range entries {
		name := entry.Name()
		if entry.Type().IsRegular() && strings.HasPrefix(name, FileName+".") && strings.HasSuffix(name, temporarySuffix) {
			root.Remove(name)
		}
	}
}
