package admin

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hands is a clock that a test sets.
type hands struct{ now atomic.Int64 }

func (h *hands) read() time.Duration     { return time.Duration(h.now.Load()) }
func (h *hands) advance(d time.Duration) { h.now.Add(int64(d)) }

func TestV3_MeterHoldsItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rate{every: time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "every")), burst: rapid.IntRange(1, 20).Draw(t, "burst")}
		var m meter
		var now time.Duration
		var taken []time.Duration
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(3*r.every)).Draw(t, "pause"))
			before := m
			switch wait := m.take(r, now); {
			case wait == 0:
				taken = append(taken, now)
			case m != before:
				t.Fatal("a refusal counts")
			case before.take(r, now+wait-1) == 0:
				t.Fatal("it could be sooner than told")
			default:
				if early := m; early.take(r, now+wait) != 0 {
					t.Fatal("it cannot be when it was told")
				}
			}
		}
		for i := range taken {
			for j := i; j < len(taken); j++ {
				if most := r.burst + int((taken[j]-taken[i])/r.every); j-i+1 > most {
					t.Fatalf("%d in %v, at most %d", j-i+1, taken[j]-taken[i], most)
				}
			}
		}
	})
}

func TestV3_ReadsAndWritesHaveTheirRates(t *testing.T) {
	var clock hands
	near, far, _, _ := withBook(t, Settings{Clock: clock.read})
	s := described(t)
	own := "Authorization: Bearer " + token
	count := func(most int, ask func() answer) (n int, last answer) {
		for ; n < most; n++ {
			if last = ask(); last.status == 429 {
				return n, last
			}
		}
		return n, last
	}
	reads := func() answer { return send(t, near, "GET", QueuePath) }
	writes := func() answer { return post(t, near, SessionsPath+"/"+knownID+"/kick", "", isJSON) }
	n, last := count(200, reads)
	if n != readRate.burst || last.header.Get("Retry-After") != "1" || !strings.Contains(last.body, `"reason":"rate_limited"`) {
		t.Errorf("%d reads, then %d %s %v", n, last.status, last.body, last.header)
	}
	s.conforms(t, "GET", QueuePath, last)
	if n, last = count(200, writes); n != writeRate.burst {
		t.Errorf("%d writes, then %d %s", n, last.status, last.body)
	}
	s.conforms(t, "POST", sessionPath+"/kick", last)
	if a := send(t, near, "HEAD", SettingsPath); a.status != 429 {
		t.Errorf("HEAD is no read: %d", a.status)
	}
	if a := put(t, near, changeText, isJSON); a.status != 429 {
		t.Errorf("PUT is no write: %d", a.status)
	}
	for name, a := range map[string]answer{"who has the token": send(t, far, "GET", QueuePath, own), "a probe": send(t, near, "GET", "/health/ready"),
		"metrics": send(t, near, "GET", "/metrics"), "the page": send(t, near, "GET", "/console/")} {
		if a.status != 200 {
			t.Errorf("%s is kept out: %d", name, a.status)
		}
	}
	clock.advance(time.Second)
	if n, _ := count(200, reads); n != 50 {
		t.Errorf("%d reads in the next second", n)
	}
	if n, _ := count(200, writes); n != 5 {
		t.Errorf("%d writes in the next second", n)
	}
}

func TestV3_TokensCannotBeGuessedQuickly(t *testing.T) {
	var clock hands
	_, far, lines, _ := withBook(t, Settings{Clock: clock.read})
	s := described(t)
	own := "Authorization: Bearer " + token
	for range 50 { // right ones are not counted
		if a := send(t, far, "GET", "/metrics", own); a.status != 200 {
			t.Fatalf("the right token: %d", a.status)
		}
	}
	for i := range guessRate.burst {
		path := []string{QueuePath, "/metrics", "/debug/pprof/cmdline", "/health/ready"}[i%4]
		want := map[bool]int{true: 200, false: 401}[i%4 == 3]
		if a := send(t, far, "GET", path, fmt.Sprintf("Authorization: Bearer hunter2-%d", i)); a.status != want || strings.Contains(a.body, "transfers") {
			t.Errorf("guess %d: %d %s", i, a.status, a.body)
		}
	}
	for _, line := range []string{"Authorization: Bearer hunter2", own} { // from here on no token is looked at
		a := send(t, far, "GET", QueuePath, line)
		if s.conforms(t, "GET", QueuePath, a); a.status != 429 || a.header.Get("Retry-After") != "6" || !strings.Contains(a.body, `"rate_limited"`) {
			t.Errorf("%s: %d %s %v", line, a.status, a.body, a.header)
		}
		if a := send(t, far, "GET", "/health/ready", line); a.status != 200 || a.body != "{\"status\":\"ready\"}\n" {
			t.Errorf("a probe: %d %s", a.status, a.body)
		}
	}
	if a := send(t, far, "GET", QueuePath); a.status != 401 {
		t.Errorf("who shows no token is asked for one: %d", a.status)
	}
	clock.advance(guessRate.every)
	for range 3 {
		if a := send(t, far, "GET", QueuePath, own); a.status != 200 {
			t.Errorf("after the pause: %d", a.status)
		}
	}
	if a := send(t, far, "GET", QueuePath, "Authorization: Bearer hunter2"); a.status != 401 {
		t.Errorf("a guess after the pause: %d", a.status)
	}
	if a := send(t, far, "GET", QueuePath, "Authorization: Bearer hunter2"); a.status != 429 {
		t.Errorf("and the next: %d", a.status)
	}
	for _, line := range lines.take() {
		if holdsSecret(line) {
			t.Errorf("a line holds a secret: %s", line)
		}
	}
}

