package admin

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// bureau is an Operator that answers what it is told and remembers what it was asked. Secrets stand in what it shows in clear only.
type bureau struct {
	mu      sync.Mutex
	queries []SessionsQuery
	acts    []Action
	minutes []int
	empty   bool  // there are no sessions
	err     error // of Sessions, Session and Act
}

const (
	knownID     = "9f1c2b3a4d5e6f70"
	clearSecret = "user:clear-principal"
)

var morning = time.Date(2026, 3, 4, 5, 6, 7, 89_900_000, time.FixedZone("CET", 3600))

func (b *bureau) session(clear bool) SessionDocument {
	place, size := 312, int64(1<<32)
	d := SessionDocument{ID: knownID, State: StateWaiting, Position: &place, Principal: "h:1f2e3d4c5b6a7980", Object: "h:0a1b2c3d4e5f6071", Client: "h:8899aabbccddeeff",
		Class: "bulk", StandsIn: "release", Protocol: true, SizeBytes: &size, ArrivedAt: Moment{morning}, WaitedSeconds: 2820.50049, StartsAt: NullMoment(morning),
		StartsWindow: &StartsWindow{Moment{morning}, Moment{morning.Add(time.Minute)}}, Why: WhyOrder}
	if clear {
		d.Principal = clearSecret
	}
	return d
}

func (b *bureau) Queue() QueueDocument {
	soon := InSeconds(90 * time.Second)
	one := ClassQueue{Active: 1, Waiting: 2, OldestWaitSeconds: 3.0004, WaitingBytes: 4, Window: ClassWindow{Open: true, OutsideShare: 0.25, ChangesAt: NullMoment(morning)}}
	return QueueDocument{At: Moment{morning}, UptimeSeconds: InSeconds(1500 * time.Millisecond), Mode: "normal", Strategy: "ordered", Admission: "sessions", SettingsRevision: 3,
		Slots: QueueSlots{16, 17, 1, 32, 1, 9}, Active: 9, Waiting: 312, PausedByOperator: 1, Remembered: 4, Held: 12, Fed: 3, OldestWaitSeconds: 2820.5,
		ByClass: QueueByClass{Interactive: one, Bulk: one}, WaitingBytes: 1 << 50, ActiveRemainingBytes: 5, RateBytesPerSecond: 6, BandBytesPerSecond: 7,
		EmptyInSeconds: &soon, EmptyAt: NullMoment(morning), Gate: QueueGate{true, "covered"}, TickMilliseconds: 0.4, Promises: QueuePromises{8, 6, 7},
		Counts: QueueCounts{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}
}

func (b *bureau) History(minutes int) HistoryDocument {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.minutes = append(b.minutes, minutes)
	s := Series{NoSample, 0, 5}
	return HistoryDocument{StepSeconds: 5, Until: Moment{morning}, BytesPerSecond: s, UploadBytesPerSecond: s, Active: s, Slots: s, Waiting: SeriesByClass{s, s, s, s}, Started: s, Completed: s}
}

func (b *bureau) Sessions(q SessionsQuery) (SessionsDocument, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queries = append(b.queries, q)
	if b.err != nil {
		return SessionsDocument{}, b.err
	}
	if b.empty {
		return SessionsDocument{}, nil
	}
	next := "w.1"
	return SessionsDocument{Total: 312, Sessions: []SessionDocument{b.session(q.Clear)}, Next: &next}, nil
}

func (b *bureau) Session(id string, clear bool) (SessionDocument, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id != knownID {
		return SessionDocument{}, ErrUnknownSession
	}
	return b.session(clear), b.err
}

func (b *bureau) Act(id string, a Action) (before, after SessionDocument, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acts = append(b.acts, a)
	if id != knownID {
		return before, after, ErrUnknownSession
	}
	before, after = b.session(false), b.session(false)
	first := 1
	switch a.Kind {
	case Move:
		if after.Position = &first; a.Class != "" {
			after.Class, after.StandsIn = a.Class, a.Class
		}
	case Pause:
		after.PausedByOperator, after.Why, after.StartsAt, after.StartsWindow = true, WhyOperator, nil, nil
	case Kick:
		after.State, after.Position, after.Why, after.StartsAt, after.StartsWindow = StateEnded, nil, "", nil, nil
	}
	return before, after, b.err
}

// allSources have every source, and the desk and the bureau behind them.
func allSources() (Sources, *desk, *bureau) {
	src, d, b := fullSources(), &desk{next: `{"sessions":4}`}, &bureau{}
	src.Settings, src.Operator = d, b
	return src, d, b
}

// files is a console of three files.
func files(path string) (body []byte, contentType, etag string, ok bool) {
	switch path {
	case "index.html":
		return []byte("<!doctype html><title>Queue</title>"), "text/html; charset=utf-8", `"index-1"`, true
	case "app.js":
		return []byte(strings.Repeat("const a = 1;\n", 400)), "text/javascript; charset=utf-8", `"app-1"`, true
	case "icon.png":
		return []byte(strings.Repeat("\x00", 4000)), "image/png", `"icon-1"`, true
	}
	return nil, "", "", false
}

// post sends a POST with a body.
func post(t *testing.T, addr, path, body string, lines ...string) answer {
	t.Helper()
	request := "POST " + path + " HTTP/1.1\r\n"
	if !strings.Contains(strings.Join(lines, "\n"), "Host:") {
		request += "Host: " + addr + "\r\n"
	}
	for _, l := range lines {
		request += l + "\r\n"
	}
	return raw(t, addr, "POST", fmt.Sprintf("%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", request, len(body), body))
}

// ticking is a clock that each look moves on by a step, so that no rate is reached. Safe for concurrent use.
func ticking(step time.Duration) func() time.Duration {
	var mu sync.Mutex
	var now time.Duration
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now += step
		return now
	}
}
