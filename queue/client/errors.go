package client

import (
	"errors"
	"fmt"
)

// What Download can end with, for errors.Is. A cancelled context ends it with the context's error. Everything but
// ErrOptions, ErrLocked, ErrCheckpoint and ErrDigest leaves what was got for the next run.
var (
	// ErrOptions means that the options cannot work; the error names each field at fault.
	ErrOptions = errors.New("wrong download options")
	// ErrQueueDeadline means that the download cannot start, or has not started, by Options.NotAfter.
	ErrQueueDeadline = errors.New("the download does not start in time")
	// ErrWaitLimit means that Options.WaitLimit is spent.
	ErrWaitLimit = errors.New("the wait limit is reached")
	// ErrDigest means that the bytes have another digest than Options.Digest. They stay as Output+".bad" for inspection.
	ErrDigest = errors.New("wrong digest")
	// ErrSize means that the object has another size than Options.Size.
	ErrSize = errors.New("wrong size")
	// ErrChanged means that the object kept changing while it was fetched.
	ErrChanged = errors.New("the object keeps changing")
	// ErrRefused means that the server answered with a status that waiting does not mend; errors.As finds a *StatusError.
	ErrRefused = errors.New("the server refused")
	// ErrBudget means that Options.Retries or Options.Attempts real faults were met; the last one is in the error.
	ErrBudget = errors.New("too many faults")
	// ErrLocked means that another process downloads to the same output or checkpoint.
	ErrLocked = errors.New("another process is downloading this")
	// ErrCheckpoint means that the checkpoint is of another address or of a newer version of this package.
	ErrCheckpoint = errors.New("the checkpoint cannot be used")
	// ErrExists means that something stands at Options.Output and Options.NoReplace keeps it.
	ErrExists = errors.New("the file is there already")
	// ErrDisk means that a file could not be read or written; the error names the path and wraps the system's error.
	ErrDisk = errors.New("disk failure")
)

// StatusError is an answer that ends a download. errors.Is(err, ErrRefused) is true of it.
type StatusError struct {
	Status  int    // the HTTP status, such as 404
	Message string // what the server's JSON body said, cleaned of secrets, or empty
}

// Error names the status and what the server said.
func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the server refused with status %d", e.Status)
	}
	return fmt.Sprintf("the server refused with status %d: %s", e.Status, e.Message)
}

// Is makes a StatusError an ErrRefused.
func (e *StatusError) Is(target error) bool { return target == ErrRefused }
