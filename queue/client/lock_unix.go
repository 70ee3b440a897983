//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package client

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile takes an flock on a file of its own beside the checkpoint: the checkpoint itself is replaced by renames, and a
// lock on a replaced file holds nobody. The kernel lets go of it however the process ends.
func lockFile(path string) (func(), error) {
	file, err := lockNamed(path, func() (*os.File, error) { return openOwn(path, os.O_RDWR|os.O_CREATE, 0o600) })
	if err != nil {
		return nil, err
	}
	return func() {
		_ = os.Remove(path) // while held: nobody can hold it under this name
		_ = file.Close()
	}, nil
}

// lockOpen locks an open file for this process or returns ErrLocked. File systems without locks are taken as they are.
func lockOpen(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil, errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
			return nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return fmt.Errorf("%w: %s is locked", ErrLocked, file.Name())
		case errors.Is(err, syscall.EINTR):
		default:
			return err
		}
	}
}

// syncFolder flushes a folder. File systems that cannot (EINVAL) keep names safe by themselves or not at all.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