func TestV3_LoopbackIsNotKeptOutByWrongTokens(t *testing.T) {
	var clock hands
	near, _, _, _ := withBook(t, Settings{Clock: clock.read})
	for range guessRate.burst + 5 {
		if a := send(t, near, "GET", QueuePath, "Authorization: Bearer hunter2"); a.status != 200 {
			t.Fatalf("%d", a.status)
		}
	}
}

func TestV3_PeersAreBounded(t *testing.T) {
	l := newLimits()
	peer := func(text string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(text), Port: 5} }
	wrong := func(text string, now time.Duration) int {
		for n := range 100 {
			if l.guess(peer(text), now, false) > 0 {
				return n
			}
		}
		return 100
	}
	if n := wrong("192.0.2.1", 0); n != guessRate.burst {
		t.Errorf("%d guesses", n)
	}
	if n := wrong("::ffff:192.0.2.1", 0); n != 0 {
		t.Errorf("the same address in another form has %d more", n)
	}
	if n := wrong("2001:db8::1", 0) + wrong("2001:db8::ffff:1", 0); n != guessRate.burst {
		t.Errorf("a host with a /64 has %d", n)
	}
	if n := wrong("2001:db8:0:1::1", 0); n != guessRate.burst {
		t.Errorf("another /64 has %d", n)
	}
	for i := range maxPeers + 100 {
		l.guess(peer(fmt.Sprintf("10.0.%d.%d", i/256, i%256)), 0, false)
	}
	if len(l.peers) != maxPeers {
		t.Errorf("%d peers are known", len(l.peers))
	}
	if n := wrong("198.51.100.1", 0); n != 0 { // those without room share a meter, which is used up
		t.Errorf("a peer above the bound has %d guesses", n)
	}
	if n := wrong("198.51.100.1", time.Hour); n != guessRate.burst || len(l.peers) != 1 {
		t.Errorf("later it has %d, and %d peers are known", n, len(l.peers))
	}
	if l.guess(peer("203.0.113.1"), time.Hour, true); len(l.peers) != 1 {
		t.Errorf("a right token leaves a peer")
	}
	if got := networkOf(&net.UnixAddr{}); got.IsValid() {
		t.Errorf("a peer without an address is %v", got)
	}
	if got := networkOf(&net.TCPAddr{}); got.IsValid() {
		t.Errorf("a peer without an IP is %v", got)
	}
}

// TestV3_StrangersDoNotLockTheOperatorOut: who has more networks than the table has room for uses the shared meter up, and who has shown the right token before is let
// in all the same. His own wrong tokens count.
func TestV3_StrangersDoNotLockTheOperatorOut(t *testing.T) {
	l := newLimits()
	peer := func(n int) net.Addr {
		return &net.TCPAddr{IP: net.IP{10, byte(n >> 16), byte(n >> 8), byte(n)}, Port: 5}
	}
	operator := &net.TCPAddr{IP: net.IP{192, 0, 2, 1}}
	if l.guess(operator, 0, true) > 0 {
		t.Fatal("the right token is refused")
	}
	for n := range 2 * maxPeers {
		l.guess(peer(n), time.Second, false)
	}
	if l.guess(peer(1<<20), time.Second, false) == 0 {
		t.Fatal("strangers have looks left")
	}
	if wait := l.guess(operator, time.Second, true); wait > 0 {
		t.Errorf("the operator waits %v", wait)
	}
	for range guessRate.burst {
		if l.guess(operator, time.Second, false) > 0 {
			t.Error("a wrong token of his is not looked at")
		}
	}
	if l.guess(operator, time.Second, true) == 0 {
		t.Error("after many wrong tokens one more look")
	}
	for n := range 10 * maxTrusted {
		l.guess(peer(n), time.Hour+time.Duration(n), true)
	}
	if len(l.trusted) != maxTrusted || len(l.peers) > maxPeers+maxTrusted {
		t.Errorf("%d trusted peers, %d in the table", len(l.trusted), len(l.peers))
	}
	for _, n := range []int{10*maxTrusted - 1, 9 * maxTrusted} {
		if _, known := l.trusted[networkOf(peer(n))]; !known {
			t.Errorf("a late one is forgotten: %d", n)
		}
	}
}

// TestV3_RightTokensAtOnceAreNotCounted: a page asks for many things at once.
func TestV3_RightTokensAtOnceAreNotCounted(t *testing.T) {
	l := newLimits()
	var wait sync.WaitGroup
	var refused atomic.Int32
	for range 8 * guessRate.burst {
		wait.Go(func() {
			if l.guess(&net.TCPAddr{IP: net.IP{192, 0, 2, 1}}, 0, true) > 0 {
				refused.Add(1)
			}
		})
	}
	if wait.Wait(); refused.Load() > 0 || len(l.peers) != 0 {
		t.Errorf("%d were refused", refused.Load())
	}
}

func TestV3_RefusalsAreLoggedInSamples(t *testing.T) {
	var clock hands
	_, far, lines, _ := withBook(t, Settings{Clock: clock.read})
	for range 100 {
		if a := send(t, far, "GET", QueuePath); a.status != 401 {
			t.Fatalf("%d", a.status)
		}
	}
	if got := lines.take(); len(got) != refusalRate.burst {
		t.Errorf("%d lines of 100 refusals", len(got))
	}
	if send(t, far, "GET", QueuePath, "Sec-Fetch-Site: cross-site"); len(lines.take()) != 1 {
		t.Error("another reason has no line of its own")
	}
	clock.advance(refusalRate.every)
	send(t, far, "GET", QueuePath)
	if got := lines.take(); len(got) != 1 || !strings.HasSuffix(got[0], "more=90") {
		t.Errorf("the next line is %q", got)
	}
}
