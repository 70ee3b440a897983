package proxy

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/proxy/telemetry"
	"github.com/arkvory/sidecar/proxy/upstream"
	"github.com/arkvory/sidecar/queue"
)

// replace puts a file in the place of another as operators should: by rename.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// clientsFile is a rule with a hold of that many seconds; above 25 it is faulty.
func clientsFile(hold int) string {
	return fmt.Sprintf("clients:\n  - name: corp\n    userAgent: Corp/\n    holdSeconds: %d\n", hold)
}

func TestV1_FaultyEditsAreReportedAndTheirEndToo(t *testing.T) {
	t.Parallel()
	o := store(t)
	dir := t.TempDir()
	principals, clients := filepath.Join(dir, "principals"), filepath.Join(dir, "clients")
	replace(t, principals, "principals:\n  - id: a\n    users: [a]\n")
	replace(t, clients, clientsFile(1))
	b := start(t, o.url(), func(s *Settings) { s.Identity.PrincipalsFile, s.ClientsFile = principals, clients })
	problem := func() (principals, clients string) {
		f := b.p.Sources(time.Now()).Files()
		return f.Principals.Problem, f.Clients.Problem
	}
	if p, c := problem(); p != "" || c != "" || b.metric(`arkvory_file_faulty{file="clients"}`) != "0" {
		t.Errorf("at the start: %q, %q", p, c)
	}
	replace(t, clients, clientsFile(99))
	replace(t, principals, "principals: 5\n")
	eventually(t, "both faults are logged", func() bool { return strings.Count(b.log.String(), "file not applied") == 2 })
	if p, c := problem(); !strings.Contains(p, "line 1") || !strings.Contains(c, "line 4") {
		t.Errorf("the readiness answer says %q, %q", p, c)
	}
	if b.metric(`arkvory_file_faulty{file="clients"}`) != "1" || b.metric(`arkvory_file_faulty{file="principals"}`) != "1" {
		t.Error("the gauges do not show the faults")
	}
	replace(t, clients, clientsFile(1)) // what was in force all the time
	eventually(t, "the end of one is logged", func() bool { return strings.Count(b.log.String(), "file applied") == 1 })
	if p, c := problem(); p == "" || c != "" || b.metric(`arkvory_file_faulty{file="clients"}`) != "0" || b.metric(`arkvory_file_faulty{file="principals"}`) != "1" {
		t.Errorf("after the repair of one: %q, %q", p, c)
	}
	if n := strings.Count(b.log.String(), "file not applied"); n != 2 {
		t.Errorf("%d lines about two faults:\n%s", n, b.log.String())
	}
}

func TestL2_NewListsTheFaultsOfBothFiles(t *testing.T) {
	set := settings("http://127.0.0.1:9")
	dir := t.TempDir()
	set.Identity.PrincipalsFile, set.ClientsFile = filepath.Join(dir, "principals"), filepath.Join(dir, "clients")
	replace(t, set.Identity.PrincipalsFile, "principals: 5\n")
	replace(t, set.ClientsFile, clientsFile(99))
	_, err := New(set)
	for _, err := range []error{err, CheckFiles(set)} {
		if text := fmt.Sprint(err); !strings.Contains(text, "ARKVORY_PRINCIPALS_FILE: line 1") || !strings.Contains(text, "ARKVORY_CLIENTS_FILE: line 4") {
			t.Errorf("got %v, want the faults of both", err)
		}
	}
}

