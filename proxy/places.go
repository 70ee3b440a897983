package proxy

import "sync"

// places bounds the requests that are held in silence: all, and those of one principal, so that a single client that opens as many connections as may be held leaves
// room for the others. Safe for concurrent use.
type places struct {
	limit, each int // each 0 = no limit of its own

	mu  sync.Mutex
	all int
	by  map[string]int // none at zero
}

// enter takes a place; false when there is none.
func (p *places) enter(principal string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.limit || p.each > 0 && p.by[principal] >= p.each {
		return false
	}
	p.all++
	if p.by == nil {
		p.by = map[string]int{}
	}
	p.by[principal]++
	return true
}

// leave gives it back.
func (p *places) leave(principal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.by[principal]--; p.by[principal] == 0 {
		delete(p.by, principal)
	}
}

// taken returns how many places are taken.
func (p *places) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
