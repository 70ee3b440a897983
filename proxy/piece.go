package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/arkvory/sidecar/proxy/drip"
	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/relay"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/proxy/upstream/control"
)

// source makes the requests for pieces in the name of one waiting client, from its request. Its exchange waits meanwhile and changes nothing.
type source struct {
	x    *exchange
	span *span
}

// Placeholders of what only a redirect tells; no request holds one.
const (
	targetMark = "/\x00target"
	hostMark   = "\x00host"
)

// Piece implements drip.Source.
func (s *source) Piece(first, last int64) drip.Piece {
	x := s.x
	a := ask{part: part{on: true, first: first, last: last, anew: true, validator: s.span.facts.Validator}}
	f := &fetch{p: x.p, first: first, last: last, facts: s.span.facts, request: x.appendRequest(nil, a)}
	if x.p.set.FollowRedirects {
		f.base, f.authority = x.baseURL(), string(x.c.Req.Authority)
		a.target = []byte(targetMark)
		f.moved = x.appendRequest(nil, a)
		a.host, a.foreign = hostMark, true
		f.foreign = x.appendRequest(nil, a)
	}
	return f
}

// fetch is one request for a piece. It holds copies only.
type fetch struct {
	p           *Proxy
	first, last int64
	facts       object.Facts
	request     []byte

	// For redirects that the proxy follows.
	base      *url.URL
	authority string
	moved     []byte // the request for another target of the origin
	foreign   []byte // the request for another host
}

// fetchTime bounds one request for a piece.
const fetchTime = 15 * time.Second

// Fetch implements drip.Piece.
func (f *fetch) Fetch(ctx context.Context, p []byte) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	pool, request, base := upstream.Source(f.p.pool), f.request, f.base
	var avoid []control.EndpointID // that gave another object
	var changed error
	for hops := 0; hops <= maxRedirects; {
		w, err := f.send(ctx, pool, request, avoid)
		switch {
		case errors.Is(err, upstream.ErrNoOther) && f.p.pool.Endpoints() > f.p.pool.Choices():
			return err // the right ones may be those that are down
		case errors.Is(err, upstream.ErrNoOther):
			return changed
		case err != nil:
			return err
		}
		var next *url.URL
		if base != nil {
			next = redirectTarget(&w.Resp, base)
		}
		if next == nil || w.Resp.Status/100 != 3 {
			id, err := w.Endpoint(), f.take(ctx, w, p)
			if id == 0 || f.p.pool.Endpoints() <= 1 || !errors.Is(err, drip.ErrChanged) && !errors.Is(err, drip.ErrRefused) {
				return err
			}
			avoid, changed = append(avoid, id), err // of several equal ones the odd one is wrong
			continue
		}
		hops++
		w.Discard(telemetry.DiscardCancelled)
		base = next
		if f.p.ownHost(next.Host, f.authority) {
			pool, request = f.p.pool, bytes.Replace(f.moved, []byte(targetMark), []byte(next.RequestURI()), 1)
			continue
		}
		if pool, err = f.p.poolFor(next); err != nil {
			return err
		}
		request = bytes.Replace(f.foreign, []byte(targetMark), []byte(next.RequestURI()), 1)
		request = bytes.Replace(request, []byte(hostMark), []byte(next.Host), 1)
	}
	return errors.New("too many redirects")
}

// send sends a request and reads the head of its final response. A kept connection that turns out closed costs another try.
func (f *fetch) send(ctx context.Context, pool upstream.Source, request []byte, avoid []control.EndpointID) (*upstream.Writer, error) {
	for try := 0; ; try++ {
		w, err := get(pool, avoid, try >= staleTries, ctx.Done)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, w.Interrupt)
		_, err = w.SendAndFill(request)
		for err == nil {
			if err = w.ReadHead(); err != nil || w.Resp.Status >= 200 {
				break
			}
			w.Unpin()
		}
		if !stop() && err == nil { // interrupted, or about to be
			err = ctx.Err()
		}
		if err == nil {
			w.Heard(w.Resp.Status)
			return w, nil
		}
		stale := errors.Is(err, relay.ErrStale) || w.Reused && len(w.Buffered()) == 0 && hungUp(err)
		again := ctx.Err() == nil && try <= staleTries && (stale || w.Reused && len(w.Buffered()) == 0)
		w.Discard(blameFetch(ctx, stale))
		if !again {
			return nil, err
		}
	}
}

// take reads the piece's body from a response that is what was asked for.
func (f *fetch) take(ctx context.Context, w *upstream.Writer, p []byte) error {
	got := object.FromResponse(&w.Resp)
	switch status := w.Resp.Status; {
	case status == 206 && got.First == f.first && got.Last == f.last && got.SizeBytes == f.facts.SizeBytes && got.Validator == f.facts.Validator && w.Resp.ContentLength >= 0:
	case status == 200, status == 206, status == 412, status == 416:
		w.Discard(telemetry.DiscardCancelled)
		return drip.ErrChanged
	default:
		w.Discard(telemetry.DiscardCancelled)
		if status < 500 && status != 429 && status != 408 && status != 425 {
			return fmt.Errorf("%w: status %d", drip.ErrRefused, status)
		}
		return fmt.Errorf("origin answered %d", status)
	}
	stop := context.AfterFunc(ctx, w.Interrupt)
	_, err := io.ReadFull(w.Conn, p)
	switch unhurt := stop(); {
	case !unhurt || err != nil:
		w.Discard(blameFetch(ctx, false))
		return err
	case connectionBound(&w.Resp):
		w.Discard(telemetry.DiscardSpent)
		return nil
	}
	w.Release(f.p.front.Clock().Load())
	return nil
}

// blameFetch says whose doing it was that a request for a piece did not end well.
func blameFetch(ctx context.Context, stale bool) telemetry.Discard {
	switch {
	case stale:
		return telemetry.DiscardClosed
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return telemetry.DiscardTimeout
	case ctx.Err() != nil:
		return telemetry.DiscardCancelled
	}
	return telemetry.DiscardBroken
}
