package front

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/arkvory/sidecar/proxy/relay"
)

// pass returns after n steps of the coarse clock. It may be called in handlers.
func pass(t *testing.T, clock *atomic.Int64, n int) {
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	late := time.After(patience)
	for end := clock.Load() + int64(n)*int64(Tick); clock.Load() < end; {
		select {
		case <-poll.C:
		case <-late:
			t.Error("the clock stands still")
			return
		}
	}
}

// TestP3_StallCountsFromTheHeadThatCameLate: the upstream may take its time for the head. The old watcher counted the stall from the request, so that
// an answer whose head came later than that was cut with its first look.
func TestP3_StallCountsFromTheHeadThatCameLate(t *testing.T) {
	t.Parallel()
	const stall = 6
	b := start(t, func(s *Settings) { s.StallTimeout = stall * Tick }, func(c *Conn) bool {
		pass(t, c.Clock(), 2*stall) // nothing moves and nothing was sent: the wait for the head
		c.MarkSent()
		select {
		case <-c.Gone():
			t.Error("cut while the stall's time had just begun")
		case <-time.After(stall / 2 * Tick):
		}
		return reply(c)
	})
	b.dial().get("/").expect(200, "/")
}

// TestP3_PacedWaitIsNoStall: who waits for a grant waits for the proxy itself. The old watcher cut it as stalled. What stands still behind that is cut.
func TestP3_PacedWaitIsNoStall(t *testing.T) {
	t.Parallel()
	const stall = 2
	why := make(chan int32, 1)
	b := start(t, func(s *Settings) { s.StallTimeout = stall * Tick }, func(c *Conn) bool {
		c.MarkSent()
		c.Paced.Store(true)
		pass(t, c.Clock(), 4*stall)
		if w := c.Why(); w != GoneNot {
			t.Errorf("cut while it was paced: %d", w)
		}
		c.Paced.Store(false)
		<-c.Gone()
		why <- c.Why()
		return false
	})
	b.dial().get("/")
	if w := <-why; w != GoneStalled {
		t.Errorf("why %d", w)
	}
}

// TestA4_DeadlineGoesOnBehindAnEarlyAnswer: the head of an answer ended the deadline of the whole upload. Now its rest bounds the upload, both sides of it,
// and an upload that is over takes it away.
func TestA4_DeadlineGoesOnBehindAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} {
		b := start(t, nil, func(c *Conn) bool {
			c.Await(2 * Tick)
			c.MarkSent()
			c.Answered()
			read := make(chan error, 1)
			go func() { read <- c.Fill(1 << 10) }()
			if over {
				c.UploadOver()
				select {
				case err := <-read:
					t.Errorf("ended though it was over: %v", err)
				case <-time.After(6 * Tick):
				}
				c.InterruptReads()
				<-read
				c.ResumeReads()
				return reply(c)
			}
			if err := <-read; err == nil {
				t.Error("the sender was read on")
			}
			return reply(c)
		})
		b.dial().get("/").expect(200, "/")
	}
}

// TestA4_DeadlineBehindAnEarlyAnswerInterruptsTheUpstream: an upload stuck in front of an upstream that reads no more ends, too.
func TestA4_DeadlineBehindAnEarlyAnswerInterruptsTheUpstream(t *testing.T) {
	t.Parallel()
	u, shut := silentUpstream(t)
	b := start(t, nil, func(c *Conn) bool {
		defer shut() // by the goroutine that uses it
		c.Bind(u)
		c.Await(2 * Tick)
		c.Answered()
		if err := u.Fill(1 << 10); err == nil || !u.Interrupted() || c.Why() != GoneNot {
			t.Errorf("%v, interrupted %v, why %d", err, u.Interrupted(), c.Why())
		}
		return reply(c)
	})
	b.dial().get("/").expect(200, "/")
}

// TestL1_FreshConnectionBringsItsRequestToADrain: whoever connected to a stopping process was cut off at the next tick when its request was a moment late.
func TestL1_FreshConnectionBringsItsRequestToADrain(t *testing.T) {
	t.Parallel()
	b := start(t, nil, reply)
	b.s.StartDrain()
	c := b.dial()
	eventually(t, "it is accepted", func() bool { return b.s.Open() == 1 })
	pass(t, b.s.Clock(), 3)
	c.get("/late").expect(200, "/late")
	c.atEnd()
	c = b.dial() // one that never asks holds nothing up
	c.atEnd()
}

// TestL1_FreshConnectionFromBeforeTheDrainBringsItsRequest is the same for one that connected a moment before the drain began.
func TestL1_FreshConnectionFromBeforeTheDrainBringsItsRequest(t *testing.T) {
	t.Parallel()
	b := start(t, nil, reply)
	c := b.dial()
	eventually(t, "it is accepted", func() bool { return b.s.Open() == 1 })
	b.s.StartDrain()
	c.get("/late").expect(200, "/late")
	c.atEnd()
}

// silentUpstream is a connection to nobody.
func silentUpstream(t *testing.T) (*relay.Conn, func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	u, err := relay.NewConn(nc, true)
	if err != nil {
		t.Fatal(err)
	}
	return u, func() { _, _ = u.Close(), ln.Close() }
}
