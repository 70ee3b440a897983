package client

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"
	"time"
)

const (
	trailEvery   = 500 * time.Millisecond
	maxTrail     = 1 << 20
	maxStretches = 4096 // ended ranges between two flushes; those above are fetched again after a kill
)

// stretch is a run of bytes [from, to) of one answer with its CRC-32C.
type stretch struct {
	from, to int64
	sum      uint32
}

// trail records what was written since the last flush, so that a kill of the process on a slow disk costs half a second of bytes and not the
// time between two flushes. It is never flushed and never trusted: each stretch is read again and its sum compared, so that whatever
// a kill, a power cut or a pulled disk made of it, only bytes that are there count.
type trail struct {
	file   diskFile
	off    bool      // it cannot be written; nothing depends on it
	at     time.Time // of the last record
	bytes  int64     // on the disk at the last record
	ended  []stretch // of ended jobs, not known to be flushed, the oldest first
	saving int       // how many of ended the running save flushes
}

// trailState is the record, as the state of an envelope on one line.
type trailState struct {
	ID       string     `json:"id"`
	Size     int64      `json:"size"`
	ETag     string     `json:"etag,omitempty"`
	Modified string     `json:"lastModified,omitempty"`
	Encoding string     `json:"contentEncoding,omitempty"`
	Pieces   [][3]int64 `json:"pieces"` // from, to, sum
}

// joins completes a checkpoint that knows no state of the object yet, and reports whether the record is of its download and of the
// state that it knows.
func (s trailState) joins(c *checkpoint) bool {
	if s.ID != c.ID {
		return false
	}
	next := *c
	next.Size, next.ETag, next.Modified, next.Encoding = s.Size, s.ETag, s.Modified, s.Encoding
	if c.Size < 0 && next.Size >= 0 && next.sound() && next.representation().validator() != "" {
		*c = next
	}
	return c.Size >= 0 && c.representation() == next.representation()
}

// ran keeps the stretch of a job that ended.
func (t *trail) ran(j *job) {
	if m := j.mark.Load(); m != nil && len(t.ended) < maxStretches {
		t.ended = append(t.ended, stretch{j.from, j.from + m.got, m.sum})
	}
}

// flushed forgets what the save that ended made safe.
func (t *trail) flushed() {
	t.ended, t.saving = append([]stretch(nil), t.ended[t.saving:]...), 0
}

// record writes the trail when it is due. Errors only end it: the part itself tells of a disk that fails.
func (op *operation) record() {
	t, now := &op.trail, op.Clock.Now()
	if t.off || op.rep == nil || !op.rep.ranged || now.Sub(t.at) < trailEvery && !t.at.IsZero() {
		return
	}
	have := op.bytes()
	if have == t.bytes {
		return
	}
	t.at, t.bytes = now, have
	state := trailState{ID: op.saver.id, Size: op.rep.size, ETag: op.rep.etag, Modified: op.rep.modified, Encoding: op.rep.encoding}
	for _, one := range t.ended {
		state.Pieces = append(state.Pieces, [3]int64{one.from, one.to, int64(one.sum)})
	}
	for j := range op.running {
		if m := j.mark.Load(); m != nil {
			state.Pieces = append(state.Pieces, [3]int64{j.from, j.from + m.got, int64(m.sum)})
		}
	}
	if t.write(op.disk, op.trailPath(), state) != nil {
		t.off = true
	}
}

// write puts a record over the one before. What is left of a longer one stands behind the end of the line and is not read.
func (t *trail) write(d disk, path string, state trailState) (err error) {
	if t.file == nil {
		if t.file, err = d.create(path); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(state)
	if err != nil {
		return err
	}
	line, err := json.Marshal(envelope{Version: checkpointVersion, State: raw, Sum: stateSum(raw)})
	if err != nil {
		return err
	}
	_, err = t.file.WriteAt(append(line, '\n'), 0)
	return err
}

// trailPath is where the trail is.
func (s *settings) trailPath() string { return s.Checkpoint + ".trail" }

// newPath is where the next checkpoint is written before it takes its name.
func (s *settings) newPath() string { return temporaryOf(s.Checkpoint) }

// dropTrail removes the trail; without it only flushed bytes count.
func (op *operation) dropTrail() error {
	if op.trail.file != nil {
		_ = op.trail.file.Close()
		op.trail.file = nil
	}
	op.trail.off = true
	return diskError("remove", op.trailPath(), op.disk.remove(op.trailPath()))
}

// follow returns the bytes of a checkpoint that the file of that size can have, and those that the trail of the same run bears out. They are written once more: a system that
// failed to write them back may hold them in memory as if they were safe, and would not tell a second process.
func (op *operation) follow(ctx context.Context, left *checkpoint, size int64) (spans, error) {
	done := left.done().clip(size)
	if left.SHA256 != "" {
		return done, nil
	}
	data, err := slurp(op.disk, op.trailPath(), maxTrail)
	if err != nil {
		return done, nil // the checkpoint says enough
	}
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	var e envelope
	var state trailState
	if json.Unmarshal(line, &e) != nil || e.Version != checkpointVersion || e.Sum != stateSum(e.State) || json.Unmarshal(e.State, &state) != nil || !state.joins(left) {
		return done, nil
	}
	for _, one := range state.Pieces {
		x := span{one[0], one[1]}
		if x.from < 0 || x.from >= x.to || x.to > min(size, left.Size) || done.holds(x) {
			continue
		}
		right, err := op.confirm(ctx, x, one[2])
		if err != nil {
			return nil, err
		}
		if right {
			done = done.add(x)
		}
	}
	return done, nil
}

// confirm reports whether a run of the part's bytes has a sum, and makes sure that the next flush is about them if so.
func (op *operation) confirm(ctx context.Context, x span, want int64) (bool, error) {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	for _, again := range []bool{false, true} {
		sum := uint32(0)
		for at := x.from; at < x.to; {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			n, err := op.file.ReadAt(buffer[:min(int64(len(buffer)), x.to-at)], at)
			if n == 0 {
				return false, diskError("read", op.part, err)
			}
			sum = crc32.Update(sum, castagnoli, buffer[:n])
			if again {
				if _, err := op.file.WriteAt(buffer[:n], at); err != nil {
					return false, diskError("write", op.part, err)
				}
			}
			at += int64(n)
		}
		if int64(sum) != want {
			return false, nil
		}
	}
	return true, nil
}
