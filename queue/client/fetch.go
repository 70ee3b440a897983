package client

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// verdict is what became of a request.
type verdict int

const (
	started   verdict = iota // the answer is good and its bytes follow; one more outcome comes
	finished                 // every byte asked for is written
	queued                   // the server is busy: come back later
	faulty                   // something broke
	changed                  // the object is not the one whose bytes we have
	rangeless                // ranges cannot be used here: ask for the whole
	fatal                    // nothing helps
	stopped                  // the download itself was cancelled
)

// outcome is one report of a job.
type outcome struct {
	job     *job
	verdict verdict
	facts   facts
	from    string         // who answered, for the ticket
	rep     representation // of started; of changed, its size where it was told, else -1
	busy    bool           // of faulty: 503 or 429 that told nothing
	err     error          // of faulty, changed and fatal
}

// mode is how a job asks.
type mode int

const (
	discover mode = iota // the first range, of an object that nothing is known about
	whole                // everything, without a range
	piece                // a range of a known representation
)

// job is one request and what came of it. The fields above got are not written after it starts, but for from and to of
// a discovery, which its goroutine settles before it reports started.
type job struct {
	mode   mode
	from   int64
	to     int64 // exclusive; -1 for a whole of unknown length
	open   bool  // ask for "from on" instead of naming the last byte
	rep    representation
	epoch  int
	ticket ticketed
	sums   *sums // gets every byte, when the job is part of one unbroken sequence; else nil
	cancel context.CancelFunc

	got     atomic.Int64 // bytes of [from, to) that are written, from the front
	mark    atomic.Pointer[mark]
	started bool // for the operation's goroutine alone
}

// mark is how far a job is and the CRC-32C of its bytes so far, both of one moment.
type mark struct {
	got int64
	sum uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fetcher runs jobs: it sends the request, judges the answer and writes the body. Several goroutines use one.
type fetcher struct {
	settings  *settings
	requester *requester
	file      diskFile
	report    func(outcome)
}

// buffers are what bodies are copied through.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// run does the whole job and reports: started at most once, then exactly one other verdict.
func (f *fetcher) run(ctx context.Context, j *job) {
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newSilence(f.settings.AttemptTimeout, func() { cancel(errSilent) })
	defer watch.stop()
	out := f.exchange(attempt, j, watch)
	out.job = j
	if out.verdict == faulty && ctx.Err() != nil {
		out.verdict = stopped
	}
	f.report(out)
}

// broke words a failure of the network; a silent attempt shows as a cancelled context and gets its cause back.
func (f *fetcher) broke(ctx context.Context, doing string, err error) outcome {
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		err = cause
	}
	return outcome{verdict: faulty, err: f.requester.scrub.fault(doing, err)}
}

// exchange sends the request and deals with its answer.
func (f *fetcher) exchange(ctx context.Context, j *job, watch silence) outcome {
	from, to, ifRange := j.from, j.to, j.rep.validator()
	switch {
	case j.mode == whole:
		from = -1
	case j.open:
		to = -1
	}
	response, err := f.requester.do(ctx, from, to, ifRange, j.ticket)
	if err != nil {
		if response != nil {
			_ = response.Body.Close()
		}
		for _, one := range []error{errRedirects, errUnprotected} {
			if errors.Is(err, one) {
				return outcome{verdict: fatal, err: fmt.Errorf("%w: %w", ErrRefused, one)}
			}
		}
		return f.broke(ctx, "cannot ask the server", err)
	}
	defer response.Body.Close()
	watch.heard()
	told := readFacts(response.Header, f.settings.Clock.Now())
	var out outcome
	switch response.StatusCode {
	case http.StatusPartialContent:
		out = f.partial(j, response)
	case http.StatusOK:
		out = f.complete(j, response)
	case http.StatusRequestedRangeNotSatisfiable:
		out = unsatisfied(j)
	default:
		told.addBody(response.Header, response.Body)
		out = f.refused(response, told)
	}
	out.facts, out.from, out.job = told, f.requester.answerer(response), j
	if out.verdict != started {
		return out
	}
	f.report(out)
	return f.stream(ctx, j, response, watch)
}

// partial judges a 206. Its Content-Range must be exactly what was asked for.
func (f *fetcher) partial(j *job, response *http.Response) outcome {
	c, fine := parseContentRange(response.Header.Get("Content-Range"))
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch {
	case j.mode == whole || strings.EqualFold(strings.TrimSpace(kind), "multipart/byteranges"):
		return outcome{verdict: faulty, err: &fault{text: "the server sent a part that nobody asked for"}}
	case !fine:
		return outcome{verdict: faulty, err: &fault{text: "the server sent a part without a Content-Range that can be read"}}
	case j.mode == discover && c.total < 0:
		return outcome{verdict: rangeless}
	case j.mode == piece && (c.total != j.rep.size || !j.rep.same(response.Header)):
		return outcome{verdict: changed, rep: representation{size: c.total}, err: errors.New("the object changed")}
	}
	to := min(j.to, c.total)
	if c.from != j.from || c.to != to || response.ContentLength >= 0 && response.ContentLength != to-j.from {
		return outcome{verdict: faulty, err: &fault{text: fmt.Sprintf("the server sent other bytes than asked for: %d..%d instead of %d..%d", c.from, c.to-1, j.from, to-1)}}
	}
	if j.mode == piece {
		return outcome{verdict: started, rep: j.rep}
	}
	rep := readRepresentation(response.Header)
	rep.size, rep.ranged = c.total, true
	if err := f.fits(c.total); err != nil {
		return outcome{verdict: fatal, err: err}
	}
	if rep.validator() == "" {
		if c.total > to {
			return outcome{verdict: rangeless}
		}
		rep.ranged = false // all of it is here, but a broken answer cannot be continued
	}
	j.to = to
	return outcome{verdict: started, rep: rep}
}

