package rulefile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
)

// File keeps the last good value read from a file of rules.
//
// Invariants: Load never returns nil after Open; it changes only to a value that parse accepted; Problem is empty exactly when
// the last attempt to read succeeded. Load and Problem take no lock; mu orders Poll and Reload.
type File[T any] struct {
	path  string
	knob  string
	parse func(text []byte) (*T, error)

	cur     atomic.Pointer[T]
	problem atomic.Pointer[string]

	mu     sync.Mutex
	stamp  stamp
	sum    [sha256.Size]byte
	settle bool // read once more at the next poll: the stamp has the resolution of the file system's clock
}

// Open reads the file for the first time; knob is the environment variable that names it, for error texts. An empty path is a file
// without text, which parse is given as nil. Errors: the file cannot be read, or parse refused it (with all its faults).
func Open[T any](knob, path string, parse func(text []byte) (*T, error)) (*File[T], error) {
	w := &File[T]{path: path, knob: knob, parse: parse}
	if path == "" {
		v, err := parse(nil)
		if err != nil {
			return nil, err
		}
		w.cur.Store(v)
		return w, nil
	}
	if _, err := w.read(true); err != nil {
		return nil, err
	}
	return w, nil
}

// Load returns the last good value. It is immutable by agreement and may be kept.
func (w *File[T]) Load() *T { return w.cur.Load() }

// Problem returns why the file as it stands now is not in force, "" when it is. The text names the variable and the lines, no
// values of the file that could be secret.
func (w *File[T]) Problem() string {
	if p := w.problem.Load(); p != nil {
		return *p
	}
	return ""
}

// Poll looks whether the file changed and reads it then; it reports whether a new value came into force. Call it every few seconds
// from a goroutine that may block: for a stat, and for reading at most MaxBytes when the file changed, on a mount that hangs without end.
func (w *File[T]) Poll() bool {
	if w.path == "" {
		return false
	}
	changed, _ := w.read(false)
	return changed
}

// Reload reads the file now, whatever its stamp says, and returns the fault that Problem then shows.
func (w *File[T]) Reload() error {
	if w.path == "" {
		return nil
	}
	_, err := w.read(true)
	return err
}

func (w *File[T]) read(force bool) (changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st, err := stampOf(w.path)
	if err != nil {
		w.stamp = stamp{}
		return false, w.fail(fmt.Errorf("cannot read the file of %s: %w", w.knob, plain(err)))
	}
	same := st == w.stamp
	if same && !force && !w.settle {
		return false, nil
	}
	w.settle = !same
	text, err := readBounded(w.path)
	if err != nil {
		w.stamp = stamp{}
		return false, w.fail(fmt.Errorf("cannot read the file of %s: %w", w.knob, plain(err)))
	}
	w.stamp = st
	sum := sha256.Sum256(text)
	if sum == w.sum && w.cur.Load() != nil && w.Problem() == "" {
		return false, nil
	}
	v, err := w.parse(text)
	if err != nil {
		return false, w.fail(fmt.Errorf("cannot use the file of %s: %w", w.knob, err))
	}
	w.cur.Store(v)
	w.problem.Store(nil)
	changed = sum != w.sum
	w.sum = sum
	return changed, nil
}

func (w *File[T]) fail(err error) error {
	s := err.Error()
	w.problem.Store(&s)
	return err
}

// plain takes the path out of an error of the file system: the variable names the file already, and the text goes to readiness.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

var errNotRegular = errors.New("it is not a regular file")

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(io.LimitReader(f, MaxBytes+1)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
