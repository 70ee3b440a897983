package sim

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// sharing returns when each person is done, in seconds, when all share the link equally from their arrival on without any admission,
// each at most at its own rate: ideal processor sharing, exact, event by event. Persons who vanish before they are done
// take their share until then and have NaN.
//
// All with one own rate have the same rate at every moment, so each such group has one virtual time (bytes every member got) and
// its members end in the order of join + size. An event costs O(groups + log n).
func sharing(people []person, capacity float64) []float64 {
	s := processor{capacity: capacity, done: make([]float64, len(people)), over: make([]bool, len(people)), people: people}
	index := map[float64]int{}
	order := make([]int, len(people))
	for i := range people {
		order[i] = i
		rate := min(people[i].rate, capacity)
		if _, ok := index[rate]; !ok {
			index[rate] = len(s.groups)
			s.groups = append(s.groups, group{cap: rate})
		}
		s.done[i] = math.NaN()
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(people[a].arrival, people[b].arrival) })
	type leave struct {
		at float64
		id int
	}
	var leaves []leave
	for i := range people {
		if people[i].leaveAt != never {
			leaves = append(leaves, leave{people[i].leaveAt.Seconds(), i})
		}
	}
	slices.SortStableFunc(leaves, func(a, b leave) int { return cmp.Compare(a.at, b.at) })
	for {
		s.level()
		end, at := s.nextEnd()
		arrive, quit := math.Inf(1), math.Inf(1)
		if len(order) > 0 {
			arrive = people[order[0]].arrival.Seconds()
		}
		if len(leaves) > 0 {
			quit = leaves[0].at
		}
		next := min(at, arrive, quit)
		if math.IsInf(next, 1) {
			return s.done
		}
		s.advance(next)
		switch next {
		case at:
			s.finish(end)
		case arrive:
			id := order[0]
			order = order[1:]
			s.join(index[min(people[id].rate, capacity)], id)
		default:
			s.quit(index[min(people[leaves[0].id].rate, capacity)], leaves[0].id)
			leaves = leaves[1:]
		}
	}
}

type processor struct {
	people   []person
	groups   []group
	flows    []flow
	capacity float64
	now      float64
	done     []float64
	over     []bool // done or vanished: such a member of a heap counts no more
}

type group struct {
	cap, rate, v float64
	count        int // members that are not over
	members      ends
}

// ends is a heap of members by the virtual time at which they are done.
type ends []ending

type ending struct {
	at float64
	id int
}

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].id < e[j].id
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(ending)) }
func (e *ends) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// level sets the rate of a member of each group.
func (s *processor) level() {
	s.flows = s.flows[:0]
	for i := range s.groups {
		n := float64(s.groups[i].count)
		s.flows = append(s.flows, flow{weight: n, cap: n * s.groups[i].cap})
	}
	fill(s.capacity, s.flows)
	for i := range s.groups {
		s.groups[i].rate = 0
		if n := s.groups[i].count; n > 0 {
			s.groups[i].rate = s.flows[i].rate / float64(n)
		}
	}
}

// nextEnd returns the group whose first member is done next, and when.
func (s *processor) nextEnd() (group int, at float64) {
	at = math.Inf(1)
	for i := range s.groups {
		g := &s.groups[i]
		for len(g.members) > 0 && s.over[g.members[0].id] {
			heap.Pop(&g.members)
		}
		if g.count == 0 {
			g.v = 0 // so that it stays exact over many busy times
			continue
		}
		if t := s.now + max(g.members[0].at-g.v, 0)/g.rate; t < at {
			group, at = i, t
		}
	}
	return group, at
}

func (s *processor) advance(to float64) {
	for i := range s.groups {
		s.groups[i].v += s.groups[i].rate * (to - s.now)
	}
	s.now = to
}

func (s *processor) join(g, id int) {
	p := &s.people[id]
	size := p.size
	if p.leaveAfter > 0 {
		size = p.leaveAfter
	}
	s.groups[g].count++
	heap.Push(&s.groups[g].members, ending{s.groups[g].v + float64(size), id})
}

func (s *processor) finish(g int) {
	e := heap.Pop(&s.groups[g].members).(ending)
	s.groups[g].count--
	s.over[e.id] = true
	if s.people[e.id].leaveAfter == 0 {
		s.done[e.id] = s.now
	}
}

// quit leaves the heap as it is: nextEnd drops who is over when it comes to the top.
func (s *processor) quit(g, id int) {
	if !s.over[id] {
		s.groups[g].count--
		s.over[id] = true
	}
}

// idealMakespan is when the last of these could be done at the earliest, in seconds: all their bytes through the link, or the longest
// one at its own rate.
func idealMakespan(people []*person, capacity float64) float64 {
	var bytes, longest float64
	for _, p := range people {
		bytes += float64(p.size)
		longest = max(longest, p.arrival.Seconds()+float64(p.size)/min(p.rate, capacity))
	}
	return max(bytes/capacity, longest)
}
