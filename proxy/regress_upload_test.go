package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/front"
	"github.com/arkvory/sidecar/queue/admission"
)

// uploading returns how many uploads move bytes at this moment: their goroutines are inside the relay.
func uploading() (n int) {
	buf := make([]byte, 4<<20)
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if relayed, rest, ok := strings.Cut(g, "proxy.(*uploader).run("); ok && rest != "" && strings.Contains(relayed, "proxy/relay.(*") {
			n++
		}
	}
	return n
}

// seesEnd waits until the proxy has closed its side and reports how many uploads went on then.
func (k *call) seesEnd(into chan<- int) {
	k.over = true
	_, _ = io.Copy(io.Discard, k.br)
	into <- uploading()
}

// pacedUploads makes every step of an upload wait a tenth of a second for its grant: an upload that nobody stops is in progress for certain when its socket closes.
func pacedUploads(s *Settings) {
	s.UploadTotal = bucket.Limit{BytesPerSecond: bucket.MinBytesPerSecond}
}

// whileUploading sends a request with a body that takes 15 s and returns when the upload runs.
func whileUploading(b *bench, method, target string) *client {
	c := b.dial().send(request(method, target, "Content-Length: 1000000"))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(c.conn, strings.Repeat("E", 1000000))
	}()
	b.t.Cleanup(func() { c.close(); <-sent })
	eventually(b.t, "the upload runs", func() bool { return uploading() == 1 })
	return c
}

// The three tests below are about one order of events: first the upload is over, then the upstream's socket closes. Before, the socket was closed first; the upload
// wrote on by the number of the descriptor, which could belong to another connection by then. They run alone, since they look at all goroutines.

func TestP7_UploadIsOverBeforeABrokenAnswerClosesItsSocket(t *testing.T) {
	broken, left := make(chan struct{}), make(chan int, 1)
	o := newOrigin(t, func(k *call) {
		k.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		<-broken
		k.send("zz\r\n")
		k.seesEnd(left)
	})
	b := start(t, o.url(), pacedUploads)
	c := whileUploading(b, "PUT", "/f")
	resp := c.begin("PUT")
	close(broken)
	if n := <-left; n != 0 {
		t.Errorf("%d uploads go on when their socket closes", n)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a whole answer")
	}
	b.quiet(twoTicks)
}

func TestP7_UploadIsOverBeforeAQueuedDownloadClosesItsSocket(t *testing.T) {
	taken, left := make(chan struct{}), make(chan int, 1)
	o := newOrigin(t, func(k *call) {
		<-taken
		k.send("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 1000000\r\n\r\n")
		k.seesEnd(left)
	})
	b := start(t, o.url(), func(s *Settings) { oneSlot(s); pacedUploads(s) })
	c := whileUploading(b, "GET", "/f")
	g, _ := b.p.queue.Admit(holding()) // the slot that was free when the request went out
	defer g.Abandon()
	close(taken)
	if n := <-left; n != 0 {
		t.Errorf("%d uploads go on when their socket closes", n)
	}
	if a := c.ok(503); a.reason(t) != "download_queued" || !a.Close { // its body is gone: it cannot be held and sent again
		t.Errorf("%s, close %v", a.body, a.Close)
	}
	if n := o.count("GET"); n != 1 {
		t.Errorf("the origin got %q", o.requests())
	}
}

func TestP7_UploadIsOverBeforeARefusedPlaceClosesItsSocket(t *testing.T) {
	left := make(chan int, 1)
	begun := make(chan struct{})
	o := newOrigin(t, func(k *call) {
		<-begun
		k.send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n")
		k.seesEnd(left)
	})
	b := start(t, o.url(), func(s *Settings) {
		pacedUploads(s)
		s.Downloads = admission.Settings{Capacity: 1, PerPrincipal: 1, Timeout: patience}
	})
	place, err := b.p.down.Acquire("somebody", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Release()
	c := whileUploading(b, "GET", "/f")
	close(begun)
	if n := <-left; n != 0 {
		t.Errorf("%d uploads go on when their socket closes", n)
	}
	if a := c.ok(503); a.reason(t) != "queue_full" || !a.Close {
		t.Errorf("%s, close %v", a.body, a.Close)
	}
}

// victim is a client that only listens, on a socket made before, so that the number which an upstream connection frees goes to the proxy's own accept.
type victim int

func newVictim(t *testing.T) victim {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
	}
	return victim(fd)
}

