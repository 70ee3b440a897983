package control

// GroupID is the index of a group in the slice given to New.
type GroupID int

// AnyGroup stands in Demand and Reinit for all groups: for Demand those that serve now, since an exchange may run on any of them.
const AnyGroup GroupID = -1

// EndpointID names one address of one group for as long as it is known; it is never given twice.
type EndpointID uint64

// WriterID names one connection, from its Dial on; it is never given twice.
type WriterID uint64

// GenerationID names one endpoint set of one group. Numbers rise over all groups together; 0 is none.
type GenerationID uint64

// Group is one origin name. All groups that are not the fallback are equal: an exchange may run on any of them.
type Group struct {
	Name     string // for the debug page and metric labels; host:port, no secret
	Fallback bool   // the second origin of U8; at most one group
}

// WriterState is the life of a connection: Dialing, Warm, Active, Draining, then it is forgotten (removed).
type WriterState uint8

// States of a writer.
const (
	// Dialing: the shell was told to connect and has not answered.
	Dialing WriterState = iota
	// Warm: connected and not for choice; it belongs to a generation before its activation, or is a shadow.
	Warm
	// Active: for choice.
	Active
	// Draining: no new exchange; the running one finishes.
	Draining
	writerStates
)

func (s WriterState) String() string {
	return [...]string{"dialing", "warm", "active", "draining", "removed"}[min(s, writerStates)]
}

// GenerationState is the life of an endpoint set.
type GenerationState uint8

// States of a generation. Retired ones are forgotten.
const (
	// Bootstrap: the first set of a group that has none active; it opens at minimal coverage.
	Bootstrap GenerationState = iota
	// Warmup: a set that is to replace the active one; at most one in the pool.
	Warmup
	// Current: its writers are for choice.
	Current
	// Outgoing: replaced, or given up before it was activated; its last writers drain.
	Outgoing
	generationStates
)

func (s GenerationState) String() string {
	return [...]string{"bootstrap", "warmup", "active", "drain", "retired"}[min(s, generationStates)]
}

// Health is what traffic and probes say of an endpoint.
type Health uint8

// States of health.
const (
	Healthy Health = iota
	// Degraded: chosen with a quarter of its weight.
	Degraded
	// Quarantined: not chosen, not dialled, only probed.
	Quarantined
)

func (h Health) String() string {
	return [...]string{"healthy", "degraded", "quarantined"}[min(h, Quarantined)]
}

// Purpose is what a dial is for. Each has its own bound.
type Purpose uint8

// Purposes of a dial.
const (
	// Refill closes the difference between floor and writers, warm-up included.
	Refill Purpose = iota
	// OnDemand is for an exchange that waits.
	OnDemand
	// Reserve is a shadow writer of a single-endpoint group.
	Reserve
)

func (p Purpose) String() string { return [...]string{"refill", "demand", "shadow"}[min(p, Reserve)] }

// Cause is a closed enum: why the pool or a group has coverage or has none. For the admission gate, metrics and the readiness page.
type Cause uint8

// Causes, the most hopeful first.
const (
	// CauseCovered: a live writer, or an endpoint that rests (see Resting in the package doc).
	CauseCovered Cause = iota
	// CauseConnecting: endpoints are known and the first dials run.
	CauseConnecting
	// CauseFailing: the only endpoints left accept connections and fail exchanges or probes.
	CauseFailing
	// CauseUnreachable: no endpoint could be connected.
	CauseUnreachable
	// CauseUnresolved: the name was never resolved.
	CauseUnresolved
	// CauseExpired: the name has had no addresses for longer than the last good ones are kept.
	CauseExpired
	// CauseOff: the group is a fallback and the policy is off.
	CauseOff
	// CauseDraining: the process stops.
	CauseDraining
	causes
)

func (c Cause) String() string {
	return [...]string{"covered", "connecting", "failing", "unreachable", "unresolved", "expired", "off", "draining", "unknown"}[min(c, causes)]
}

// Reason is why a generation was built.
type Reason uint8

// Reasons of a generation.
const (
	ReasonStart Reason = iota
	ReasonAddresses
	ReasonSignal
	ReasonSetting
)

func (r Reason) String() string {
	return [...]string{"start", "addresses", "sighup", "setting"}[min(r, ReasonSetting)]
}

// Loss is how a writer ended. Only Broken and TimedOut are failures of the endpoint.
type Loss uint8

// Ways a writer ends.
const (
	// IdleClosed: the peer closed it between exchanges. Normal.
	IdleClosed Loss = iota
	// Unsolicited: bytes that nobody asked for came between exchanges (many origins announce an idle close by a 408). Treated as IdleClosed.
	Unsolicited
	// Spent: its exchange ended well and the connection cannot go on (Connection: close, HTTP/1.0, an upgrade). Normal.
	Spent
	// Aged: the shell closed it itself. Normal.
	Aged
	// Cancelled: the client left in the middle. Says nothing of the endpoint.
	Cancelled
	// Broken: reset, truncated or malformed in an exchange. A failure.
	Broken
	// TimedOut: no response head in time. A failure.
	TimedOut
	losses
)

func (l Loss) String() string {
	return [...]string{"idle_closed", "unsolicited", "spent", "aged", "cancelled", "broken", "timed_out", "unknown"}[min(l, losses)]
}

// Answer is what a resolution brought.
type Answer uint8

// Answers of a resolver.
const (
	// Addresses: at least one address.
	Addresses Answer = iota
	// Negative: the name server says that there are none (NXDOMAIN, NODATA in both families).
	Negative
	// Unanswered: no usable answer (timeout, SERVFAIL, no name server).
	Unanswered
)
