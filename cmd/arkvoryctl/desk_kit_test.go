package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/proxy/live"
	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/queue"
)

// deskToken is the token of the listeners that want one.
const deskToken = "a-token-that-nobody-may-see-0123"

// operator is an admin.Operator over a list of sessions that does what it is told; the listener before it is the real one.
type operator struct {
	mu       sync.Mutex
	sessions []admin.SessionDocument
	snapshot admin.QueueDocument
	acted    []string
}

func (o *operator) Queue() admin.QueueDocument {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.snapshot
}

func (o *operator) History(int) admin.HistoryDocument { return admin.HistoryDocument{} }

// Sessions pages by the index of the last session shown.
func (o *operator) Sessions(q admin.SessionsQuery) (admin.SessionsDocument, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from := 0
	if q.After != "" {
		n, err := strconv.Atoi(q.After)
		if err != nil {
			return admin.SessionsDocument{}, &admin.QueryError{Field: "after", Rule: "a cursor of a page before", Example: "100"}
		}
		from = n
	}
	var all []admin.SessionDocument
	for _, s := range o.sessions {
		if (q.State == admin.StateAll || q.State == s.State) && (q.Class == "" || q.Class == s.Class) && (q.Principal == "" || q.Principal == s.Principal) {
			all = append(all, shownAs(s, q.Clear))
		}
	}
	end := min(from+q.Limit, len(all))
	page := admin.SessionsDocument{Total: len(all), Sessions: all[from:end]}
	if end < len(all) {
		next := strconv.Itoa(end)
		page.Next = &next
	}
	return page, nil
}

// shownAs is a session with its ids as they are, or hashed.
func shownAs(s admin.SessionDocument, clear bool) admin.SessionDocument {
	if clear {
		s.Principal, s.Object, s.Client = "user:ci", "store.example/release.tar", "203.0.113.7"
	}
	return s
}

func (o *operator) Session(id string, clear bool) (admin.SessionDocument, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := slices.IndexFunc(o.sessions, func(s admin.SessionDocument) bool { return s.ID == id })
	if at < 0 {
		return admin.SessionDocument{}, admin.ErrUnknownSession
	}
	return shownAs(o.sessions[at], clear), nil
}

func (o *operator) Act(id string, a admin.Action) (before, after admin.SessionDocument, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := slices.IndexFunc(o.sessions, func(s admin.SessionDocument) bool { return s.ID == id })
	if at < 0 {
		return before, after, admin.ErrUnknownSession
	}
	s := &o.sessions[at]
	before = *s
	switch {
	case a.Kind == admin.Move && s.State != admin.StateWaiting:
		return before, after, &admin.ConflictError{Reason: telemetry.RevisionMismatch, Message: "only a waiting session can be moved"}
	case a.Kind == admin.Move && a.Class != "":
		s.Class = a.Class
	case a.Kind == admin.Move:
		one := 1
		s.Position = &one
	case a.Kind == admin.Pause:
		s.PausedByOperator, s.Why = true, admin.WhyOperator
	case a.Kind == admin.Resume:
		s.PausedByOperator, s.Why = false, admin.WhySlots
	}
	o.acted = append(o.acted, strings.TrimSpace(fmt.Sprintf("%s %s %s%s", a.Kind, id, a.To, a.Class)))
	after = *s
	if a.Kind == admin.Kick {
		after.State = admin.StateEnded
		o.sessions = slices.Delete(o.sessions, at, at+1)
	}
	return before, after, nil
}

// done is what was done so far.
func (o *operator) done() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.acted)
}

// see replaces the snapshot.
func (o *operator) see(change func(*admin.QueueDocument)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.snapshot)
}

// deskDay is when everything happened on these listeners.
var deskDay = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// someSessions are an active session, a remembered one and so many that wait.
func someSessions(waiting int) []admin.SessionDocument {
	moment := func(after time.Duration) *admin.Moment { return &admin.Moment{Time: deskDay.Add(after)} }
	size := func(n int64) *int64 { return &n }
	all := []admin.SessionDocument{
		{ID: "00000000000000a1", State: admin.StateActive, Principal: "h:1f2e3d4c5b6a7980", Object: "h:00112233445566aa", Client: "h:8899aabbccddeeff", Class: "release",
			StandsIn: "release", Protocol: true, SizeBytes: size(4_000_000_000), SentBytes: 1_000_000_000, ArrivedAt: *moment(0), WaitedSeconds: 61, StartedAt: moment(time.Minute)},
		{ID: "00000000000000a2", State: admin.StateRemembered, Principal: "h:1f2e3d4c5b6a7980", Object: "h:00112233445566ab", Client: "h:8899aabbccddeeff", Class: "bulk",
			StandsIn: "bulk", SentBytes: 5, ArrivedAt: *moment(0), WaitedSeconds: 3},
	}
	for i := range waiting {
		place := i + 1
		s := admin.SessionDocument{ID: fmt.Sprintf("%016x", 0xb000+i), State: admin.StateWaiting, Position: &place, Principal: "h:00000000000000ff", Object: "h:00000000000000ee",
			Client: "h:00000000000000dd", Class: "bulk", StandsIn: "bulk", SizeBytes: size(20_000_000_000), ArrivedAt: *moment(0), WaitedSeconds: admin.Seconds(2820 - i), Why: admin.WhySlots}
		if i == 0 {
			s.StandsIn, s.Protocol, s.Held, s.BundleObjects, s.Why = "release", false, 2, 7, admin.WhyWindow
			s.StartsAt, s.StartsWindow = moment(47*time.Minute), &admin.StartsWindow{Earliest: *moment(40 * time.Minute), Latest: *moment(62 * time.Minute)}
		}
		all = append(all, s)
	}
	return all
}

