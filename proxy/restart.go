package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/arkvory/sidecar/ticket"
)

// Times of a restart.
const (
	noteEvery = 10 * time.Second
	// returnPause is how long no ticket may come before the grace ends early: whoever stands in front asks every few seconds, with its ticket.
	returnPause = 10 * time.Second
	noteName    = "queue.state"
	noteBytes   = 4 << 10
)

// note is what the state directory keeps about the queue: whether sessions stood in it, and when that was known. It names none of them: their own tickets do.
type note struct {
	Version  int       `json:"version"`
	Sessions int       `json:"sessions"` // active and waiting
	At       time.Time `json:"at"`
}

// gather begins the grace after a restart (X8), once in the life of the process: for Settings.Gather nobody gets a slot, so that those who were in the queue are back
// before the first is given, and up to Settings.Grace those with a ticket come before newcomers.
func (p *Proxy) gather() {
	if p.set.Grace <= 0 || p.gathered.Swap(true) {
		return
	}
	now := p.queue.Now()
	p.queue.Grace(now+min(p.set.Gather, p.set.Grace), now+p.set.Grace)
	p.log.Info().Float64("gatherSeconds", min(p.set.Gather, p.set.Grace).Seconds()).Float64("graceSeconds", p.set.Grace.Seconds()).
		Msg("tickets of an earlier process are valid: their holders come first")
}

// endGrace ends the grace when those who were to come first have come, or do not: newcomers would only leave the slots idle. It runs on the watcher's goroutine.
func (p *Proxy) endGrace(now time.Duration) {
	if !p.gathered.Load() || p.graceOver || now < p.set.Gather || now-time.Duration(p.returned.Load()) < returnPause {
		return
	}
	p.graceOver = true
	p.queue.Grace(0, 0)
}

func (p *Proxy) notePath() string { return filepath.Join(p.set.StateDir, noteName) }

// recall begins the grace when the process before ended with sessions in its queue less than a ticket's validity ago. A note that cannot be read is
// worth a warning and no more: the first valid ticket of that process begins the grace too.
func (p *Proxy) recall() {
	if p.set.StateDir == "" || !p.set.Tickets.Ready() {
		return
	}
	n, err := readNote(p.notePath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		p.log.Warn().Err(err).Msg("whether a queue stood before the restart is not known")
	case n.Sessions > 0 && p.born.Sub(n.At) < ticket.Validity && n.At.Sub(p.born) < ticket.Ahead:
		p.gather()
	}
}

func readNote(path string) (note, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // a pipe would block the start
	if err != nil {
		return note{}, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return note{}, errors.Join(err, fmt.Errorf("cannot read %s: it is not a regular file", path))
	}
	b := make([]byte, noteBytes)
	n, err := file.Read(b)
	if err != nil {
		return note{}, fmt.Errorf("cannot read %s: %w", path, err)
	}
	var found note
	if err := json.Unmarshal(b[:n], &found); err != nil {
		return note{}, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return found, nil
}

// noted is the state of the goroutine that writes the note.
type noted struct {
	sessions int
	at       time.Duration
	written  bool
	problem  string
}

// noteQueue writes the note down when the queue became empty or is not any more, and every noteEvery while it is not. A stopping process leaves what it wrote when the
// drain began: the sessions it sent away come back to its successor.
func (p *Proxy) noteQueue(last *noted) {
	if p.set.StateDir == "" || p.Draining() && last.written {
		return
	}
	s := p.queue.Snapshot()
	sessions, now := s.ActiveTotal()+s.WaitingTotal(), p.queue.Now()
	if sessions == 0 && !last.written && p.gathered.Load() && now < p.set.Grace {
		return // those of before are not back yet; should this process die now, its successor must still know of them
	}
	if last.written && (sessions > 0) == (last.sessions > 0) && (sessions == 0 || now-last.at < noteEvery) {
		return
	}
	err := writeNote(p.notePath(), note{Version: 1, Sessions: sessions, At: wall().UTC()})
	problem := ""
	if err != nil {
		problem = err.Error()
	} else {
		last.sessions, last.at, last.written = sessions, now, true
	}
	if problem != last.problem && problem != "" {
		p.log.Warn().Str("variable", "ARKVORY_STATE_DIR").Str("problem", problem).Msg("that a queue stands cannot be noted; after a restart the first ticket tells")
	}
	last.problem = problem
}

// writeNote replaces the note in one step, so that a crash leaves the old or the new one. What is renamed is a file of its own making: neither what a link leads to nor what
// another process that shares the directory writes at the same moment.
func writeNote(path string, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), noteName+".*.new") // of mode 0600
	if err != nil {
		return noteFault(path, err)
	}
	_, err = file.Write(append(b, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return noteFault(path, err)
	}
	return nil
}

// noteFault names the note and not the file that was to become it, whose name is another one each time: the same fault is told once.
func noteFault(path string, err error) error {
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &file):
		err = file.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}