func (v victim) connect(at netip.AddrPort) error {
	return unix.Connect(int(v), &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
}

// heard returns what the victim was sent though it asked for nothing.
func (v victim) heard() string {
	b := make([]byte, 1<<10)
	n, _, err := unix.Recvfrom(int(v), b, unix.MSG_DONTWAIT)
	if errors.Is(err, unix.EAGAIN) {
		return ""
	}
	return fmt.Sprintf("%q, %v", b[:max(n, 0)], err)
}

// TestP7_UploadBytesReachNobodyElse: 200 uploads whose answers break, eight at a time, while clients connect that must read nothing, and an origin that must see nothing
// but its own requests. It stands for the harm: before, such an upload could write into the connection that had been given its socket's number. Whether it did so in one run was
// chance; the order of events that allowed it is what the tests above catch every time.
func TestP7_UploadBytesReachNobodyElse(t *testing.T) {
	const workers, rounds, victims = 8, 25, 2
	o := newOrigin(t, func(k *call) {
		if k.line == "HEAD / HTTP/1.1" { // an endpoint whose answers break is probed
			k.send("HTTP/1.1 204 X\r\n\r\n")
			return
		}
		if k.line != "PUT /f HTTP/1.1" {
			t.Errorf("the origin got %.80q", k.line)
		}
		k.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		if _, err := io.CopyN(io.Discard, k.br, 256*kib); err == nil { // in the middle of the upload
			k.send("zz\r\n")
		}
		k.closed()
	})
	b := start(t, o.url(), func(s *Settings) { s.ClientIdle = 2 * patience })
	at := netip.MustParseAddrPort(b.addr)
	all := make(chan victim, workers*rounds*victims)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				var own [victims]victim
				for i := range own {
					own[i] = newVictim(t)
					all <- own[i]
				}
				if err := breakUpload(b.addr); err != nil {
					t.Error(err)
				}
				for _, v := range own {
					if err := v.connect(at); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	close(all)
	b.quiet(patience)
	eventually(t, "all are accepted", func() bool { return b.p.front.Accepted() == workers*rounds*(1+victims) })
	for v := range all {
		if heard := v.heard(); heard != "" {
			t.Errorf("a victim read %s", heard)
		}
		_ = unix.Close(int(v))
	}
	if n := o.count("PUT"); n != workers*rounds {
		t.Errorf("%d uploads", n)
	}
}

// breakUpload uploads until the answer has broken.
func breakUpload(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request("PUT", "/f", "Content-Length: 1000000000")); err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for body := strings.Repeat("E", 64*kib); ; {
			if _, err := io.WriteString(conn, body); err != nil {
				return
			}
		}
	}()
	got, _ := io.ReadAll(conn)
	_ = conn.Close()
	<-over
	if !strings.Contains(string(got), "hello") || strings.Contains(string(got), "EE") {
		return fmt.Errorf("an upload was answered with %.200q", got)
	}
	return nil
}

// stuckUpload has an origin that answers 200 and reads no more, and a client that sent what all queues on the way hold. It ends with let.
func stuckUpload(t *testing.T, change func(*Settings)) (b *bench, c *client, let func()) {
	hold := make(chan struct{})
	let = sync.OnceFunc(func() { close(hold) })
	o := newOrigin(t, func(k *call) {
		k.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-hold
		k.closed()
	})
	t.Cleanup(let)
	b = start(t, o.url(), change)
	c = b.dial().send(request("PUT", "/x", "Content-Length: 1000000000"))
	for block := strings.Repeat("x", mib); ; {
		_ = c.conn.SetWriteDeadline(time.Now().Add(2 * front.Tick))
		if _, err := io.WriteString(c.conn, block); err != nil {
			break
		}
	}
	if a := c.ok(200); !a.Close {
		t.Error("the connection is kept")
	}
	if l := b.left(); l.InFlight != 1 || l.UpActive != 1 {
		t.Fatalf("not stuck: %+v", l)
	}
	return b, c, let
}

// TestP6_A4_ClientLeavesBehindAnEarlyAnswer: the upstream's connection was no longer bound once the answer was out, so nothing woke an upload that was stuck there: its
// place, its connection and its goroutines were held until the origin let go. The client resets: behind a full window no end of its stream would arrive.
func TestP6_A4_ClientLeavesBehindAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	b, c, let := stuckUpload(t, nil)
	c.reset()
	defer let()
	b.quiet(twoTicks)
	within(t, twoTicks, "no client connection", func() bool { return b.p.front.Open() == 0 })
}

