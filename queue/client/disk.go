package client

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is every operation on files that a download does, so that tests can stop the world between any two of them.
type disk interface {
	// lock takes the named lock file for this process or returns ErrLocked. The release removes the file.
	lock(path string) (release func(), err error)
	// open opens a file for reading and writing and makes it when it is missing; the file is locked too.
	open(path string) (diskFile, error)
	// look opens a file for reading only.
	look(path string) (diskFile, error)
	// create makes or empties a file that only its owner may read.
	create(path string) (diskFile, error)
	rename(from, to string) error
	// remove removes a file; a missing one is no error.
	remove(path string) error
	// syncDir makes what happened to names in the folder of path survive a power cut.
	syncDir(path string) error
}

// diskFile is an open file. Its methods may be called from several goroutines.
type diskFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
	size() (int64, error)
}

// diskError names what failed in the words of the package. The system's error stays underneath.
func diskError(verb, path string, err error) error {
	if err == nil || errors.Is(err, ErrLocked) || errors.Is(err, ErrDisk) {
		return err
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		err = link.Err
	}
	return fmt.Errorf("%w: cannot %s %s: %w", ErrDisk, verb, path, err)
}

// temporaryOf is the name under which the next content of a file is written.
func temporaryOf(path string) string { return path + ".new" }

// replace puts data at path so that a crash at any moment leaves the old file or the new one, whole.
func replace(d disk, path string, data []byte) error {
	temporary := temporaryOf(path)
	file, err := d.create(temporary)
	if err != nil {
		return diskError("make", temporary, err)
	}
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return diskError("write", temporary, err)
	}
	if err := d.rename(temporary, path); err != nil {
		return diskError("rename", temporary, err)
	}
	return diskError("flush the folder of", path, d.syncDir(path))
}

// slurp reads a whole file of at most limit bytes; more are an error, a missing file is fs.ErrNotExist.
func slurp(d disk, path string, limit int64) ([]byte, error) {
	file, err := d.look(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("it has %d bytes, more than %d", size, limit)
	}
	data := make([]byte, size)
	n, err := file.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// osDisk is the file system of the machine.
type osDisk struct{}

type osFile struct{ *os.File }

func (f osFile) size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (osDisk) lock(path string) (func(), error) { return lockFile(path) }

// open locks the part too, for two callers with different checkpoints.
func (osDisk) open(path string) (diskFile, error) {
	file, err := lockNamed(path, func() (*os.File, error) { return openOwn(path, os.O_RDWR|os.O_CREATE, 0o666) })
	if err != nil {
		return nil, err
	}
	if err := onlyName(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return osFile{file}, nil
}

func (osDisk) look(path string) (diskFile, error) {
	file, err := openOwn(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (osDisk) create(path string) (diskFile, error) {
	// A file left by a crash may have other rights; it goes first.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (osDisk) syncDir(path string) error { return syncFolder(filepath.Dir(path)) }
