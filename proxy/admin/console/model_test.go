package console_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/telemetry"
)

// Sizes of the model.
const (
	modelSessions = 200
	modelSlots    = 17
	mib           = int64(1) << 20
)

// person is one session of the model.
type person struct {
	admin.SessionDocument
	clear, object string
}

// floor is a queue that the tests move by hand: an Operator without clients. Each move sends some bytes, completes what is sent, starts who is next
// and lets newcomers in, so that there are always modelSessions.
type floor struct {
	mu      sync.Mutex
	now     time.Time
	serial  int
	active  []*person
	waiting []*person
	moves   int
	acted   []string // what was done, as "kick 0000000000000001"
	clears  int      // looks at clear ids
	refuse  error    // of Act
	mode    string
	closed  bool // the gate
	drain   bool
	asked   chan struct{} // closed and renewed on each Queue
}

func newFloor() *floor {
	f := &floor{now: time.Now().Truncate(time.Second), mode: "normal", asked: make(chan struct{})}
	for range modelSessions {
		f.join()
	}
	f.start()
	return f
}

func (f *floor) join() {
	f.serial++
	n := f.serial
	class := admin.Classes[[...]int{1, 2, 2, 1, 3, 0, 2, 1}[n%8]]
	size := (int64(n*37%90) + 3) * 64 * mib
	wait := time.Duration(max(0, modelSessions-n)) * 14 * time.Second
	p := &person{clear: "user:team-" + strconv.Itoa(n%23), object: fmt.Sprintf("store.example/images/build-%d/layer-%d.tar.zst", n/9, n%9)}
	p.SessionDocument = admin.SessionDocument{ID: fmt.Sprintf("%016x", 0x9f3c0000a100+n), State: admin.StateWaiting, Principal: fmt.Sprintf("h:%016x", n%23*7919+0x5a17c0de0000), Object: fmt.Sprintf("h:%016x", n*104729+0xbeef00000000),
		Client: fmt.Sprintf("h:%016x", n*31), Class: class, StandsIn: class, Protocol: n%3 != 0, SizeBytes: &size, ArrivedAt: admin.Moment{Time: f.now.Add(-wait)}, Why: admin.WhySlots}
	if class == "bulk" && n%16 == 2 {
		p.StandsIn = "release"
	}
	if n%11 == 0 {
		p.SizeBytes = nil
	}
	f.waiting = append(f.waiting, p)
}

func (f *floor) start() {
	for len(f.active) < modelSlots && len(f.waiting) > 0 {
		at := slices.IndexFunc(f.waiting, func(p *person) bool { return !p.PausedByOperator })
		if at < 0 {
			return
		}
		p := f.waiting[at]
		f.waiting = slices.Delete(f.waiting, at, at+1)
		p.State, p.Why, p.Position, p.StartsAt, p.StartsWindow, p.StartedAt = admin.StateActive, "", nil, nil, nil, admin.NullMoment(f.now)
		p.WaitedSeconds = admin.InSeconds(f.now.Sub(p.ArrivedAt.Time))
		f.active = append(f.active, p)
	}
}

// move lets two seconds pass.
func (f *floor) move() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moves++
	f.now = f.now.Add(2 * time.Second)
	for i, p := range f.active {
		p.SentBytes += int64(40+i*11) * mib
	}
	f.active = slices.DeleteFunc(f.active, func(p *person) bool { return p.SizeBytes != nil && p.SentBytes >= *p.SizeBytes || p.SentBytes > 6<<30 })
	for len(f.active)+len(f.waiting) < modelSessions+modelSlots {
		f.join()
	}
	f.start()
}

func (f *floor) show(p *person, clear bool) admin.SessionDocument {
	d := p.SessionDocument
	if p.State == admin.StateWaiting {
		place := slices.Index(f.waiting, p) + 1
		at := f.now.Add(time.Duration(place) * 9 * time.Second)
		d.Position, d.WaitedSeconds = &place, admin.InSeconds(f.now.Sub(p.ArrivedAt.Time))
		d.StartsAt, d.StartsWindow = admin.NullMoment(at), &admin.StartsWindow{Earliest: admin.Moment{Time: at.Add(-time.Minute)}, Latest: admin.Moment{Time: at.Add(2 * time.Minute)}}
		switch {
		case p.PausedByOperator:
			d.Why, d.StartsAt, d.StartsWindow = admin.WhyOperator, nil, nil
		case place <= 2:
			d.Why = admin.WhyTurn
		case place%7 == 0:
			d.Why = admin.WhyShare
		}
	}
	if clear {
		d.Principal, d.Object, d.Client = p.clear, p.object, "192.0.2."+strconv.Itoa(len(p.object)%250)
	}
	return d
}