// TestL1_A4_ShutdownCutsAnUploadBehindAnEarlyAnswer: for the same reason Shutdown never returned.
func TestL1_A4_ShutdownCutsAnUploadBehindAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	b, _, let := stuckUpload(t, nil)
	done := make(chan struct{})
	go func() { defer close(done); b.cut() }()
	late := time.NewTimer(patience / 2)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		t.Error("Shutdown does not return")
	}
	let()
	<-done
}

// TestA4_DeadlineHoldsForAStuckUploadBehindAnEarlyAnswer: the head of the answer took the deadline away.
func TestA4_DeadlineHoldsForAStuckUploadBehindAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	b, _, let := stuckUpload(t, func(s *Settings) { s.UploadDeadline = 6 * time.Second })
	defer let()
	b.quiet(patience)
}

// TestA4_DeadlineHoldsForADrippingUploadBehindAnEarlyAnswer: a byte now and then kept a place for ever. An upload within its time is let through.
func TestA4_DeadlineHoldsForADrippingUploadBehindAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	const deadline = 4 * front.Tick
	got := make(chan int, 2)
	o := newOrigin(t, func(k *call) {
		k.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		got <- len(k.body())
	})
	b := start(t, o.url(), func(s *Settings) { s.UploadDeadline = deadline })
	c := b.dial().send(request("PUT", "/short", "Content-Length: 3000") + strings.Repeat("x", 1000))
	c.begin("PUT")
	c.send(strings.Repeat("x", 2000))
	if n := <-got; n != 3000 {
		t.Errorf("the short one brought %d bytes", n)
	}
	b.quiet(patience)

	began := time.Now()
	c = b.dial().send(request("PUT", "/long", "Content-Length: 1000000"))
	stop, dripped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(dripped)
		tick := time.NewTicker(front.Tick / 4)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if _, err := io.WriteString(c.conn, "x"); err != nil {
					return
				}
			}
		}
	}()
	c.begin("PUT")
	b.quiet(patience / 2) // the client drips on
	if took := time.Since(began); took < deadline {
		t.Errorf("ended after %v of %v", took, deadline)
	}
	close(stop)
	<-dripped
}

// TestI2_A1_WrongPasswordTakesNobodysPlaces: uploads were charged to the name that a client gave. Whoever knew it took all places of that one with a wrong password.
func TestI2_A1_WrongPasswordTakesNobodysPlaces(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(k *call) {
		if "Authorization: "+k.field("Authorization") != alice {
			k.body() // slow to judge
			k.reply(401, "WWW-Authenticate: Basic realm=x\r\n", "")
			return
		}
		k.body()
		k.reply(201, "", "")
	})
	b := start(t, o.url(), func(s *Settings) {
		s.Uploads = admission.Settings{Capacity: 8, PerPrincipal: 4, WaitLimit: 8, WaitPerPrincipal: 1, Timeout: patience}
	})
	put := func(ip, who string) *client {
		return b.dialFrom(ip).send(request("PUT", "/f", who, "Content-Length: 2") + "hi")
	}
	put("127.0.0.3", alice).ok(201) // the upstream has accepted her
	b.quiet(patience)
	var wrong [4]*client
	for i := range wrong {
		wrong[i] = b.dialFrom("127.0.0.2").send(request("PUT", "/slow", aliceWrong, "Content-Length: 100000") + "x")
	}
	eventually(t, "four places are taken", func() bool { return b.left().UpActive == 4 })
	fifth := put("127.0.0.2", aliceWrong) // its own places are limited as anybody's
	eventually(t, "the fifth one waits", func() bool { return b.left().UpWaiting == 1 })
	answered := make(chan *http.Response, 1)
	real := put("127.0.0.3", alice)
	go func() {
		resp, _ := http.ReadResponse(real.br, nil)
		answered <- resp
	}()
	late := time.NewTimer(patience / 2)
	defer late.Stop()
	select {
	case resp := <-answered:
		if resp == nil || resp.StatusCode != 201 {
			t.Errorf("alice got %v", resp)
		}
	case <-late.C:
		t.Error("alice waits for the places that somebody else took in her name")
		real.close()
		<-answered
	}
	for _, c := range append(wrong[:], fifth) {
		c.close()
	}
	b.quiet(patience)
}
