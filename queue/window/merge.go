package window

import (
	"cmp"
	"slices"
	"time"
)

// ClassEdge is an edge of one of several schedules.
type ClassEdge struct {
	At    time.Time // UTC
	Class int       // index of the schedule
	Share int       // per mille, from At on
	Seed  uint64    // made of At and Class alone: the same in every process with the same windows
}

// Ahead returns the shares of several schedules at a moment, and their edges after it and not after until, in order, at most limit of each.
func Ahead(schedules []*Schedule, from, until time.Time, limit int) (shares []int, edges []ClassEdge) {
	shares = make([]int, len(schedules))
	for class, s := range schedules {
		shares[class] = s.Share(from)
		for _, e := range s.Edges(from, until, limit) {
			share := s.OutsideShare()
			if e.Open {
				share = Whole
			}
			edges = append(edges, ClassEdge{e.At, class, share, uint64(e.At.Unix())*uint64(len(schedules)) + uint64(class)})
		}
	}
	slices.SortStableFunc(edges, func(a, b ClassEdge) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Class, b.Class)) })
	return shares, edges
}