func (f *floor) Queue() admin.QueueDocument {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.asked)
	f.asked = make(chan struct{})
	d := admin.QueueDocument{At: admin.Moment{Time: f.now}, UptimeSeconds: 93784, Mode: f.mode, Strategy: "ordered", Admission: "sessions", SettingsRevision: 3, Draining: f.drain,
		Slots:  admin.QueueSlots{Configured: 16, Open: modelSlots, Elastic: 1, ElasticLimit: 32, Reserve: 1, Active: len(f.active)},
		Active: len(f.active), Waiting: len(f.waiting), Remembered: 4, Held: 12, Fed: 5, RateBytesPerSecond: 112_400_000 + int64(f.moves%5)*900_000, BandBytesPerSecond: 125_000_000,
		Gate: admin.QueueGate{Open: !f.closed, Reason: "covered"}, TickMilliseconds: 0.42, Promises: admin.QueuePromises{Judged: 1284, Within: 1197, Held: 1271},
		Counts: admin.QueueCounts{Queued: 1911, Rejoined: 37, Started: 1702, Completed: 1655, Refused: 3, Idle: 21, NoShow: 18, Cancelled: 44, Yielded: 6, Kicked: 2, Moved: 5, Paused: 1, Resumed: 1}}
	if f.closed {
		d.Gate.Reason = "upstream_unreachable"
	}
	of := map[string]*admin.ClassQueue{"interactive": &d.ByClass.Interactive, "release": &d.ByClass.Release, "bulk": &d.ByClass.Bulk, "background": &d.ByClass.Background}
	for name, c := range of {
		c.Window.Open = name != "bulk"
	}
	d.ByClass.Bulk.Window.OutsideShare, d.ByClass.Bulk.Window.ChangesAt = 0.25, admin.NullMoment(f.now.Add(95*time.Minute))
	d.ByClass.Background.Window.ChangesAt = admin.NullMoment(f.now.Add(30 * time.Hour))
	for _, p := range f.active {
		of[p.Class].Active++
		if p.SizeBytes != nil {
			d.ActiveRemainingBytes += max(0, *p.SizeBytes-p.SentBytes)
		}
	}
	for _, p := range f.waiting {
		c, waited := of[p.Class], admin.InSeconds(f.now.Sub(p.ArrivedAt.Time))
		c.Waiting++
		c.OldestWaitSeconds, d.OldestWaitSeconds = max(c.OldestWaitSeconds, waited), max(d.OldestWaitSeconds, waited)
		if p.SizeBytes != nil {
			c.WaitingBytes += *p.SizeBytes
			d.WaitingBytes += *p.SizeBytes
		}
		if p.PausedByOperator {
			d.PausedByOperator++
		}
	}
	empty := admin.Seconds(float64(d.WaitingBytes) / float64(d.RateBytesPerSecond))
	d.EmptyInSeconds, d.EmptyAt = &empty, admin.NullMoment(f.now.Add(time.Duration(float64(empty)*float64(time.Second))))
	return d
}

