package client

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"time"
)

// sums are the digests of a file from its first byte on.
type sums struct {
	sha256, sha512 hash.Hash // sha512 is nil unless a digest of it is expected
	at             int64     // bytes summed
}

func newSums(expected Digest) *sums {
	s := &sums{sha256: sha256.New()}
	if expected.algorithm == "sha512" {
		s.sha512 = sha512.New()
	}
	return s
}

// add sums the next bytes; hashes never fail.
func (s *sums) add(data []byte) {
	_, _ = s.sha256.Write(data)
	if s.sha512 != nil {
		_, _ = s.sha512.Write(data)
	}
	s.at += int64(len(data))
}

// hex is the SHA-256.
func (s *sums) hex() string { return hex.EncodeToString(s.sha256.Sum(nil)) }

// check compares the sums with an expected digest.
func (s *sums) check(expected Digest) error {
	if expected.IsZero() {
		return nil
	}
	sum := s.sha256
	if expected.algorithm == "sha512" {
		sum = s.sha512
	}
	if got := sum.Sum(nil); !expected.matches(got) {
		return fmt.Errorf("%w: got %s:%x, expected %s", ErrDigest, expected.algorithm, got, expected)
	}
	return nil
}

// sumFile reads size bytes of a file and tells now and then how far it is.
func sumFile(ctx context.Context, file io.ReaderAt, size int64, expected Digest, tell func(int64)) (*sums, error) {
	s := newSums(expected)
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	for s.at < size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), size-s.at)], s.at)
		s.add(buffer[:n])
		if err != nil && (s.at < size || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		tell(s.at)
	}
	return s, nil
}

// window waits until NotBefore, in steps that each look at the wall clock anew: timers do not count the sleep of a
// machine, and clocks get set.
func (op *operation) window(ctx context.Context) error {
	for {
		rest := op.NotBefore.Sub(op.Clock.Now().Round(0))
		if op.NotBefore.IsZero() || rest <= 0 {
			return ctx.Err()
		}
		op.emit(Event{Kind: WaitingForWindow, StartsAt: op.NotBefore, Wait: rest, NextTry: op.NotBefore})
		if err := op.Clock.Sleep(ctx, min(rest, windowStep)); err != nil {
			return err
		}
	}
}

// verify sums the whole file, unless that happened on the way, and compares.
func (op *operation) verify(ctx context.Context) (*sums, error) {
	s := op.sums
	if s == nil || s.at != op.rep.size {
		op.emit(Event{Kind: Verifying})
		told := op.Clock.Now()
		var err error
		s, err = sumFile(ctx, op.file, op.rep.size, op.Digest, func(at int64) {
			if now := op.Clock.Now(); now.Sub(told) >= beatEvery {
				told = now
				op.emit(Event{Kind: Verifying, Bytes: at})
			}
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, diskError("read", op.part, err)
		}
	}
	err := s.check(op.Digest)
	if err == nil && op.whole != "" && op.whole != s.hex() {
		err = fmt.Errorf("%w: the file is not the one that was checked before", ErrDigest)
	}
	if err != nil {
		return nil, op.discard(err)
	}
	return s, nil
}

// discard puts wrong bytes where no later run takes them for right ones: first the checkpoint goes, then the name.
func (op *operation) discard(why error) error {
	if !renamesOpen {
		_ = op.file.Close()
		op.file = nil
	}
	for _, step := range []func() error{
		op.dropTrail,
		func() error { return op.disk.remove(op.Checkpoint) },
		func() error { return op.disk.syncDir(op.Checkpoint) },
		func() error { return op.disk.rename(op.part, op.bad) },
	} {
		if err := step(); err != nil {
			return errors.Join(why, diskError("set aside", op.part, err))
		}
	}
	return fmt.Errorf("%w; the bytes are in %s", why, op.bad)
}

// finish verifies the file and gives it its name. A crash between any two steps leaves either the part with a checkpoint
// that says it is whole, or the file itself.
func (op *operation) finish(ctx context.Context) (string, error) {
	if err := op.saver.wait(op.Clock.Now()); err != nil {
		return "", err
	}
	s, err := op.verify(ctx)
	if err != nil {
		return "", err
	}
	if size, err := op.file.size(); err != nil || size != op.rep.size {
		if err := op.file.Truncate(op.rep.size); err != nil {
			return "", diskError("cut", op.part, err)
		}
	}
	op.whole = s.hex()
	if err := op.saveNow(); err != nil { // flushes the bytes first
		return "", err
	}
	if err := op.vacant(); err != nil {
		return "", err
	}
	if !renamesOpen {
		if err := op.file.Close(); err != nil {
			return "", diskError("close", op.part, err)
		}
		op.file = nil
	}
	if err := op.disk.rename(op.part, op.Output); err != nil {
		return "", diskError("rename", op.part, err)
	}
	if err := op.disk.syncDir(op.Output); err != nil {
		return "", diskError("flush the folder of", op.Output, err)
	}
	return op.whole, op.forget()
}

// vacant returns ErrExists when the place of the file is taken and must not be.
func (op *operation) vacant() error {
	if !op.NoReplace {
		return nil
	}
	file, err := op.disk.look(op.Output)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_ = file.Close()
	}
	return fmt.Errorf("%w: %s", ErrExists, op.Output)
}

// forget removes the checkpoint of a finished download.
func (op *operation) forget() error {
	if err := op.dropTrail(); err != nil {
		return err
	}
	if err := op.disk.remove(op.Checkpoint); err != nil {
		return diskError("remove", op.Checkpoint, err)
	}
	return diskError("flush the folder of", op.Checkpoint, op.disk.syncDir(op.Checkpoint))
}

// named reports whether an earlier run was stopped after it had given the file its name and before it removed the
// checkpoint. It then only remains to remove it.
func (op *operation) named(ctx context.Context, left checkpoint) bool {
	age := op.began.Round(0).Sub(left.Saved)
	if left.SHA256 == "" || age < 0 || age > completeTerm || op.Size >= 0 && op.Size != left.Size {
		return false
	}
	if part, err := op.disk.look(op.part); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			_ = part.Close()
		}
		return false
	}
	file, err := op.disk.look(op.Output)
	if err != nil {
		return false
	}
	defer file.Close()
	if size, err := file.size(); err != nil || size != left.Size {
		return false
	}
	s, err := sumFile(ctx, file, left.Size, op.Digest, func(int64) {})
	return err == nil && s.hex() == left.SHA256 && s.check(op.Digest) == nil
}

// stop ends an operation that failed: what was got, and the place in the queue, are kept for the next run. A refusal that
// left neither leaves no files.
func (op *operation) stop(why error) error {
	now := op.Clock.Now()
	saving := op.saver.wait(now)
	switch {
	case errors.Is(why, ErrDigest), unflushed(why):
		return why
	case unflushed(saving): // other troubles show again in the next save
		return errors.Join(why, saving)
	}
	if len(op.done) == 0 && op.ticket.ticket == "" && (errors.Is(why, ErrRefused) || errors.Is(why, ErrSize)) {
		return errors.Join(why, diskError("remove", op.part, op.disk.remove(op.part)), op.forget())
	}
	if op.file == nil {
		return why
	}
	err := op.saveNow()
	if err == nil {
		err = op.dropTrail() // all of it is flushed
	}
	if err != nil && !errors.Is(why, ErrDisk) {
		return errors.Join(why, err)
	}
	return why
}

// took is how long the operation lasts.
func (op *operation) took() time.Duration { return op.Clock.Now().Sub(op.began) }