// busyQueue is the snapshot that the descriptions show.
func busyQueue() admin.QueueDocument {
	in, at := admin.Seconds(2820), admin.Moment{Time: deskDay.Add(47 * time.Minute)}
	d := admin.QueueDocument{
		At: admin.Moment{Time: deskDay}, Version: "1.2.3", UptimeSeconds: 7500, Mode: "normal", Strategy: "ordered", Admission: "sessions", SettingsRevision: 3,
		Slots:  admin.QueueSlots{Configured: 16, Open: 17, Elastic: 1, ElasticLimit: 32, Reserve: 1, Active: 17},
		Active: 17, Waiting: 312, PausedByOperator: 2, Remembered: 4, Held: 12, Fed: 7, OldestWaitSeconds: 2820.5, WaitingBytes: 1_250_000_000_000, ActiveRemainingBytes: 34_000_000_000,
		RateBytesPerSecond: 117_000_000, BandBytesPerSecond: 125_000_000, EmptyInSeconds: &in, EmptyAt: &at, Gate: admin.QueueGate{Open: true, Reason: "covered"},
		TickMilliseconds: 0.44, Promises: admin.QueuePromises{Judged: 1000, Within: 931, Held: 990},
		Counts: admin.QueueCounts{Queued: 1500, Started: 1200, Completed: 1150, Kicked: 3, OverQuota: 1},
	}
	d.ByClass.Interactive.Active, d.ByClass.Interactive.Window.Open = 1, true
	d.ByClass.Release = admin.ClassQueue{Active: 14, Waiting: 200, OldestWaitSeconds: 2820.5, WaitingBytes: 800_000_000_000, Window: admin.ClassWindow{Open: true, ChangesAt: &at}}
	d.ByClass.Bulk = admin.ClassQueue{Active: 2, Waiting: 100, OldestWaitSeconds: 600, WaitingBytes: 400_000_000_000, Window: admin.ClassWindow{OutsideShare: 0.1, ChangesAt: &at}}
	d.ByClass.Background = admin.ClassQueue{Waiting: 12, OldestWaitSeconds: 90, WaitingBytes: 50_000_000_000, Window: admin.ClassWindow{}}
	return d
}

// deskSettings make a listener for tests.
type deskSettings struct {
	far     bool // peers are from elsewhere, so that the token is asked for
	tls     *tls.Config
	without bool                                        // no operator, as with an older sidecar
	store   config.RecordStore                          // nil: memory
	wrap    func(admin.LiveSettings) admin.LiveSettings // between the listener and the settings
}

// standing is a real admin listener.
type standing struct {
	*operator
	url      string
	settings *live.Desk
}

// far makes every peer look like one on another machine.
type far struct{ net.Listener }

type farPeer struct{ net.Conn }

func (f far) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farPeer{c}, nil
}

func (farPeer) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 40000} }

// stand serves the real admin listener over the operator and real live settings until the test ends.
func stand(t *testing.T, set deskSettings) *standing {
	t.Helper()
	t.Setenv(tokenVariable, "")
	t.Setenv("ARKVORY_ADMIN_TOKEN_FILE", "")
	s := &standing{operator: &operator{sessions: someSessions(3), snapshot: busyQueue()}}
	if set.store == nil {
		set.store = &config.MemoryRecords{}
	}
	s.settings = live.New(t.Context(), live.Settings{Base: queue.DefaultPolicy(16), Store: set.store, Now: func() time.Time { return deskDay },
		Apply: func(live.Effective) error { return nil }})
	var desk admin.LiveSettings = s.settings
	if set.wrap != nil {
		desk = set.wrap(desk)
	}
	sources := admin.Sources{Settings: desk}
	if !set.without {
		sources.Operator = s.operator
	}
	server := admin.New(admin.Settings{Token: deskToken, Version: "1.2.3", OnPanic: func(v any, stack []byte) { t.Errorf("%v\n%s", v, stack) }}, sources)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + ln.Addr().String()
	if set.tls != nil {
		s.url, ln = "https://"+ln.Addr().String(), tls.NewListener(ln, set.tls)
	}
	if set.far {
		ln = far{ln}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-ended; err != nil && !errors.Is(err, admin.ErrClosed) { // a short test ends before it begins
			t.Errorf("serve: %v", err)
		}
	})
	t.Setenv("ARKVORY_ADMIN_URL", s.url)
	return s
}

// certificate makes a certificate for loopback and a file that trusts it.
func certificate(t *testing.T) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	shape := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, shape, shape, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, file
}

// expect runs a command and fails unless it ends with the code and says what it must, on either stream.
func expect(t *testing.T, code int, says []string, args ...string) (out, complaint string) {
	t.Helper()
	got, out, complaint := ctl(t, args...)
	if got != code {
		t.Errorf("%q: code %d, want %d; printed %q, said %q", args, got, code, out, complaint)
	}
	for _, want := range says {
		if !strings.Contains(out+complaint, want) {
			t.Errorf("%q: %q is missing; printed\n%s\nsaid\n%s", args, want, out, complaint)
		}
	}
	if strings.Contains(out+complaint, deskToken) {
		t.Errorf("%q shows the token", args)
	}
	return out, complaint
}

// golden compares a text with a file under testdata/desk, or writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", "desk", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || text != string(want) {
		t.Errorf("%s (%v) is not this:\n%s", path, err, text)
	}
}
