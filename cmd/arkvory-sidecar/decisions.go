package main

import (
	"fmt"
	"io"
	"os"
)

// openDecisions makes or empties the decision log: only its owner may read it, and it begins with an empty queue as the process does. An empty
// path gives a nil writer. The returned function closes the file, after the proxy has ended.
func openDecisions(path string) (io.Writer, func() error, error) {
	if path == "" {
		return nil, func() error { return nil }, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		if err = file.Chmod(0o600); err == nil { // one of an earlier run may be open to others
			return file, file.Close, nil
		}
		_ = file.Close()
	}
	return nil, nil, fmt.Errorf("cannot write ARKVORY_DECISION_LOG=%s: %w", path, err)
}