func TestL3_UpstreamIsLoggedOnceAChange(t *testing.T) {
	t.Parallel()
	o := store(t)
	address := vacant(t)
	b := start(t, "http://"+address, nil)
	for range 3 {
		if a := b.once("GET", "/a/10"); a.StatusCode != 502 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	eventually(t, "it is logged", func() bool { return strings.Contains(b.log.String(), "upstream unreachable") })
	for line := range strings.Lines(b.log.String()) {
		if strings.Contains(line, "upstream unreachable") && !(strings.Contains(line, address) && strings.Contains(line, "connection refused")) {
			t.Errorf("no cause in %s", line)
		}
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() { // passes bytes to the store
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go forward(c, strings.TrimPrefix(o.url(), "http://"))
		}
	}()
	if a := b.once("GET", "/a/10"); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	eventually(t, "its end is logged", func() bool { return strings.Contains(b.log.String(), "upstream reachable again") })
	if n := strings.Count(b.log.String(), `"message":"upstream `); n != 2 {
		t.Errorf("%d lines about two changes:\n%s", n, b.log.String())
	}
}

// forward joins a connection with one to the address until either ends.
func forward(c net.Conn, address string) {
	defer c.Close()
	up, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer up.Close()
	done := make(chan struct{}, 2)
	pass := func(to, from net.Conn) { buffer := make([]byte, 4096); passBytes(to, from, buffer); done <- struct{}{} }
	go pass(up, c)
	go pass(c, up)
	<-done
}

func passBytes(to, from net.Conn, buffer []byte) {
	for {
		n, err := from.Read(buffer)
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}

func TestL3_LinesAboutEndedSessionsAreBounded(t *testing.T) {
	var log bytes.Buffer
	p := &Proxy{log: zerolog.New(&log), metrics: telemetry.New("1", telemetry.Snapshots{})}
	end := func(n int, r queue.Reason) {
		for range n {
			p.sessionEnded(queue.End{Reason: r})
		}
	}
	lines := func() (one, sums int) {
		text := log.String()
		log.Reset()
		return strings.Count(text, `"download session ended"`), strings.Count(text, "more download sessions ended")
	}
	end(3, queue.ReasonNoShow)
	if !strings.Contains(log.String(), `"reason":"no_show"`) {
		t.Errorf("the log does not use the word of the metrics:\n%s", log.String())
	}
	p.logEnds()
	if one, sums := lines(); one != 3 || sums != 0 {
		t.Errorf("%d lines and %d sums of 3 ends", one, sums)
	}
	end(endLines+5, queue.ReasonCompleted)
	end(2, queue.ReasonIdle)
	p.logEnds()
	if !strings.Contains(log.String(), `"completed":5,"idle":2,"message":"7 more download sessions ended"`) {
		t.Errorf("the sums are not told:\n%s", log.String())
	}
	if one, sums := lines(); one != endLines || sums != 1 {
		t.Errorf("%d lines and %d sums of %d ends", one, sums, endLines+7)
	}
	end(1000, queue.ReasonDrained)
	end(1, queue.ReasonCompleted)
	p.logEnds()
	p.logEnds()
	if one, sums := lines(); one != 1 || sums != 1 {
		t.Errorf("%d lines and %d sums of a drain", one, sums)
	}
}

func TestL3_StacksOfPanicsAreBounded(t *testing.T) {
	var log bytes.Buffer
	p := &Proxy{log: zerolog.New(&log), metrics: telemetry.New("1", telemetry.Snapshots{})}
	for range panicLimit + 7 {
		p.ReportPanic("boom", []byte("here"))
	}
	p.logPanics()
	p.ReportPanic("boom", []byte("here"))
	p.logPanics()
	text := log.String()
	if n := strings.Count(text, `"stack":"here"`); n != panicLimit+1 || strings.Count(text, "contained 7 more panics") != 1 || strings.Count(text, "more panics") != 1 {
		t.Errorf("%d stacks:\n%s", n, text)
	}
	if n := p.metrics.Panics.Get(); n != panicLimit+8 {
		t.Errorf("%d panics counted", n)
	}
}

// brittle is a log whose writer panics on the first line about a session that ended by its pause: only the tick sees that.
type brittle struct {
	record
	broke atomic.Bool
}

const idleEnd = `"reason":"idle"`

func (b *brittle) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(idleEnd)) && !b.broke.Swap(true) {
		panic("injected in the queue's tick")
	}
	return b.record.Write(line)
}

