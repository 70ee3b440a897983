package drip

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/arkvory/sidecar/bucket"
)

// Times and sizes of the rule.
const (
	Step        = 250 * time.Millisecond // between two ticks
	Period      = 4 * time.Second        // between two visits of a drip: some clients give up after 5 s of nothing at the end of a chain of proxies
	PieceBytes  = 16 << 10
	visits      = int(Period / Step)
	leastFetch  = 256                         // of a fetch for one drip alone
	mostFetch   = 2 << 10                     // of the same: what one holds while it waits
	aloneVisits = 2                           // that such a fetch feeds
	lasting     = 16                          // of what a drip has, the part that it gets in a visit while no origin can be reached
	leastHalved = 8 * PieceBytes              // smallest store of which a half is kept for objects that several share
	jobsEach    = 64                          // fetches that may wait for each fetcher
	each        = int64(Period / time.Second) // drips that a byte per second of budget covers: each needs a byte a visit
)

// Errors of a Piece; every other one is worth another try.
var (
	// ErrChanged says that the object is another one than that of the validator.
	ErrChanged = errors.New("object changed")
	// ErrRefused says that the origin does not give the object to this client any more.
	ErrRefused = errors.New("origin refuses the object")
)

// Piece is one fetch of bytes. It runs on a goroutine of the dripper, once.
type Piece interface {
	// Fetch fills p whole with the bytes it was made for, or returns why not. It ends early when ctx does.
	Fetch(ctx context.Context, p []byte) error
}

// Source makes fetches for one drip. It is called under the dripper's lock and must not block; what it returns must not use what belongs to the exchange.
type Source interface {
	// Piece returns the fetch of the bytes first to last, both inclusive.
	Piece(first, last int64) Piece
}

// Sink takes the bytes. It is called under the dripper's lock and must not block.
type Sink interface {
	TryWrite(p []byte) (int, error)
	// Cut ends the client's connection: its response cannot be brought to its end.
	Cut()
}

// Settings of a Dripper.
type Settings struct {
	BytesPerSecond int64 // of one client, at least 1
	Limit          int   // clients at once
	PerPrincipal   int   // of them of one principal; 0 = no limit of its own
	StoreBytes     int   // memory for shared pieces
	Fetchers       int   // fetches at once, at least 1
	// Budget returns the bytes per second that all drips together may take now. It is called under the lock and must not block; nil = no such limit.
	Budget func() int64
	// Shut reports whether no origin can be reached now: what the drips have is made to last. It is called under the lock and must not block; nil = never.
	Shut func() bool
	// OnPanic is told of a contained panic of a fetch, or, under the lock, of a sink or source: it must not call the dripper. nil = nobody.
	OnPanic func(value any)
}

// Validate returns what is wrong with the settings.
func (s Settings) Validate() error {
	var faults []error
	if s.BytesPerSecond < 1 {
		faults = append(faults, fmt.Errorf("drip rate %d bytes/s: must be at least 1, for example 1024", s.BytesPerSecond))
	}
	if s.Limit < 0 || s.PerPrincipal < 0 {
		faults = append(faults, fmt.Errorf("drip limits %d and %d: must not be negative, for example 4096", s.Limit, s.PerPrincipal))
	}
	if s.StoreBytes < 0 || s.Fetchers < 1 {
		faults = append(faults, fmt.Errorf("drip store of %d bytes with %d fetchers: must not be negative, and at least one fetcher", s.StoreBytes, s.Fetchers))
	}
	return errors.Join(faults...)
}

