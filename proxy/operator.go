package proxy

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/memory"
)

// operatorParts are what the operator's desk needs of the proxy.
type operatorParts struct {
	queue  *memory.Queue
	wall   func() time.Time
	uptime func() time.Duration
	facts  func() operatorFacts
	// moved returns the payload bytes sent to clients and taken from them since the start.
	moved func() (download, upload uint64)
	// The words of the conflicts that an action may meet, each with the status 409.
	notWaiting, notPausable, notPaused telemetry.Reason
}

// operatorFacts are what the queue itself does not know of its document.
type operatorFacts struct {
	Version            string
	SettingsRevision   int64
	Held, Fed          int // requests of plain clients held in silence, and fed
	BandBytesPerSecond int64
	GateReason         string // in a word, why the upstream's gate is open or shut
	OverQuota          uint64
}

// operator is the desk behind the operator's pages: it implements admin.Operator over the queue. Ids of sessions, and hashes of principals, objects and
// clients, are made with keys of this process: they are the same on every page until it ends, and tell nothing elsewhere. It is safe for concurrent use.
type operator struct {
	operatorParts
	hashes   hashKey
	resolved resolved
	past     history
	between  atomic.Int64 // wall time less the queue's clock, ns: see moment
}

// newOperator returns the desk. Sample must be called on the proxy's tick.
func newOperator(parts operatorParts) *operator {
	o := &operator{operatorParts: parts, hashes: newHashKey()}
	o.between.Store(parts.wall().UnixNano() - int64(parts.queue.Now()))
	return o
}

// clockStep is how far the wall clock may drift from the queue's before moments follow it: below it the same event has the same time on every page.
const clockStep = 500 * time.Millisecond

// follow takes over a step of the wall clock, and returns both clocks.
func (o *operator) follow() (wall time.Time, now time.Duration) {
	wall, now = o.wall(), o.queue.Now()
	between := wall.UnixNano() - int64(now)
	if d := time.Duration(between - o.between.Load()); d.Abs() > clockStep {
		o.between.Store(between)
	}
	return wall, now
}

// moment turns a time of the queue's clock into wall time.
func (o *operator) moment(at time.Duration) admin.Moment {
	return admin.Moment{Time: time.Unix(0, o.between.Load()+int64(at)).UTC()}
}

// Queue returns one snapshot. The queue's lock is held for O(active sessions).
func (o *operator) Queue() admin.QueueDocument {
	_, now := o.follow()
	s, windows, f := o.queue.Overview(), o.queue.Windows(), o.facts()
	pol, c := s.Policy, s.Counts
	doc := admin.QueueDocument{
		At: o.moment(now), Version: f.Version, UptimeSeconds: admin.InSeconds(o.uptime()), Mode: pol.Mode.String(), Strategy: pol.Strategy.String(),
		Admission: live.Admission(pol), SettingsRevision: f.SettingsRevision, Draining: s.Draining,
		Slots: admin.QueueSlots{Configured: pol.Sessions, Open: s.Slots, Elastic: elastic(s.Snapshot), ElasticLimit: max(pol.SessionsElastic, pol.Sessions),
			Reserve: pol.Reserve, Active: s.ActiveTotal()},
		Active: s.ActiveTotal(), Waiting: s.WaitingTotal(), Remembered: s.Paused, Held: f.Held, Fed: f.Fed, OldestWaitSeconds: admin.InSeconds(s.OldestWait),
		ActiveRemainingBytes: s.RemainingBytes, RateBytesPerSecond: s.RateBytesPerSecond, BandBytesPerSecond: f.BandBytesPerSecond,
		Gate: admin.QueueGate{Open: s.GateOpen, Reason: f.GateReason}, TickMilliseconds: milliseconds(s.TickDuration),
		Promises: admin.QueuePromises{Judged: s.Promises.Judged, Within: s.Promises.Within, Held: s.Promises.Held},
		Counts: admin.QueueCounts{
			Queued: c.Queued, Rejoined: c.Rejoined, Started: c.Started, Refused: c.Refused, Completed: c.Ended[queue.ReasonCompleted],
			Idle: c.Ended[queue.ReasonIdle], NoShow: c.Ended[queue.ReasonNoShow], Cancelled: c.Ended[queue.ReasonCancelled],
			Yielded: c.Ended[queue.ReasonYielded], Kicked: c.Kicked, Moved: c.Moved, Paused: c.Paused, Resumed: c.Resumed, RejectedNew: c.RejectedNew,
			WouldWait: c.WouldWait, OverQuota: f.OverQuota,
		},
	}
	for class, of := range [queue.Classes]*admin.ClassQueue{&doc.ByClass.Interactive, &doc.ByClass.Release, &doc.ByClass.Bulk, &doc.ByClass.Background} {
		doc.PausedByOperator += s.Stopped[class]
		doc.WaitingBytes += s.WaitingBytes[class]
		*of = admin.ClassQueue{Active: s.Active[class], Waiting: s.Waiting[class], OldestWaitSeconds: admin.InSeconds(s.OldestWaitOf[class]),
			WaitingBytes: s.WaitingBytes[class], Window: classWindow(windows[class])}
	}
	if s.EmptyKnown {
		in, at := admin.InSeconds(s.EmptyIn), o.moment(now+s.EmptyIn)
		doc.EmptyInSeconds, doc.EmptyAt = &in, &at
	}
	return doc
}

