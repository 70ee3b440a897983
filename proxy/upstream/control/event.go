package control

import (
	"net/netip"
	"time"
)

// Event is something the shell tells. Events that name a writer, endpoint or group that is not known (any more) change nothing: reports may come late, twice or
// out of order.
type Event interface{ event() }

// Resolved answers a Resolve; exactly one for each.
type Resolved struct {
	Group  GroupID
	Answer Answer
	// Addrs of both families; duplicates are dropped, IPv4-mapped ones unmapped. An empty list is Negative whatever Answer says.
	Addrs []netip.AddrPort
	// TTL until the next resolution, held within ResolveMin and ResolveMax. 0: ResolveEvery. Negative: the addresses are literal and are never asked for again.
	TTL time.Duration
	// Cause is the text of a failure for the debug page, without secrets.
	Cause string
}

// Reinit asks for a new generation of a group or of all. Its name is resolved again first. With Fresh no connection is carried over, which a change of TLS
// settings needs.
type Reinit struct {
	Group  GroupID
	Reason Reason
	Fresh  bool
}

// DialDone answers a Dial; exactly one for each, at the latest when the dial's own time limit ends. With a nil Err the connection is usable, TLS included.
type DialDone struct {
	Writer WriterID
	Err    error
}

// WriterLost tells that a connection is gone. Idle is how long it had been unused, for IdleClosed and Unsolicited. It is not sent for a writer that a Close
// named.
type WriterLost struct {
	Writer WriterID
	Why    Loss
	Idle   time.Duration
}

// Load is the batched account of the data plane, sent on the shell's tick when something changed. All numbers are levels or lists, never deltas of bindings, so a
// lost or repeated batch does no harm.
type Load struct {
	Endpoints []EndpointLoad
	// Complete: Moved names every draining writer that moved since the last complete batch. Only a complete batch can end a drain TTL; the shell sends one on
	// each of its ticks while writers drain. Others may be sent between, to tell of Free at once.
	Complete bool
	// Moved are draining writers whose exchange moved bytes: their drain TTL starts again.
	Moved []WriterID
	// Free are draining writers that carry no exchange, sent at the Demote or when the exchange ended; they are closed now.
	Free []WriterID
}

// EndpointLoad is the load of one endpoint. Outstanding is the number of bound exchanges, Peak the highest since the last batch (at least Outstanding counts).
// Moved tells that bytes came from the endpoint since then, so that it is not silent.
type EndpointLoad struct {
	Endpoint          EndpointID
	Outstanding, Peak int
	Moved             bool
}

// Demand tells how many exchanges wait for a writer now: a level. The shell repeats it while it is above zero (each tick) and when it changes.
type Demand struct {
	Group GroupID // AnyGroup: any that serves
	Want  int
}

// Observed is what exchanges said of an endpoint since the last report. Failures are those that no WriterLost or DialDone tells. ServerErrors (500..599)
// are successes of the transport and counted among Successes too. Latency is the mean time to the response head, 0 when unknown.
type Observed struct {
	Endpoint     EndpointID
	Successes    int
	Failures     int
	ServerErrors int
	Latency      time.Duration
}

// ProbeDone answers a Probe; exactly one for each. Any well-formed response head in time is a nil Err.
type ProbeDone struct {
	Endpoint EndpointID
	Err      error
}

// Tick lets time pass. It is needed at Next, and may come more often.
type Tick struct{}

// Configure replaces the settings; runtime state survives. A record that Validate refuses changes nothing and is counted.
type Configure struct{ Settings Settings }

// Drain begins the process's stop: no reinit, refill, probe or resolution any more, coverage closed with CauseDraining; dials for exchanges of running sessions go on.
type Drain struct{}

// Stop ends the pool: every writer is closed. Nothing but late answers may follow.
type Stop struct{}

func (Resolved) event()   {}
func (Reinit) event()     {}
func (DialDone) event()   {}
func (WriterLost) event() {}
func (Load) event()       {}
func (Demand) event()     {}
func (Observed) event()   {}
func (ProbeDone) event()  {}
func (Tick) event()       {}
func (Configure) event()  {}
func (Drain) event()      {}
func (Stop) event()       {}

// Do is what the shell has to do.
type Do uint8

// Commands.
const (
	// DoResolve: look the name of Group up, both families, and answer Resolved.
	DoResolve Do = iota
	// DoDial: connect Writer to Addr, answer DialDone.
	DoDial
	// DoPromote: Writer is for choice from now on.
	DoPromote
	// DoDemote: Writer gets no new exchange; tell by Load.Free when it carries none.
	DoDemote
	// DoClose: close Writer now, whatever it carries; no answer. A writer with an exchange is named only after its drain TTL without movement, or by Stop.
	DoClose
	// DoProbe: send one light request to Endpoint, on a free writer or, with Anew, on a connection of its own, and answer ProbeDone.
	DoProbe
	// DoActivate: Generation of Group became the active one. For logs and metrics; nothing to carry out.
	DoActivate
	// DoRetire: the last writer of Generation is gone. For logs and metrics.
	DoRetire
	dos
)

func (d Do) String() string {
	return [...]string{"resolve", "dial", "promote", "demote", "close", "probe", "activate", "retire", "unknown"}[min(d, dos)]
}

// Command is one order to the shell. Fields that its Do does not name are zero.
type Command struct {
	Do         Do
	Group      GroupID
	Generation GenerationID
	Endpoint   EndpointID
	Writer     WriterID
	Addr       netip.AddrPort // of Endpoint, with DoDial and DoProbe
	Purpose    Purpose        // with DoDial
	Anew       bool           // with DoProbe: on a connection of its own, for connecting is in doubt too
}
