package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// openDecisions makes or empties the decision log: only its owner may read it, and it begins with an empty queue as the process does. An empty
// path gives a nil writer. The returned function closes the file, after the proxy has ended.
//
// The file is emptied and its mode changed, so a link is not followed to a file that was never meant, and nothing but a regular file is taken: a pipe would
// block the start. It is appended to: whoever empties it while it is written leaves no hole.
func openDecisions(path string) (io.Writer, func() error, error) {
	if path == "" {
		return nil, func() error { return nil }, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		err = errors.New("it is a symbolic link")
	}
	if err == nil {
		if err = emptied(file); err == nil {
			return file, file.Close, nil
		}
		_ = file.Close()
	}
	return nil, nil, fmt.Errorf("cannot write ARKVORY_DECISION_LOG=%s: %w", path, err)
}

// emptied makes a file that may be of an earlier run this run's.
func emptied(file *os.File) error {
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	if err := file.Chmod(0o600); err != nil {
		return err
	}
	return file.Truncate(0)
}
