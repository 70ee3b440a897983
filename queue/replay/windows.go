package replay

import (
	"strconv"
	"strings"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// Windows notes a plan of windows that the core took.
func (r *Recorder) Windows(now time.Duration, p queue.WindowPlan) {
	if r.call(OpWindows, now) {
		r.line = appendPlan(r.line, &p)
	}
}

func appendPlan(b []byte, p *queue.WindowPlan) []byte {
	b = counts(b, p.Shares)
	for i := range p.Edges {
		e := &p.Edges[i]
		b = number(b, e.At)
		b = append(append(b, ':'), e.Class.String()...)
		b = strconv.AppendInt(append(b, ':'), int64(e.Share), 10)
		b = strconv.AppendUint(append(b, ':'), e.Seed, 10)
	}
	return b
}

// plan reads the rest of a line.
func (f *fields) plan() (p queue.WindowPlan) {
	p.Shares = f.byClass("SHARES")
	for f.err == nil && f.rest != "" {
		s := f.next("EDGE")
		parts := strings.Split(s, ":")
		if len(parts) != 4 {
			f.fail("EDGE", s)
			break
		}
		class, err := queue.ParseClass(parts[1])
		seed, seedErr := strconv.ParseUint(parts[3], 10, 64)
		if err != nil || seedErr != nil || len(p.Edges) == queue.MaxWindowEdges {
			f.fail("EDGE", s)
		}
		p.Edges = append(p.Edges, queue.WindowEdge{At: time.Duration(f.parse("EDGE", parts[0])), Class: class, Share: int(f.parse("EDGE", parts[2])), Seed: seed})
	}
	return p
}
