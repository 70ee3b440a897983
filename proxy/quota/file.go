package quota

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	fileVersion = 1
	// maxFileBytes is more than a full ledger writes: 65536 accounts of at most 256 bytes each.
	maxFileBytes = 32 << 20
	maxCount     = 1<<53 - 1
)

// file is what Save writes.
type file struct {
	Version    int              `json:"version"`
	Day        stretch          `json:"day"`
	Week       stretch          `json:"week"`
	Principals map[string]count `json:"principals"`
}

// count is what one principal was sent in the two periods.
type count struct {
	Day  int64 `json:"day"`
	Week int64 `json:"week"`
}

// mark tells whether the counts are those of the last Save.
type mark struct {
	written    bool
	bytes      int64 // of all accounts together; they only grow
	principals int
	periods    periods
}

// Load takes over the counts of a file that Save wrote, at that wall time, as far as the periods they were counted in still last. A file that does not exist
// is no error. On an error nothing was taken over; it names the file and what is wrong, and nothing of its content. Call it once, before anybody is counted.
func (l *Ledger) Load(path string, now time.Time) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	f, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read %s: %w; all quotas count from zero", path, err)
	}
	l.takeOver(f, now)
	return nil
}

// takeOver counts on from what a file says, as far as its periods still last.
func (l *Ledger) takeOver(f file, now time.Time) {
	day, week := f.Day.holds(now), f.Week.holds(now)
	for name, c := range f.Principals {
		if !day {
			c.Day = 0
		}
		if !week {
			c.Week = 0
		}
		l.restore(name, c)
	}
}

// restore makes the account of one line.
func (l *Ledger) restore(name string, c count) {
	if c == (count{}) {
		return
	}
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := l.addLocked(s, name); a != nil {
		bytes := max(c.Day, c.Week)
		a.bytes.Store(bytes)
		a.marks[Day].Store(bytes - c.Day)
		a.marks[Week].Store(bytes - c.Week)
	}
}

var (
	errNotRegular = errors.New("it is not a regular file")
	errTooLarge   = errors.New("it is too large")
	errContent    = errors.New("it is not what this program writes")
)

func readFile(path string) (f file, err error) {
	in, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // a pipe would block the start
	if err != nil {
		return f, plain(err)
	}
	defer func() { _ = in.Close() }()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return f, errNotRegular
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return f, plain(err)
	}
	if len(text) > maxFileBytes {
		return f, errTooLarge
	}
	return parse(text)
}

// parse reads the text of a file. Fields that a newer version added are skipped; a count that no Save wrote is an error.
func parse(text []byte) (f file, err error) {
	if err := json.Unmarshal(text, &f); err != nil {
		return file{}, errContent // the decoder's own words may quote an id
	}
	if f.Version != fileVersion {
		return file{}, fmt.Errorf("it is of version %d and not %d", f.Version, fileVersion)
	}
	for _, c := range f.Principals {
		if c.Day < 0 || c.Week < 0 || c.Day > maxCount || c.Week > maxCount {
			return file{}, errContent
		}
	}
	return f, nil
}

// Save writes the counts, and nothing when they are those of the last Save. The file is replaced in one step and of mode 0600. It blocks for as long as the file
// system does, and keeps nobody else waiting meanwhile: no exchange from counting, no Roll on the tick, no SetRules of an operator.
func (l *Ledger) Save(path string) error { return l.save(path, replace) }

func (l *Ledger) save(path string, replace func(path string, text []byte) error) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.turn.Lock()
	f, now := l.contentLocked()
	l.turn.Unlock()
	if now == l.saved || now.principals == 0 && !l.saved.written && !exists(path) {
		return nil // without quotas there is no file
	}
	text, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := replace(path, append(text, '\n')); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, plain(err))
	}
	l.saved = now
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (l *Ledger) contentLocked() (file, mark) {
	in := *l.periods.Load()
	f, now := file{fileVersion, in[Day], in[Week], map[string]count{}}, mark{written: true, periods: in}
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for name, a := range s.accounts {
			if c := (count{min(a.used(Day), maxCount), min(a.used(Week), maxCount)}); c != (count{}) {
				f.Principals[name] = c
				now.bytes += a.bytes.Load()
				now.principals++
			}
		}
		s.mu.Unlock()
	}
	return f, now
}

// replace writes a file of its own making and renames it over the old one, so that a crash leaves the old or the new one.
func replace(path string, text []byte) error {
	out, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new") // of mode 0600
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		_ = os.Remove(out.Name())
	}
	return err
}

// plain takes the path out of an error of the file system: the caller's words name it, and the name of a file that was to become it is another one each time.
func plain(err error) error {
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &file):
		return file.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// Path is where the counts are kept in a state directory.
func Path(dir string) string { return filepath.Join(dir, "quotas.json") }

// SaveEvery is how often the counts are written at most; the end of the process writes them once more.
const SaveEvery = 10 * time.Second