// Dripper feeds the waiting responses of one process. Safe for concurrent use; mu guards everything below it and is a leaf but for what Sink, Source,
// Budget and the governor take.
type Dripper struct {
	set Settings

	mu      sync.Mutex
	now     time.Duration
	joined  int
	by      map[string]int   // joined of each principal, none at zero
	of      map[[32]byte]int // drips in the wheel of each object, none at zero
	wheel   [visits][]*Drip
	at      int
	running int     // drips in the wheel
	soon    []*Drip // to be looked at on the next tick
	scratch []*Drip
	rate    float64 // bytes per second of each drip
	shut    bool
	opened  time.Duration // when an origin could be reached again
	flow    float64       // integral of rate: what a drip would have been due since New
	budget  int64
	store   store
	jobs    []job
	workers int
	closed  bool
	counts  Counts

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Counts are totals since New.
type Counts struct {
	Bytes     uint64 // written to clients
	Started   uint64
	Cut       uint64 // ended by ErrChanged, ErrRefused or a failing sink
	Fetched   uint64 // pieces
	Failed    uint64 // fetches
	Shared    uint64 // pieces that a drip found in the store
	FetchedBy uint64 // bytes of the pieces
}

// Snapshot is the state at one moment.
type Snapshot struct {
	Counts
	Joined, Running, Limit int
	BytesPerSecond         float64 // of one drip now
	StoreBytes             int
}

// New returns a dripper with nobody in it, or the settings' faults.
func New(set Settings) (*Dripper, error) {
	if err := set.Validate(); err != nil {
		return nil, fmt.Errorf("cannot create the dripper: %w", err)
	}
	d := &Dripper{set: set, by: map[string]int{}, of: map[[32]byte]int{}, rate: float64(set.BytesPerSecond)}
	d.store = newStore(set.StoreBytes)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d, nil
}

// Join reserves a place for a response of a principal, nil when there is none: the limit is reached, the principal's is, the budget does not cover one more, or the
// dripper is closed. Its owner calls Leave once.
func (d *Dripper) Join(principal string) *Drip {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.joined >= d.limitLocked() || d.set.PerPrincipal > 0 && d.by[principal] >= d.set.PerPrincipal {
		return nil
	}
	d.joined++
	d.by[principal]++
	return &Drip{dripper: d, principal: principal, slot: -1}
}

// limitLocked is how many drips there may be: each needs a byte a visit at least.
func (d *Dripper) limitLocked() int {
	if d.set.Budget == nil {
		return d.set.Limit
	}
	d.budget = max(d.set.Budget(), 0)
	if d.budget > int64(d.set.Limit)/each {
		return d.set.Limit // not multiplied: a budget without bound is a large number
	}
	return int(d.budget * each)
}

// Snapshot returns the state.
func (d *Dripper) Snapshot() Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Snapshot{Counts: d.counts, Joined: d.joined, Running: d.running, Limit: d.limitLocked(), BytesPerSecond: d.rate, StoreBytes: d.store.bytes}
}

// Tick visits the drips whose time has come, and those that waited for a piece or a grant. It is called about every Step; a time that goes back counts as one that
// stands, and after a longer pause all that have come due in it are visited.
func (d *Dripper) Tick(now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.now
	d.now = max(before, now)
	d.rate = float64(d.set.BytesPerSecond)
	if d.set.Budget != nil {
		d.budget = max(d.set.Budget(), 0)
		d.rate = min(d.rate, float64(d.budget)/float64(max(d.joined, 1)))
	}
	d.flow += d.rate * (d.now - before).Seconds()
	if d.set.Shut != nil {
		if shut := d.set.Shut(); shut != d.shut {
			d.shut, d.opened = shut, d.now
		}
	}
	again := d.soon
	d.soon = d.scratch[:0]
	for _, x := range again {
		x.hurries = false
		d.visit(x)
	}
	clear(again)
	d.scratch = again[:0]
	for range min(d.now/Step-before/Step, time.Duration(visits)) { // more than one when ticks were lost
		d.at = (d.at + 1) % visits
		for i := len(d.wheel[d.at]) - 1; i >= 0; i-- { // a visit may take its drip out, and puts none in
			d.visit(d.wheel[d.at][i])
		}
	}
}

func (d *Dripper) visit(x *Drip) {
	if x.slot < 0 || x.hurries {
		return
	}
	defer d.contain(x)
	if x.step(d.now) && x.slot >= 0 {
		x.hurries = true
		d.soon = append(d.soon, x)
	}
}

// contain cuts a drip whose sink, source or observer panicked: what its client has got is not known any more.
func (d *Dripper) contain(x *Drip) {
	v := recover()
	if v == nil {
		return
	}
	if d.set.OnPanic != nil {
		d.set.OnPanic(v)
	}
	if x.slot >= 0 {
		x.cut()
	}
}

// Close ends all fetches and waits for their goroutines. Drips stop getting bytes; their owners still leave.
func (d *Dripper) Close() {
	d.mu.Lock()
	d.closed = true
	d.jobs = nil
	d.mu.Unlock()
	d.cancel()
	d.wg.Wait()
}

// Start is what a drip begins with.
type Start struct {
	Object      [32]byte // name of object and validator: who has the same one shares pieces
	First, Last int64    // the bytes that the response carries, both inclusive
	SizeBytes   int64    // of the whole object
	Sink        Sink
	Source      Source
	Pace        *bucket.Stream // nil = not paced; nobody else uses it until Stop
	Sent        func(n int64)  // told of every byte written, under the lock; nil = nobody
	// Piece holds bytes of the object from PieceFirst on, an aligned piece that the owner has fetched; nil = none. It is copied.
	Piece      []byte
	PieceFirst int64
}
