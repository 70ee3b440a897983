package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"github.com/arkvory/sidecar/ticket"
)

// Metrics are the counters of one proxy and the page that shows them. All methods and all fields are safe for concurrent use; the
// fields are set by New and never replaced. A zero Metrics is not usable.
type Metrics struct {
	// ConnectionsAccepted and ConnectionsRefused count client connections.
	ConnectionsAccepted, ConnectionsRefused *metrics.Counter
	// Panics counts contained defects.
	Panics *metrics.Counter
	// WaitingPages counts the pages given to browsers that wait.
	WaitingPages *metrics.Counter
	// UpstreamRetries counts exchanges repeated because of a stale connection, UpstreamReused those begun on a kept-alive one.
	UpstreamRetries, UpstreamReused *metrics.Counter
	// DownloadWait takes the wait of a session from arrival to slot, in seconds.
	DownloadWait *metrics.PrometheusHistogram

	requests       [ReasonCount]*metrics.Counter
	upstreamErrors [ReasonCount]*metrics.Counter
	clientErrors   [ReasonCount]*metrics.Counter
	refusals       [600]*metrics.Counter
	delivered      [directionCount]*metrics.Counter
	relay          [relayPathCount]*metrics.Counter
	dialOK         *metrics.Counter
	dialError      *metrics.Counter
	discarded      [discardCount]*metrics.Counter
	described      [describeCount]*metrics.Counter
	events         [sessionEventCount]*metrics.Counter
	resumes        [resumeCount]*metrics.Counter
	breaks         [breakCount]*metrics.Counter
	tickets        [ticket.Outcomes]*metrics.Counter
	early, late    *metrics.PrometheusHistogram

	set       *metrics.Set
	snapshots Snapshots

	mu   sync.Mutex // one page at a time
	page page       // guarded by mu
}

// New returns the metrics of one proxy with all series at zero. Version is the build's version; bytes that do not belong in one are
// replaced and it is cut at 64 bytes.
func New(version string, s Snapshots) *Metrics {
	m := &Metrics{set: metrics.NewSet(), snapshots: s}
	m.registerCounters()
	m.registerGauges()
	m.set.NewGauge(series(nameBuildInfo, "version", plain(version), "go", plain(runtime.Version())), func() float64 { return 1 })
	return m
}

func (m *Metrics) registerCounters() {
	one := m.set.NewCounter
	m.ConnectionsAccepted, m.ConnectionsRefused = one(nameAccepted), one(nameRefused)
	m.Panics, m.UpstreamRetries, m.UpstreamReused = one(namePanics), one(nameRetries), one(nameReused)

	m.requests = m.reasonCounters(nameRequests, ofRequest)
	m.upstreamErrors = m.reasonCounters(nameUpstreamErrors, ofUpstream)
	m.clientErrors = m.reasonCounters(nameClientErrors, ofClient)
	statuses := m.counters(nameRefusals)
	for i := range m.refusals {
		at := slices.Index(statusNames, strconv.Itoa(i))
		if at < 0 {
			at = len(statusNames) - 1
		}
		m.refusals[i] = statuses[at]
	}

	copy(m.delivered[:], m.counters(nameDelivered))
	copy(m.relay[:], m.counters(nameRelay))
	copy(m.discarded[:], m.counters(nameDiscarded))
	copy(m.described[:], m.counters(nameDescribe))
	copy(m.events[:], m.counters(nameEvents))
	copy(m.resumes[:], m.counters(nameResumes))
	copy(m.breaks[:], m.counters(nameBreaks))
	copy(m.tickets[:], m.counters(nameTickets))
	m.WaitingPages = one(namePages)
	dials := m.counters(nameDials)
	m.dialOK, m.dialError = dials[0], dials[1]

	m.DownloadWait = m.set.NewPrometheusHistogramExt(nameWait, waitBuckets)
	m.early = m.set.NewPrometheusHistogramExt(series(nameStartError, "side", sideNames[0]), startErrorBuckets)
	m.late = m.set.NewPrometheusHistogramExt(series(nameStartError, "side", sideNames[1]), startErrorBuckets)
}