// complete judges a 200: the whole object, whatever was asked.
func (f *fetcher) complete(j *job, response *http.Response) outcome {
	if j.mode == piece {
		return outcome{verdict: changed, rep: representation{size: response.ContentLength}, err: errors.New("the object changed, or the server does not know ranges any more")}
	}
	rep := readRepresentation(response.Header)
	rep.size = response.ContentLength
	if rep.size >= 0 {
		if err := f.fits(rep.size); err != nil {
			return outcome{verdict: fatal, err: err}
		}
	}
	j.from, j.to = 0, rep.size
	return outcome{verdict: started, rep: rep}
}

// unsatisfied judges a 416: of a known object it means that it is another now; of an unknown one that it is empty or that
// the server dislikes ranges.
func unsatisfied(j *job) outcome {
	switch j.mode {
	case piece:
		return outcome{verdict: changed, rep: representation{size: -1}, err: errors.New("the object shrank")}
	case discover:
		return outcome{verdict: rangeless}
	}
	return outcome{verdict: fatal, err: &StatusError{Status: http.StatusRequestedRangeNotSatisfiable}}
}

// refused judges every other status.
func (f *fetcher) refused(response *http.Response, told facts) outcome {
	status := response.StatusCode
	busy := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
	switch {
	case busy && (told.told || told.busy):
		return outcome{verdict: queued}
	case busy, status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return outcome{verdict: faulty, busy: busy, err: &fault{text: fmt.Sprintf("the server answered with status %d", status)}}
	}
	message := f.requester.scrub.clean(told.message, told.ticket)
	return outcome{verdict: fatal, err: &StatusError{Status: status, Message: message}}
}

// fits compares the size of the object with the expected one.
func (f *fetcher) fits(size int64) error {
	if f.settings.Size >= 0 && size != f.settings.Size {
		return fmt.Errorf("%w: the object has %d bytes, %d were expected", ErrSize, size, f.settings.Size)
	}
	return nil
}

// stream writes the body. A body longer than promised is cut, a shorter one is a fault.
func (f *fetcher) stream(ctx context.Context, j *job, response *http.Response, watch silence) outcome {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	for {
		room := int64(len(buffer))
		if j.to >= 0 {
			room = min(room, j.to-j.from-j.got.Load())
		}
		if room == 0 && j.to >= 0 {
			return f.ending(response.Body, buffer[:1])
		}
		n, err := response.Body.Read(buffer[:room])
		if n > 0 {
			watch.stop() // a disk that takes its time is not a server that is silent
			failed := f.write(j, buffer[:n])
			watch.heard()
			if failed != nil {
				return outcome{verdict: fatal, err: failed}
			}
		}
		switch {
		case errors.Is(err, io.EOF) && j.to < 0:
			if endsWithConnection(response) && j.got.Load() < f.settings.Size {
				return f.broke(ctx, "the answer ended early", io.ErrUnexpectedEOF)
			}
			if err := f.fits(j.got.Load()); err != nil {
				return outcome{verdict: fatal, err: err}
			}
			return outcome{verdict: finished}
		case errors.Is(err, io.EOF) && j.got.Load() < j.to-j.from:
			return f.broke(ctx, "the answer ended early", io.ErrUnexpectedEOF)
		case err != nil && !errors.Is(err, io.EOF):
			return f.broke(ctx, "the answer broke off", err)
		}
	}
}

// endsWithConnection reports whether nothing but the close of the connection ends the body, so that a broken one looks
// like a whole one.
func endsWithConnection(response *http.Response) bool {
	return response.ContentLength < 0 && response.ProtoMajor == 1 && len(response.TransferEncoding) == 0
}

// ending reads on to the end of a body whose promised bytes are all there, so that the connection can serve again. What
// is behind them is not ours; the connection then closes with the body.
func (f *fetcher) ending(body io.Reader, one []byte) outcome {
	for range 4 {
		if n, err := body.Read(one); n > 0 || err != nil {
			break
		}
	}
	return outcome{verdict: finished}
}

// write puts bytes behind those the job has.
func (f *fetcher) write(j *job, data []byte) error {
	got := j.got.Load()
	if j.to < 0 && f.settings.Size >= 0 && got+int64(len(data)) > f.settings.Size {
		return fmt.Errorf("%w: the object has more than the expected %d bytes", ErrSize, f.settings.Size)
	}
	if _, err := f.file.WriteAt(data, j.from+got); err != nil {
		return diskError("write", f.settings.part, err)
	}
	if j.sums != nil {
		j.sums.add(data)
	}
	next := mark{got: got + int64(len(data))}
	if last := j.mark.Load(); last != nil {
		next.sum = last.sum
	}
	next.sum = crc32.Update(next.sum, castagnoli, data)
	j.mark.Store(&next)
	j.got.Store(next.got)
	return nil
}
