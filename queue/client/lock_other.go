//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lockFile makes the lock file and fails when it is there. Where the system has no advisory locks in the standard
// library a killed process leaves it behind, and the error says what to do.
func lockFile(path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s exists; remove it when no other process runs", ErrLocked, path)
	}
	if err != nil {
		return nil, err
	}
	_ = file.Close()
	return func() { _ = os.Remove(path) }, nil
}

// syncFolder does nothing: folders cannot be flushed everywhere.
func syncFolder(string) error { return nil }

// renamesOpen is false where an open file may be bound to its name.
const renamesOpen = false

// openOwn opens a regular file. Who owns it is not known in the standard library's terms.
func openOwn(path string, flags int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file (%s)", info.Mode().Type())
	}
	return os.OpenFile(path, flags, mode)
}

// onlyName is fine with every file.
func onlyName(*os.File) error { return nil }

// lockNamed relies on the lock file alone.
func lockNamed(_ string, open func() (*os.File, error)) (*os.File, error) { return open() }