// registerGauges registers what a page reads from the snapshots, totals of other rooms included.
func (m *Metrics) registerGauges() {
	one := func(name string, f func() float64) { m.set.NewGauge(name, f) }
	one(nameRequestsInFlight, func() float64 { return float64(m.page.requests) })
	one(nameOpen, func() float64 { return float64(m.page.connections) })
	one(nameHeld, func() float64 { return float64(m.page.held) })
	m.registerPool()
	m.registerQuotas()
	one(nameDrips, func() float64 { return float64(m.page.drips.Running) })
	one(nameDripStarted, func() float64 { return float64(m.page.drips.Started) })
	one(nameDripCut, func() float64 { return float64(m.page.drips.Cut) })
	one(nameDripBytes, func() float64 { return float64(m.page.drips.Bytes) })
	for i, source := range pieceNames {
		one(series(nameDripPieces, "source", source), func() float64 { return float64(m.page.drips.Pieces[i]) })
	}
	one(nameSlots, func() float64 { return float64(m.page.sessions.Slots) })
	one(nameElastic, func() float64 { return float64(m.page.sessions.Elastic) })
	one(namePromises, func() float64 { return float64(m.page.sessions.PromisesJudged) })
	one(namePromisesWithin, func() float64 { return float64(m.page.sessions.PromisesWithin) })
	one(namePromisesHeld, func() float64 { return float64(m.page.sessions.PromisesHeld) })
	one(nameActive, func() float64 { return float64(m.page.sessions.Active) })
	one(nameOldest, func() float64 { return m.page.sessions.OldestWaitSeconds })
	one(nameTick, func() float64 { return m.page.sessions.TickSeconds })
	one(series(nameConnections, "state", connectionNames[0]), func() float64 { return float64(m.page.idle) })
	one(series(nameConnections, "state", connectionNames[1]), func() float64 { return float64(m.page.busy) })
	for i, file := range fileNames {
		one(series(nameFileFaulty, "file", file), func() float64 {
			if m.page.faulty[i] {
				return 1
			}
			return 0
		})
	}
	for i, mode := range modeNames {
		one(series(nameMode, "mode", mode), func() float64 { return lit(m.page.sessions.Mode == i) })
	}
	for i, action := range actionNames {
		one(series(nameActions, "action", action), func() float64 { return float64(m.page.sessions.Actions[i]) })
	}
	one(nameRejectedNew, func() float64 { return float64(m.page.sessions.RejectedNew) })
	one(nameWouldWait, func() float64 { return float64(m.page.sessions.WouldWait) })
	one(nameWouldWaitFor, func() float64 { return m.page.sessions.WouldWaitSeconds })
	for c := range ClassCount {
		one(series(namePaused, "class", classNames[c]), func() float64 { return float64(m.page.sessions.Paused[c]) })
		one(series(nameWaiting, "class", classNames[c]), func() float64 { return float64(m.page.sessions.Waiting[c]) })
	}
	for d := range directionCount {
		a, b := &m.page.admission[d], &m.page.bandwidth[d]
		each := func(name string, f func() float64) { one(series(name, "direction", d.String()), f) }
		each(nameAdmissionActive, func() float64 { return float64(a.Active) })
		each(nameAdmissionWaiting, func() float64 { return float64(a.Waiting) })
		each(nameAdmissionCapacity, func() float64 { return float64(a.Capacity) })
		each(nameAdmissionRejected, func() float64 { return float64(a.Rejected) })
		each(nameAdmissionTimedOut, func() float64 { return float64(a.TimedOut) })
		each(nameAdmissionCancel, func() float64 { return float64(a.Cancelled) })
		each(nameRate, func() float64 { return float64(b.BytesPerSecond) })
		each(nameBandwidthWaiting, func() float64 { return float64(b.Waiting) })
		each(nameGranted, func() float64 { return float64(b.GrantedBytes) })
	}
}

// counters registers every series of a family with one label, in the order of its values.
func (m *Metrics) counters(name string) []*metrics.Counter {
	l := byName[name].labels[0]
	all := make([]*metrics.Counter, len(l.values))
	for i, v := range l.values {
		all[i] = m.set.NewCounter(series(name, l.name, v))
	}
	return all
}

// reasonCounters registers a family over the reasons of one side. Reasons of other sides share the counter of Unknown.
func (m *Metrics) reasonCounters(name string, s side) [ReasonCount]*metrics.Counter {
	var byReason [ReasonCount]*metrics.Counter
	all := m.counters(name)
	for r, next := 0, 0; r < ReasonCount; r++ {
		byReason[r] = all[0] // namesOf begins with unknown
		if reasons[r].side&s != 0 {
			byReason[r] = all[next]
			next++
		}
	}
	return byReason
}

// Request counts the end of a request.
func (m *Metrics) Request(r Reason) { m.requests[inside(r)].Inc() }

// UpstreamError counts a fault on the upstream's side; a reason of another side counts as unknown.
func (m *Metrics) UpstreamError(r Reason) { m.upstreamErrors[inside(r)].Inc() }

// ClientError counts a fault on the client's side; a reason of another side counts as unknown.
func (m *Metrics) ClientError(r Reason) { m.clientErrors[inside(r)].Inc() }

func inside(r Reason) Reason {
	if int(r) >= ReasonCount {
		return Unknown
	}
	return r
}

// Refusal counts an answer that the proxy gave itself; a status it never gives counts as other.
func (m *Metrics) Refusal(status int) {
	if status < 0 || status >= len(m.refusals) {
		status = 0
	}
	m.refusals[status].Inc()
}

// Delivered adds n >= 0 payload bytes written to their receiver.
func (m *Metrics) Delivered(d Direction, n int64) {
	if d < directionCount && n > 0 {
		m.delivered[d].AddInt64(n)
	}
}

// DeliveredBytes returns the payload bytes delivered in a direction since the start.
func (m *Metrics) DeliveredBytes(d Direction) uint64 { return m.delivered[d].Get() }

// Relayed adds n >= 0 payload bytes moved by a mechanism.
func (m *Metrics) Relayed(p RelayPath, n int64) {
	if p < relayPathCount && n > 0 {
		m.relay[p].AddInt64(n)
	}
}

