package drip

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/bucket"
)

// plain is the model of one drip: what its owner knows of it.
type plain struct {
	*seat
	principal string
	phase     int // joined, running, stopped or cut, left
	told      int64
	sinkFails bool
	fatal     int // tick at which a fetch of its own was refused while it ran, 0 = none
	pace      *bucket.Stream
}

const (
	isJoined = iota
	isRunning
	isStopped
	hasLeft
)

// hang is a fetch that waits for its answer.
type hang struct {
	owner  *plain
	answer chan error
}

// machine holds a dripper beside its model.
type machine struct {
	*world
	r      *rand.Rand
	set    Settings
	budget int64
	gov    *bucket.Governor
	live   []*plain
	ticks  int

	mu    sync.Mutex
	hangs []*hang

	joined, started, cut int
	by                   map[string]int
	bytes                int64
	good, failed, panics int
}

func (m *machine) join() {
	principal := fmt.Sprint("p", m.r.IntN(5))
	free := m.joined < m.set.Limit && int64(m.joined) < 4*m.budget && m.by[principal] < m.set.PerPrincipal
	x := m.d.Join(principal)
	if (x != nil) != free {
		m.t.Fatalf("place %v, want %v: %d joined, %d of %s, budget %d", x != nil, free, m.joined, m.by[principal], principal, m.budget)
	}
	if x == nil {
		return
	}
	m.joined++
	m.by[principal]++
	m.live = append(m.live, &plain{seat: &seat{Drip: x}, principal: principal})
}

func (m *machine) start(p *plain) {
	r := m.r
	object := byte(r.IntN(6))
	size := int64(object)*15_000 + 40_000
	first := edge(r, size)
	last := first + edge(r, size-first)
	p.c = &client{object: object, from: first, at: first, take: clumsy(r, r.IntN(8))}
	if r.IntN(6) == 0 {
		p.c.take = func(n int) (int, error) {
			if r.IntN(8) == 0 {
				p.sinkFails = true
				return 0, errSink
			}
			return n, nil
		}
	}
	p.o = &origin{object: object, size: size, answer: func(ctx context.Context, _ *fetch) error { return m.hang(ctx, p) }}
	s := Start{Object: [32]byte{object}, First: first, Last: last, SizeBytes: size, Sink: p.c, Source: p.o}
	s.Sent = func(n int64) { p.told += n; m.bytes += n }
	if r.IntN(2) == 0 {
		p.pace = m.gov.Open(p.principal)
		s.Pace = p.pace
	}
	if r.IntN(3) == 0 {
		s.PieceFirst = first / PieceBytes * PieceBytes
		s.Piece = fill(object, s.PieceFirst, make([]byte, min(PieceBytes, size-s.PieceFirst)))
	}
	p.Begin(s)
	p.phase = isRunning
	m.started++
	m.all = append(m.all, p.seat)
}

