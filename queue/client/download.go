package client

import (
	"context"
	"fmt"
	"os"
)

// Download fetches Options.URL into Options.Output and returns when the file stands there, verified, or with one of the
// package's errors. It blocks for as long as queues and NotBefore demand; cancel ctx to stop it: it then writes its
// checkpoint and returns the context's error. Downloads of different outputs may run at once.
func Download(ctx context.Context, o Options) (Result, error) {
	s, err := settle(o)
	if err != nil {
		return Result{}, err
	}
	// Found now and not after a day of waiting. A device must not be replaced by a file either.
	if info, err := os.Stat(s.Output); err == nil && !info.Mode().IsRegular() {
		return Result{}, fmt.Errorf("%w: Output %s exists and is no regular file", ErrOptions, s.Output)
	}
	return download(ctx, s, osDisk{})
}

// download is Download on any disk.
func download(ctx context.Context, s *settings, d disk) (Result, error) {
	op, err := newOperation(ctx, s, d)
	if err != nil {
		return Result{}, err
	}
	defer op.release()
	if op.already != "" {
		if err := op.forget(); err != nil {
			return Result{}, err
		}
		return op.result(op.already), nil
	}
	sum, err := op.fetch(ctx)
	if err != nil {
		return Result{}, op.stop(err)
	}
	return op.result(sum), nil
}

// fetch does everything between the locks: it gets the bytes, verifies them and names the file.
func (op *operation) fetch(ctx context.Context) (string, error) {
	if err := op.prepare(); err != nil {
		return "", err
	}
	if !op.complete() {
		if err := op.window(ctx); err != nil {
			return "", err
		}
		if err := op.work(ctx); err != nil {
			return "", err
		}
	}
	return op.finish(ctx)
}

// work runs the loop and returns when nothing of it runs any more.
func (op *operation) work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer op.workers.Wait()
	defer op.quiesce()
	defer cancel()
	return op.run(ctx)
}

// prepare makes the id safe before the server learns it, and (I5) forgets on disk what is not going to be used before the
// file is emptied.
func (op *operation) prepare() error {
	if err := op.saveNow(); err != nil {
		return err
	}
	if len(op.done) > 0 {
		return nil
	}
	return diskError("empty", op.part, op.file.Truncate(0))
}

// result tells what was made.
func (op *operation) result(sum string) Result {
	r := Result{Path: op.Output, SHA256: sum, Waited: op.waited, Took: op.took(), Resumed: op.resumed, Retries: op.retries}
	if op.rep != nil {
		r.Bytes, r.ETag = op.rep.size, op.rep.etag
	}
	op.emit(Event{Kind: Done})
	return r
}
