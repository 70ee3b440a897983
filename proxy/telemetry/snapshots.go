package telemetry

// Snapshots are the functions from which a page reads what other rooms already know. Each may be nil (reads as zero), is called
// once a page from the scraping goroutine, must be safe beside the room's own work and must return quickly.
type Snapshots struct {
	// RequestsInFlight counts requests between their head and the end of their response.
	RequestsInFlight func() int
	// ConnectionsOpen counts open client connections.
	ConnectionsOpen func() int
	// HeldRequests counts plain clients' requests that wait inside the proxy (Q11).
	HeldRequests func() int
	// Sessions describes the download queue.
	Sessions func() Sessions
	// Drips describes the plain clients that are fed while they wait.
	Drips func() Drips
	// Admission describes the per-request admission of one direction.
	Admission func(Direction) Admission
	// Bandwidth describes the token bucket of one direction.
	Bandwidth func(Direction) Bandwidth
	// FilesFaulty tells of the principals and the clients file whether it cannot be used as it stands.
	FilesFaulty func() (principals, clients bool)
	// UpstreamConnections counts kept-alive and exchanging upstream connections.
	UpstreamConnections func() (idle, busy int)
	// Quotas describes the quotas of principals.
	Quotas func() Quotas
	// Upstream describes the upstream pool.
	Upstream func() Upstream
}

// Upstream is the state of the upstream pool at one moment. Arrays are in the order of their label; Generations, Fallbacks, Probes and Resolves are totals.
type Upstream struct {
	Writers     [4]int // dialing, warm, active, draining
	Floor       int
	Waiting     int // exchanges
	Covered     bool
	Endpoints   [3]int // healthy, degraded, quarantined
	Generation  uint64
	Generations [4]int64 // begun, activated, retired, abandoned
	Fallback    bool
	Fallbacks   [2]int64 // in, out
	Probes      [2]int64 // ok, error
	Resolves    [2]int64
}

// Sessions is the state of the download queue at one moment.
type Sessions struct {
	// Slots are those in force, Elastic how many of them are open for now only.
	Slots, Elastic int
	// Active sessions hold a slot.
	Active int
	// Waiting sessions by the class they wait in.
	Waiting [ClassCount]int
	// Paused are those of them that an operator paused.
	Paused [ClassCount]int
	// Mode is the operator's mode in the order of its label; Actions are moves, pauses, resumes and kicks carried out.
	Mode    int
	Actions [4]uint64
	// RejectedNew counts downloads refused in mode reject-new, WouldWait those that dry-run let through, WouldWaitSeconds the waits of these.
	RejectedNew, WouldWait uint64
	WouldWaitSeconds       float64
	// OldestWaitSeconds is the longest wait among them, 0 when nobody waits.
	OldestWaitSeconds float64
	// PromisesJudged counts judged promises of a start, PromisesWithin those that came true, PromisesHeld those not broken by lateness.
	PromisesJudged, PromisesWithin, PromisesHeld uint64
	// TickSeconds is how long the last tick took.
	TickSeconds float64
}

// Drips is the state of the clients that are fed while they wait; all but Running are totals of the process. Pieces are in the order of their label: fetched
// from the origin, found in the store, failed.
type Drips struct {
	Running             int
	Started, Cut, Bytes uint64
	Pieces              [3]uint64
}

// Admission is the state of one direction's per-request admission; the totals are of the process.
type Admission struct {
	Active, Waiting, Capacity     int
	Rejected, TimedOut, Cancelled uint64
}

// Bandwidth is the state of one direction's token bucket.
type Bandwidth struct {
	// BytesPerSecond is the ceiling, 0 when off.
	BytesPerSecond int64
	// Waiting is the number of quanta that wait for tokens.
	Waiting int
	// GrantedBytes is the total of bytes granted, repeated and cancelled ones included.
	GrantedBytes uint64
}

// page is what the gauges of one page read; it is filled once a page (I4).
type page struct {
	requests, connections, held int
	sessions                    Sessions
	drips                       Drips
	admission                   [directionCount]Admission
	bandwidth                   [directionCount]Bandwidth
	idle, busy                  int
	upstream                    Upstream
	quotas                      Quotas
	faulty                      [2]bool // in the order of fileNames
}

func (s *Snapshots) take() page {
	var p page
	p.requests = call(s.RequestsInFlight)
	p.connections = call(s.ConnectionsOpen)
	p.held = call(s.HeldRequests)
	if s.Sessions != nil {
		p.sessions = s.Sessions()
	}
	if s.Drips != nil {
		p.drips = s.Drips()
	}
	for d := range directionCount {
		if s.Admission != nil {
			p.admission[d] = s.Admission(d)
		}
		if s.Bandwidth != nil {
			p.bandwidth[d] = s.Bandwidth(d)
		}
	}
	if s.UpstreamConnections != nil {
		p.idle, p.busy = s.UpstreamConnections()
	}
	if s.Quotas != nil {
		p.quotas = s.Quotas()
	}
	if s.Upstream != nil {
		p.upstream = s.Upstream()
	}
	if s.FilesFaulty != nil {
		p.faulty[0], p.faulty[1] = s.FilesFaulty()
	}
	return p
}

func call(f func() int) int {
	if f == nil {
		return 0
	}
	return f()
}