func TestQ19_APanicOfTheQueuesTickEndsNeitherProcessNorTick(t *testing.T) {
	t.Parallel()
	o := store(t)
	log := &brittle{}
	b := start(t, o.url(), func(s *Settings) { s.Log = zerolog.New(log) })
	part := func(target string) { b.dial().send(request("GET", target, "Range: bytes=0-99")).ok(206) }
	part("/a/60000000")
	eventually(t, "a tick panicked", func() bool { return b.metric("arkvory_panics_total") == "1" })
	part("/b/60000000")
	eventually(t, "the tick goes on", func() bool { return strings.Contains(log.String(), idleEnd) })
	if text := log.String(); !strings.Contains(text, "injected in the queue's tick") || !strings.Contains(text, "(*Queue).Run") {
		t.Errorf("the panic of the tick is not logged:\n%s", text)
	}
}

func TestP9_PoolsOfRedirectsAreFoundAgainAndGiveWay(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "0.0.0.0:0") // every 127.x.y.z is another host
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			if c, err := ln.Accept(); err == nil {
				t.Cleanup(func() { c.Close() })
			} else {
				return
			}
		}
	}()
	o := store(t)
	b := start(t, o.url(), nil)
	pool := func(text string) (upstream.Source, error) {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return b.p.poolFor(u)
	}
	same := func(left, right string) {
		t.Helper()
		l, _ := pool(left)
		if r, err := pool(right); l != r || err != nil {
			t.Errorf("%s and %s have two pools (%v)", left, right, err)
		}
	}
	same("http://Store.test/a", "HTTP://store.test:80/b")
	same("https://store.test:443/", "https://STORE.test")
	same("http://[::1]:80/", "http://[::1]/")
	same(o.url(), strings.ToUpper(o.url()))
	if main, _ := pool(o.url()); main != upstream.Source(b.p.pool) {
		t.Error("the origin has a second pool")
	}
	port := ln.Addr().(*net.TCPAddr).Port
	host := func(i int) string { return fmt.Sprintf("http://127.1.0.%d:%d/", i+1, port) }
	writers := make([]*upstream.Writer, maxPools)
	for i := range writers {
		p, err := pool(host(i))
		if err != nil {
			t.Fatalf("host %d: %v", i, err)
		}
		if writers[i], err = p.Get(true, func() <-chan struct{} { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool(host(100)); err == nil || len(b.p.pools) != maxPools {
		t.Errorf("%d pools, %v: one with an exchange gave way", len(b.p.pools), err)
	}
	writers[7].Discard(telemetry.DiscardClosed)
	if _, err := pool(host(100)); err != nil {
		t.Errorf("nothing gave way: %v", err)
	}
	if len(b.p.pools) != maxPools || b.p.pools[strings.TrimSuffix(host(7), "/")] != nil {
		t.Errorf("%d pools, and the one without connections is among them", len(b.p.pools))
	}
	for i, w := range writers {
		if i != 7 {
			w.Discard(telemetry.DiscardClosed)
		}
	}
}

func TestL1_AHangingReadOfAFileDoesNotKeepTheProcess(t *testing.T) {
	t.Parallel()
	o := store(t)
	b := start(t, o.url(), nil)
	b.once("GET", "/a/10") // it serves
	hangs := make(chan struct{})
	defer close(hangs)
	b.p.ticks.Go(func() { <-hangs })
	b.close()
	if !strings.Contains(b.log.String(), "stopping while the read of a file hangs") {
		t.Errorf("it is not logged:\n%s", b.log.String())
	}
}

func TestL3_StateIsToldAtLevelDebugOnly(t *testing.T) {
	t.Parallel()
	o := store(t)
	for level, want := range map[zerolog.Level]int{zerolog.DebugLevel: 1, zerolog.InfoLevel: 0} {
		b := start(t, o.url(), func(s *Settings) { s.Log = s.Log.Level(level) })
		b.once("GET", "/a/10")
		b.p.logState()
		if n := strings.Count(b.log.String(), `"message":"state"`); n != want {
			t.Errorf("level %v: %d lines:\n%s", level, n, b.log.String())
		}
	}
}
