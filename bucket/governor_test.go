package bucket

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestB1_ConfigureServesThoseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{MinBytesPerSecond}, Limit{}, SystemClock())
		defer g.Close()
		s := g.Open("a")
		defer s.Close()
		for g.Snapshot().GrantedBytes < uint64((Limit{MinBytesPerSecond}).Burst()) {
			if _, err := s.Take(197, nil); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		result := make(chan int64)
		go func() { n, _ := s.Take(1<<20, nil); result <- n }()
		synctest.Wait()
		g.Configure(Limit{}, Limit{})
		if n := <-result; n != 1<<20 || time.Since(start) != 0 {
			t.Errorf("after switching off: %d bytes after %v", n, time.Since(start))
		}
		if !g.Unlimited() || g.Open("b") != nil {
			t.Error("the direction is not unlimited")
		}
		g.Configure(Limit{1 << 20}, Limit{2 << 20})
		want := Snapshot{BytesPerSecond: 1 << 20, PerPrincipalBytesPerSecond: 2 << 20, BurstBytes: 104857,
			PerPrincipalBurstBytes: 209715, Principals: 1}
		got := g.Snapshot()
		want.GrantedBytes = got.GrantedBytes
		if got != want {
			t.Errorf("snapshot %+v, want %+v", got, want)
		}
	})
}

func TestB3_CancelledTakeReturnsAtOnceAndStreamGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
		defer g.Close()
		s := g.Open("a")
		defer s.Close()
		for g.core.total.bucket.level >= s.governor.core.quantum*unitsPerByte {
			s.Take(1<<20, nil)
		}
		gone := make(chan struct{})
		result := make(chan error)
		start := time.Now()
		go func() { _, err := s.Take(1<<20, gone); result <- err }()
		synctest.Wait()
		if _, err := s.Take(1, nil); !errors.Is(err, ErrBusy) {
			t.Errorf("a second Take: %v", err)
		}
		granted := g.Snapshot().GrantedBytes
		close(gone)
		if err := <-result; !errors.Is(err, ErrCancelled) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if n, err := s.Take(1<<20, gone); n != 0 || !errors.Is(err, ErrCancelled) {
			t.Errorf("a caller already gone got %d, %v", n, err)
		}
		if got := g.Snapshot(); got.GrantedBytes != granted || got.Waiting != 0 {
			t.Errorf("%+v after cancelling", got)
		}
		if n, err := s.Take(5000, nil); n != 5000 || err != nil {
			t.Errorf("the next Take: %d, %v", n, err)
		}
	})
}

// A quantum granted at the moment of leaving is spent, and its signal does not answer the next Take.
func TestB3_CancelRacingWithAGrant(t *testing.T) {
	g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
	defer g.Close()
	s := g.Open("a")
	defer s.Close()
	s.asking = true
	g.mu.Lock()
	g.core.ask(s, 1000, g.clock.Now())
	g.followUp(g.clock.Now(), nil) // answered by another event than its own
	level := g.core.total.bucket.level
	g.mu.Unlock()
	s.leave()
	if len(s.wake) != 0 || s.asking || g.core.total.bucket.level != level || g.Snapshot().GrantedBytes != 1000 {
		t.Fatalf("signals %d, granted %d", len(s.wake), g.Snapshot().GrantedBytes)
	}
}

