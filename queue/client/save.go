package client

import (
	"errors"
	"time"
)

// saver writes checkpoints beside the download: at most one at a time, and a slow disk gets fewer of them.
type saver struct {
	id    string
	dirty bool       // something besides bytes is to be saved
	bytes int64      // done bytes of the last save begun
	busy  bool       // a save runs; its end comes through done
	done  chan error // room for one
	from  time.Time  // when the last save began
	until time.Time  // no save of bytes alone before
}

// ended notes the end of a save.
func (s *saver) ended(now time.Time) {
	s.busy = false
	s.until = now.Add(max(saveEvery, saveShare*now.Sub(s.from)))
}

// wait blocks until no save runs.
func (s *saver) wait(now time.Time) error {
	if !s.busy {
		return nil
	}
	err := <-s.done
	s.ended(now)
	return err
}

// flushError is a flush of the part that failed. Systems tell of it once and may drop what was written: a second flush that
// succeeds proves nothing, and only the checkpoint that is on disk already is right.
type flushError struct{ error }

func (e flushError) Unwrap() error { return e.error }

// unflushed reports whether a flush failed.
func unflushed(err error) bool {
	var failed flushError
	return errors.As(err, &failed)
}

// snapshot is the checkpoint of this moment. Every byte in it is written, not yet flushed.
func (op *operation) snapshot() checkpoint {
	c := checkpoint{URL: plainURL(op.address), Query: queryHash(op.address, op.saver.id), ID: op.saver.id,
		Ticket: op.ticket.ticket, TicketAt: op.ticketAt.Round(0).UTC(), TicketFrom: op.ticket.from, Class: op.class,
		Saved: op.Clock.Now().Round(0).UTC(), Size: -1, Done: [][2]int64{}}
	if op.rep == nil || !op.rep.ranged && op.whole == "" {
		return c
	}
	c.Size, c.ETag, c.Modified, c.Encoding, c.SHA256 = op.rep.size, op.rep.etag, op.rep.modified, op.rep.encoding, op.whole
	have := op.done
	for j := range op.running {
		have = have.add(span{j.from, j.from + j.got.Load()})
	}
	for _, one := range have {
		c.Done = append(c.Done, [2]int64{one.from, one.to})
	}
	return c
}

// save starts writing a checkpoint when one is due: of new bytes at most every saveEvery, of a new ticket at once while
// nothing else happens.
func (op *operation) save() {
	if op.saver.busy {
		return
	}
	now := op.Clock.Now()
	if now.Before(op.saver.until) && !(op.saver.dirty && len(op.running) == 0) {
		return
	}
	c := op.snapshot()
	bytes := c.done().sum()
	if !op.saver.dirty && bytes == op.saver.bytes {
		return
	}
	op.saver.busy, op.saver.dirty, op.saver.bytes, op.saver.from = true, false, bytes, now
	op.trail.saving = len(op.trail.ended)
	op.workers.Go(func() { op.saver.done <- op.write(c) })
}

// saveNow writes a checkpoint and returns when it is safe. No save may run.
func (op *operation) saveNow() error {
	c := op.snapshot()
	op.saver.dirty, op.saver.bytes = false, c.done().sum()
	return op.write(c)
}

// write makes the bytes of a checkpoint safe, then the checkpoint. It runs beside the operation and touches only what
// never changes.
func (op *operation) write(c checkpoint) error {
	if len(c.Done) > 0 {
		if err := op.file.Sync(); err != nil {
			return flushError{diskError("flush", op.part, err)}
		}
	}
	data, err := c.encode()
	if err != nil {
		return diskError("write", op.Checkpoint, err)
	}
	return replace(op.disk, op.Checkpoint, data)
}