func (m *machine) hang(ctx context.Context, p *plain) error {
	h := &hang{p, make(chan error)}
	m.mu.Lock()
	m.hangs = append(m.hangs, h)
	m.mu.Unlock()
	select {
	case err := <-h.answer:
		if err == errMad {
			panic(err)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errMad = fmt.Errorf("mad fetch")

// answer ends one fetch.
func (m *machine) answer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.hangs) == 0 {
		return
	}
	i := m.r.IntN(len(m.hangs))
	h := m.hangs[i]
	m.hangs = slices.Delete(m.hangs, i, i+1)
	err := []error{errAway, ErrChanged, ErrRefused, errMad, nil}[min(m.r.IntN(30), 4)]
	switch err {
	case nil:
		m.good++
	case ErrChanged, ErrRefused:
		if h.owner.phase == isRunning && h.owner.fatal == 0 {
			h.owner.fatal = m.ticks
		}
		m.failed++
	default:
		m.failed++
	}
	h.answer <- err
}

func (m *machine) stopOne(p *plain) {
	offset, idle := m.stop(p.seat)
	if !idle && p.pace == nil {
		m.t.Fatalf("not idle without a pace")
	}
	p.pace.Close()
	if p.phase == isRunning {
		p.phase = isStopped
	}
	if p.c != nil && (offset != p.c.at || p.told != p.c.got()) {
		m.t.Fatalf("stopped at %d, the client has up to %d, told %d", offset, p.c.at, p.told)
	}
}

func (m *machine) leave(p *plain) {
	if p.c != nil {
		p.c.shut = true
	}
	p.Leave()
	if p.phase != hasLeft {
		p.phase = hasLeft
		m.joined--
		m.by[p.principal]--
		p.pace.Close()
	}
}

// step is one random event.
func (m *machine) step() {
	one := func(phase int) *plain {
		i, n := m.r.IntN(max(len(m.live), 1)), len(m.live)
		for k := range n {
			if p := m.live[(i+k)%n]; p.phase == phase {
				return p
			}
		}
		return nil
	}
	switch e := m.r.IntN(100); {
	case e < 10:
		m.join()
	case e < 18:
		if p := one(isJoined); p != nil {
			m.start(p)
		}
	case e < 42:
		m.answer()
	case e < 46:
		if p := one(isRunning); p != nil {
			m.stopOne(p)
		}
	case e < 48:
		if p := one(isStopped); p != nil {
			m.stopOne(p)
		}
	case e < 54:
		if p := one([]int{isStopped, isStopped, isStopped, isJoined, isRunning, hasLeft}[m.r.IntN(6)]); p != nil {
			m.leave(p)
		}
	case e == 54:
		m.budget = []int64{0, 3, 50, 5000, 1 << 40}[m.r.IntN(5)]
	case e == 55:
		m.gov.Configure(bucket.Limit{BytesPerSecond: []int64{500, 4000, 1 << 20, 0}[m.r.IntN(4)]}, bucket.Limit{})
	case e == 56:
		m.gov.Revoke()
	case e < 60:
		m.gov.Restore()
	case e == 60:
		<-time.After(time.Duration(m.r.Int64N(int64(30 * time.Second))))
	default:
		<-time.After(Step)
		m.ticks++
		m.d.Tick(m.now())
	}
	synctest.Wait()
}

// compare judges the dripper by the model.
func (m *machine) compare() {
	running := 0
	for _, p := range m.live {
		if p.c == nil {
			continue
		}
		if p.c.cuts > 0 && p.phase == isRunning {
			if !p.sinkFails && p.fatal == 0 {
				m.t.Fatalf("cut without a reason of its own")
			}
			p.phase = isStopped
			m.cut++
		}
		if p.phase == isRunning {
			running++
			if p.sinkFails || p.fatal > 0 && m.ticks > p.fatal+2*visitTicks {
				m.t.Fatalf("not cut: the sink fails %v, refused at tick %d of %d", p.sinkFails, p.fatal, m.ticks)
			}
		}
	}
	m.live = slices.DeleteFunc(m.live, func(p *plain) bool { return p.phase == hasLeft && m.r.IntN(20) == 0 })
	s := m.d.Snapshot()
	if s.Joined != m.joined || s.Running != running || s.Started != uint64(m.started) || s.Cut != uint64(m.cut) || s.Bytes != uint64(m.bytes) ||
		s.Fetched != uint64(m.good) || s.Failed != uint64(m.failed) {
		m.t.Fatalf("%+v, want %d joined, %d running, %d started, %d cut, %d bytes, %d fetched, %d failed",
			s, m.joined, running, m.started, m.cut, m.bytes, m.good, m.failed)
	}
	if m.ticks%64 == 0 { // of those that left only the faults are of interest
		m.faults()
		m.all = slices.DeleteFunc(m.all, func(s *seat) bool { return s.left })
	}
}

// 100,000 random events against a plain model, with the invariants after each.
func TestX2_RandomHistoriesAgreeWithTheModel(t *testing.T) {
	const seeds, events = 20, 5000
	var bytes int64
	var cut, panics int
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			m := &machine{r: r, by: map[string]int{}, budget: 1 << 40}
			m.set = Settings{BytesPerSecond: 1 << (3 + r.IntN(10)), Limit: 8 + r.IntN(20), PerPrincipal: 6, StoreBytes: r.IntN(8 * PieceBytes), Fetchers: 1 + r.IntN(4),
				Budget: func() int64 { return m.budget }, OnPanic: func(any) { m.mu.Lock(); m.panics++; m.mu.Unlock() }}
			m.world = newWorld(t, m.set)
			m.gov = bucket.NewGovernor(bucket.Limit{BytesPerSecond: 4000}, bucket.Limit{}, bucket.SystemClock())
			t.Cleanup(m.gov.Close)
			for range events {
				m.step()
				CheckInvariants(t, m.d)
				m.compare()
			}
			for _, p := range m.live {
				m.stopOne(p)
				m.leave(p)
			}
			m.end()
			bytes, cut, panics = bytes+m.bytes, cut+m.cut, panics+m.panics
		})
	}
	if bytes < 1<<19 || cut < 100 || panics < 20 {
		t.Errorf("a lame history: %d bytes, %d cut, %d panics", bytes, cut, panics)
	}
}