func TestB5_RevokeStopsQuantaAndRestoreStartsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{1 << 20}, Limit{}, SystemClock())
		defer g.Close()
		results := make(chan error)
		for range 5 {
			go func() {
				s := g.Open("a")
				defer s.Close()
				for {
					if _, err := s.Take(1<<20, nil); err != nil {
						results <- err
						return
					}
				}
			}()
		}
		<-time.After(time.Second)
		synctest.Wait()
		g.Revoke()
		g.Revoke()
		for range 5 {
			if err := <-results; !errors.Is(err, ErrRevoked) {
				t.Errorf("a waiting Take: %v", err)
			}
		}
		s := g.Open("a")
		defer s.Close()
		granted := g.Snapshot().GrantedBytes
		if n, err := s.Take(1, nil); n != 0 || !errors.Is(err, ErrRevoked) || g.Snapshot().GrantedBytes != granted {
			t.Errorf("a new Take: %d, %v", n, err)
		}
		g.Configure(Limit{}, Limit{})
		if g.Unlimited() {
			t.Error("a revoked governor became unlimited")
		}
		if _, err := s.Take(1, nil); !errors.Is(err, ErrRevoked) {
			t.Errorf("after Configure: %v", err)
		}
		g.Configure(Limit{1 << 20}, Limit{})
		<-time.After(time.Second)
		g.Restore()
		g.Restore()
		start := time.Now()
		n, err := s.Take(10_486, nil)
		if waited := time.Since(start); n != 10_486 || err != nil || waited < 10*time.Millisecond {
			t.Errorf("after Restore: %d, %v in %v from an empty bucket", n, err, waited)
		}
	})
}

func TestL1_CloseFailsThoseWaitingAndIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{MinBytesPerSecond}, Limit{1 << 20}, SystemClock())
		s := g.Open("a")
		result := make(chan error)
		take := func(s *Stream) {
			for {
				if _, err := s.Take(1<<20, nil); err != nil {
					result <- err
					return
				}
			}
		}
		go take(s)
		synctest.Wait()
		s.Close()
		s.Close()
		if err := <-result; !errors.Is(err, ErrClosed) {
			t.Errorf("closing the stream: %v", err)
		}
		other := g.Open("b")
		go take(other)
		synctest.Wait()
		g.Close()
		g.Close()
		if err := <-result; !errors.Is(err, ErrClosed) {
			t.Errorf("closing the governor: %v", err)
		}
		g.Revoke()
		g.Restore()
		g.Configure(Limit{}, Limit{})
		if _, err := other.Take(1, nil); !errors.Is(err, ErrClosed) || g.Unlimited() {
			t.Errorf("after Close: %v", err)
		}
		other.Close()
		if _, err := s.Take(1, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed stream: %v", err)
		}
		if got := g.Snapshot(); got.Waiting != 0 || got.Principals != 1 { // b's bucket is full: it took nothing
			<-time.After(time.Second)
			if got = g.Snapshot(); got.Waiting != 0 || got.Principals != 0 {
				t.Errorf("left over: %+v", got)
			}
		}
	})
}

// Real goroutines in random order; run with -race.
func TestB1_ConcurrentStreamsCancelsAndSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGovernor(Limit{8 << 20}, Limit{3 << 20}, newLateClock(MaxLateness))
		defer g.Close()
		var group sync.WaitGroup
		for worker := range 24 {
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 1))
				for range 20 {
					s := g.Open(fmt.Sprint("p", random.IntN(5)))
					gone := make(chan struct{})
					leave := time.AfterFunc(time.Duration(random.Int64N(int64(400*time.Millisecond))), func() { close(gone) })
					for range random.IntN(20) {
						want := random.Int64N(200_000) + 1
						n, err := s.Take(want, gone)
						if err != nil && !errors.Is(err, ErrCancelled) && !errors.Is(err, ErrRevoked) || n > want || err == nil && n <= 0 {
							t.Errorf("Take(%d) = %d, %v", want, n, err)
						}
					}
					leave.Stop()
					s.Close()
				}
			})
		}
		group.Go(func() {
			for i := range 30 {
				<-time.After(50 * time.Millisecond)
				switch i % 5 {
				case 0:
					g.Revoke()
				case 1:
					g.Restore()
				case 2:
					g.Configure(Limit{}, Limit{3 << 20})
				case 3:
					g.Configure(Limit{2_000_000_000}, Limit{1 << 20})
				default:
					g.Configure(Limit{8 << 20}, Limit{})
				}
			}
		})
		group.Wait()
		<-time.After(2 * time.Second)
		if got := g.Snapshot(); got.Waiting != 0 || got.Principals != 0 || got.GrantedBytes == 0 {
			t.Errorf("left over: %+v", got)
		}
	})
}