// classWindow is the document of a class's window. A class that has none is open, and 0 outside.
func classWindow(w memory.ClassWindow) admin.ClassWindow {
	doc := admin.ClassWindow{Open: w.Open}
	if !w.Open || w.Outside < queue.WholeShare {
		doc.OutsideShare = float64(w.Outside) / queue.WholeShare
	}
	if w.Changes {
		doc.ChangesAt = &admin.Moment{Time: w.ChangesAt.UTC()}
	}
	return doc
}

// Sessions returns one page. Its total is counted at another moment than the page is read: between two pieces the queue goes on.
func (o *operator) Sessions(q admin.SessionsQuery) (admin.SessionsDocument, error) {
	mark, err := parseMark(q.After)
	if err != nil {
		return admin.SessionsDocument{}, err
	}
	_, now := o.follow()
	query := queue.ListQuery{Principal: o.principal(q.Principal)}
	all := q.State == admin.StateAll
	query.Active = all || q.State == admin.StateActive
	query.Waiting = all || q.State == admin.StateWaiting
	query.Remembered = all || q.State == admin.StateRemembered
	if q.Class != "" {
		class, err := queue.ParseClass(q.Class)
		if err != nil {
			return admin.SessionsDocument{}, &admin.QueryError{Field: "class", Rule: "one of " + strings.Join(admin.Classes[:], ", "), Example: "bulk"}
		}
		query.OneClass, query.Class = true, class
	}
	limit := min(max(q.Limit, 1), admin.MaxSessions)
	page := o.queue.Sessions(query, mark, limit)
	doc := admin.SessionsDocument{Total: page.Matched}
	if page.More || mark != (queue.Mark{}) { // else the page is all there is
		doc.Total = o.queue.CountSessions(query)
	}
	doc.Sessions = make([]admin.SessionDocument, len(page.Sessions))
	rows := o.rows(len(page.Sessions), now, q.Clear)
	for i := range page.Sessions {
		doc.Sessions[i] = rows.session(&page.Sessions[i])
	}
	if page.More {
		next := formatMark(page.Next)
		doc.Next = &next
	}
	return doc, nil
}

// Session returns one session.
func (o *operator) Session(id string, clear bool) (admin.SessionDocument, error) {
	number, known := parseID(id)
	if !known {
		return admin.SessionDocument{}, admin.ErrUnknownSession
	}
	_, now := o.follow()
	s, known := o.queue.Session(number)
	if !known {
		return admin.SessionDocument{}, admin.ErrUnknownSession
	}
	return o.session(&s, now, clear), nil
}

// Act carries out an action.
func (o *operator) Act(id string, a admin.Action) (before, after admin.SessionDocument, err error) {
	number, known := parseID(id)
	if !known {
		return before, after, admin.ErrUnknownSession
	}
	action, err := actionOf(a)
	if err != nil {
		return before, after, err
	}
	_, now := o.follow()
	was, is, err := o.queue.Act(number, action)
	if err != nil {
		return before, after, o.conflict(err)
	}
	before, after = o.session(&was, now, false), o.session(&is, now, false)
	if action.Kind == queue.KickIt {
		after.State, after.Position, after.Why, after.Held = admin.StateEnded, nil, "", 0
		after.StartsAt, after.StartsWindow, after.PausedByOperator = nil, nil, false
	}
	return before, after, nil
}

// actionOf is the queue's name of an action.
func actionOf(a admin.Action) (queue.Action, error) {
	switch a.Kind {
	case admin.Pause:
		return queue.Action{Kind: queue.PauseIt}, nil
	case admin.Resume:
		return queue.Action{Kind: queue.ResumeIt}, nil
	case admin.Kick:
		return queue.Action{Kind: queue.KickIt}, nil
	case admin.Move:
		switch {
		case a.Class != "":
			class, err := queue.ParseClass(a.Class)
			if err == nil {
				return queue.Action{Kind: queue.MoveClass, Class: class}, nil
			}
		case a.To == admin.ToFront:
			return queue.Action{Kind: queue.MoveFront}, nil
		case a.To == admin.ToBack:
			return queue.Action{Kind: queue.MoveBack}, nil
		}
	}
	return queue.Action{}, &admin.QueryError{Field: "to", Rule: "front or back, or a class in its place", Example: admin.ToFront}
}

// conflict words an error of the queue.
func (o *operator) conflict(err error) error {
	switch {
	case errors.Is(err, queue.ErrUnknownSession):
		return admin.ErrUnknownSession
	case errors.Is(err, queue.ErrNotWaiting):
		return &admin.ConflictError{Reason: o.notWaiting, Message: "only a session that waits for a slot can be moved; resume a paused one first"}
	case errors.Is(err, queue.ErrNotPausable):
		return &admin.ConflictError{Reason: o.notPausable, Message: "only waiting sessions and active ones of clients that speak the queue protocol can be paused"}
	case errors.Is(err, queue.ErrNotPaused):
		return &admin.ConflictError{Reason: o.notPaused, Message: "this session is not paused"}
	}
	return err
}

// session is the document of one session; now is the moment that its durations count from.
func (o *operator) session(s *queue.Shown, now time.Duration, clear bool) admin.SessionDocument {
	return o.rows(1, now, clear).session(s)
}

// parseID reads an id as rows writes it.
func parseID(text string) (queue.SessionID, bool) {
	if len(text) != 16 || strings.Trim(text, "0123456789abcdef") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 16, 64)
	return queue.SessionID(n), err == nil
}