// Dialled counts an attempt to connect to the upstream; a nil error is a success.
func (m *Metrics) Dialled(err error) {
	if err != nil {
		m.dialError.Inc()
		return
	}
	m.dialOK.Inc()
}

// Discarded counts an upstream connection that is not used again.
func (m *Metrics) Discarded(d Discard) {
	if d < discardCount {
		m.discarded[d].Inc()
	}
}

// Described counts an object whose size and validator were learned.
func (m *Metrics) Described(d Describe) {
	if d < describeCount {
		m.described[d].Inc()
	}
}

// Resumed counts a body that was to be resumed.
func (m *Metrics) Resumed(r Resume) {
	if r < resumeCount {
		m.resumes[r].Inc()
	}
}

// Broke counts a body that ended in the middle at the upstream.
func (m *Metrics) Broke(b Break) {
	if b < breakCount {
		m.breaks[b].Inc()
	}
}

// Ticket counts a ticket that a client returned.
func (m *Metrics) Ticket(o ticket.Outcome) {
	if int(o) < ticket.Outcomes {
		m.tickets[o].Inc()
	}
}

// SessionEvent counts a step in the life of a download session.
func (m *Metrics) SessionEvent(e SessionEvent) {
	if e < sessionEventCount {
		m.events[e].Inc()
	}
}

// SessionEvents counts n steps of one kind at once.
func (m *Metrics) SessionEvents(e SessionEvent, n uint64) {
	if e < sessionEventCount && n > 0 {
		m.events[e].AddInt64(int64(n))
	}
}

// StartError records how far a session's real start was from the promised one, in seconds: negative early, else late.
func (m *Metrics) StartError(seconds float64) {
	if seconds < 0 {
		m.early.Update(-seconds)
		return
	}
	m.late.Update(seconds)
}

// Totals are counters that the readiness document repeats.
type Totals struct {
	// Dials are successful upstream connections.
	Dials, Reused, Discarded, Retries uint64
	// Relay holds payload bytes by mechanism, keyed by its label value.
	Relay map[string]uint64
	// Events holds session events, keyed by label value.
	Events map[string]uint64
}

// Totals returns the counters at this moment; they are read one after another, not as one cut.
func (m *Metrics) Totals() Totals {
	t := Totals{Dials: m.dialOK.Get(), Reused: m.UpstreamReused.Get(), Retries: m.UpstreamRetries.Get(),
		Relay: make(map[string]uint64, len(m.relay)), Events: make(map[string]uint64, len(m.events))}
	for _, c := range m.discarded {
		t.Discarded += c.Get()
	}
	for i, c := range m.relay {
		t.Relay[relayPathNames[i]] = c.Get()
	}
	for i, c := range m.events {
		t.Events[sessionEventNames[i]] = c.Get()
	}
	return t
}

// WriteTo writes the page in the Prometheus text format: the product's families with HELP and TYPE, then the process's own. It
// returns the bytes written and the writer's error. Pages are made one at a time; writing to w happens outside the lock.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	m.render(&b)
	metrics.WriteProcessMetrics(&b)
	metrics.WriteFDMetrics(&b)
	return b.WriteTo(w)
}

// render writes the product's families with their HELP and TYPE lines.
func (m *Metrics) render(b *bytes.Buffer) {
	var raw bytes.Buffer
	m.collect(&raw)
	current := ""
	for line := range bytes.Lines(raw.Bytes()) {
		if line[0] == '#' { // the library's own metadata, when another user of it in this process switched that on
			continue
		}
		if f := familyOf(line); f != nil && f.name != current {
			current = f.name
			fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		}
		b.Write(line)
	}
}

// collect takes the snapshots once and lets the set print them.
func (m *Metrics) collect(raw *bytes.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.page = m.snapshots.take()
	m.set.WritePrometheus(raw)
}

// familyOf returns the family of a sample line.
func familyOf(line []byte) *family {
	end := bytes.IndexAny(line, "{ ")
	if end < 0 {
		return nil
	}
	name := string(line[:end])
	if f, ok := byName[name]; ok {
		return f
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if f, ok := byName[strings.TrimSuffix(name, suffix)]; ok && f.kind == histogram {
			return f
		}
	}
	return nil
}

// series returns name{label="value",...}; the values are closed lists or made plain, so none needs escaping.
func series(name string, labelsAndValues ...string) string {
	var b strings.Builder
	b.WriteString(name)
	sep := byte('{')
	for i := 0; i+1 < len(labelsAndValues); i += 2 {
		b.WriteByte(sep)
		fmt.Fprintf(&b, "%s=%q", labelsAndValues[i], labelsAndValues[i+1])
		sep = ','
	}
	b.WriteByte('}')
	return b.String()
}

// plain makes a version fit for a label: letters, digits and a few marks, at most 64 bytes.
func plain(s string) string {
	if s == "" {
		return "unknown"
	}
	s = s[:min(len(s), 64)]
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || strings.ContainsRune("._+-:", r)) {
			return r
		}
		return '_'
	}, s)
}