func (f *floor) History(minutes int) admin.HistoryDocument {
	f.mu.Lock()
	defer f.mu.Unlock()
	step := max(5, minutes*60/admin.MaxSamples)
	count := minutes * 60 / step
	d := admin.HistoryDocument{StepSeconds: step, Until: admin.Moment{Time: f.now}}
	wave := func(i, period, low, high int) int64 { // a triangle
		at := i % period
		return int64(low + (high-low)*2*min(at, period-at)/period)
	}
	for i := range count {
		if i < count/12 { // the process was not there yet
			for _, s := range []*admin.Series{&d.BytesPerSecond, &d.UploadBytesPerSecond, &d.Active, &d.Slots, &d.Waiting.Interactive, &d.Waiting.Release, &d.Waiting.Bulk, &d.Waiting.Background, &d.Started, &d.Completed} {
				*s = append(*s, admin.NoSample)
			}
			continue
		}
		d.BytesPerSecond = append(d.BytesPerSecond, wave(i, 97, 92_000_000, 121_000_000)+wave(i, 7, 0, 5_000_000))
		d.UploadBytesPerSecond = append(d.UploadBytesPerSecond, wave(i, 61, 4_000_000, 21_000_000))
		d.Active = append(d.Active, wave(i, 43, 14, 17))
		d.Slots = append(d.Slots, 16+wave(i, 211, 0, 2))
		d.Waiting.Interactive = append(d.Waiting.Interactive, wave(i, 31, 0, 9))
		d.Waiting.Release = append(d.Waiting.Release, wave(i, 173, 21, 78))
		d.Waiting.Bulk = append(d.Waiting.Bulk, wave(i, 301, 44, 90))
		d.Waiting.Background = append(d.Waiting.Background, wave(i, 401, 10, 31))
		d.Started, d.Completed = append(d.Started, 1), append(d.Completed, 1)
	}
	return d
}

func (f *floor) Sessions(q admin.SessionsQuery) (admin.SessionsDocument, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.Clear {
		f.clears++
	}
	var all []*person
	if q.State == admin.StateActive || q.State == admin.StateAll {
		all = append(all, f.active...)
	}
	if q.State == admin.StateWaiting || q.State == admin.StateAll {
		all = append(all, f.waiting...)
	}
	all = slices.DeleteFunc(all, func(p *person) bool {
		return q.Class != "" && p.Class != q.Class || q.Principal != "" && q.Principal != p.clear && q.Principal != p.Principal
	})
	d := admin.SessionsDocument{Total: len(all)}
	from := 0
	if q.After != "" {
		var err error
		if from, err = strconv.Atoi(q.After); err != nil {
			return d, &admin.QueryError{Field: "after", Rule: "the next of the page before"}
		}
	}
	for _, p := range all[min(from, len(all)):min(from+q.Limit, len(all))] {
		d.Sessions = append(d.Sessions, f.show(p, q.Clear))
	}
	if from+q.Limit < len(all) {
		next := strconv.Itoa(from + q.Limit)
		d.Next = &next
	}
	return d, nil
}

func (f *floor) find(id string) *person {
	for _, p := range slices.Concat(f.active, f.waiting) {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func (f *floor) Session(id string, clear bool) (admin.SessionDocument, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.find(id)
	if p == nil {
		return admin.SessionDocument{}, admin.ErrUnknownSession
	}
	if clear {
		f.clears++
	}
	return f.show(p, clear), nil
}

func (f *floor) Act(id string, a admin.Action) (before, after admin.SessionDocument, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.find(id)
	if p == nil {
		return before, after, admin.ErrUnknownSession
	}
	if f.refuse != nil {
		return before, after, f.refuse
	}
	before = f.show(p, false)
	f.acted = append(f.acted, string(a.Kind)+a.To+a.Class+" "+id)
	switch at := slices.Index(f.waiting, p); a.Kind {
	case admin.Pause:
		p.PausedByOperator = true
	case admin.Resume:
		p.PausedByOperator = false
	case admin.Kick:
		f.waiting = slices.DeleteFunc(f.waiting, func(one *person) bool { return one == p })
		f.active = slices.DeleteFunc(f.active, func(one *person) bool { return one == p })
		after = before
		after.State = admin.StateEnded
		return before, after, nil
	case admin.Move:
		if a.Class != "" {
			p.Class, p.StandsIn = a.Class, a.Class
			break
		}
		f.waiting = slices.Delete(f.waiting, at, at+1)
		f.waiting = slices.Insert(f.waiting, map[string]int{admin.ToFront: 0, admin.ToBack: len(f.waiting)}[a.To], p)
	}
	return before, f.show(p, false), nil
}

// refusal is a conflict of an action.
func refusal() error {
	return &admin.ConflictError{Reason: telemetry.RevisionMismatch, Message: "the session does not wait"}
}

// does runs a change of the model.
func (f *floor) does(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}
