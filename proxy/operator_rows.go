package proxy

import (
	"strings"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// rows makes the documents of a page's sessions. What each needs beside itself, its words and moments, comes from three pieces of memory for all: the garbage
// of a look is collected beside the downloads, and costs them more than the look.
type rows struct {
	o       *operator
	now     time.Duration // the moment that durations count from
	clear   bool
	text    strings.Builder
	moments []admin.Moment
	windows []admin.StartsWindow
}

const (
	hexDigits = 16
	// rowBytes are the id and three hashes of a row, rowMoments its start and its expected start.
	rowBytes   = hexDigits + 3*(len(hashMark)+hexDigits)
	rowMoments = 2
)

// rows returns the maker of n documents; more are made too, from more memory.
func (o *operator) rows(n int, now time.Duration, clear bool) *rows {
	r := &rows{o: o, now: now, clear: clear, moments: make([]admin.Moment, 0, rowMoments*n), windows: make([]admin.StartsWindow, 0, n)}
	r.text.Grow(rowBytes * n)
	return r
}

// session is the document of one session; it refers to s.
func (r *rows) session(s *queue.Shown) admin.SessionDocument {
	o := r.o
	doc := admin.SessionDocument{
		ID: r.hex("", uint64(s.ID)), State: s.State.String(), Class: s.Class.String(), StandsIn: s.StandsIn.String(), Protocol: s.Protocol, Held: s.Held,
		BundleObjects: s.Members, SentBytes: s.SentBytes, ArrivedAt: o.moment(s.Arrival), WaitedSeconds: admin.InSeconds(s.Waited),
		PausedByOperator: s.Stopped, Why: s.Why.String(),
	}
	if r.clear {
		doc.Principal, doc.Object, doc.Client = s.Key.Principal, s.Key.Object, s.Key.Client
	} else {
		doc.Principal = r.hex(hashMark, o.hashes.sum(hashPrincipal, s.Key.Principal))
		doc.Object = r.hex(hashMark, o.hashes.sum(hashObject, s.Key.Object))
		doc.Client = r.hex(hashMark, o.hashes.sum(hashClient, s.Key.Client))
	}
	if s.Position > 0 {
		doc.Position = &s.Position
	}
	if s.SizeBytes >= 0 {
		doc.SizeBytes = &s.SizeBytes
	}
	if s.State == queue.ShownActive {
		doc.StartedAt = r.moment(s.Since)
	}
	if s.EstimateKnown {
		doc.StartsAt = r.moment(r.now + s.StartsIn)
		r.windows = append(r.windows, admin.StartsWindow{Earliest: o.moment(r.now + s.EarliestIn), Latest: o.moment(r.now + s.LatestIn)})
		doc.StartsWindow = &r.windows[len(r.windows)-1]
	}
	return doc
}

// moment keeps a moment.
func (r *rows) moment(at time.Duration) *admin.Moment {
	r.moments = append(r.moments, r.o.moment(at))
	return &r.moments[len(r.moments)-1]
}

// hex writes a number with 16 hexadecimal digits behind a mark.
func (r *rows) hex(mark string, n uint64) string {
	begin := r.text.Len()
	r.text.WriteString(mark)
	var digits [hexDigits]byte
	for i := range digits {
		digits[i] = "0123456789abcdef"[n>>(60-4*i)&15]
	}
	r.text.Write(digits[:])
	return r.text.String()[begin:]
}
