package ticket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestT3_SignerWithoutAKey works without tickets until it gets its key, which it keeps.
func TestT3_SignerWithoutAKey(t *testing.T) {
	session := HashSession("p", "o", "c")
	good := NewSigner(testKey).Append(nil, session, testArrival, testNow)
	var none *Signer
	s := NewPendingSigner()
	if none.Ready() || s.Ready() {
		t.Error("ready without a key")
	}
	if got := s.Append([]byte("x"), session, testArrival, testNow); string(got) != "x" {
		t.Errorf("signed %q", got)
	}
	if at, _, o := s.Verify(good, session, testNow); o != BadMAC || !at.IsZero() {
		t.Errorf("judged %v", o)
	}
	if _, _, o := s.Verify([]byte("junk"), session, testNow); o != Malformed {
		t.Errorf("judged %v", o)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("derived from nothing")
			}
		}()
		s.Derive("x")
	}()
	var wait sync.WaitGroup
	var set [8]bool
	for i := range set {
		wait.Go(func() { set[i] = s.SetKey(testKey) })
	}
	wait.Wait()
	if n := strings.Count(fmt.Sprint(set), "true"); n != 1 || !s.Ready() || s.SetKey(Key{9}) {
		t.Errorf("%d of the racers set it", n)
	}
	if got := s.Append(nil, session, testArrival, testNow); string(got) != string(good) {
		t.Errorf("signed %q, want %q", got, good)
	}
	if _, _, o := s.Verify(good, session, testNow); o != Accepted {
		t.Errorf("judged %v", o)
	}
}

func TestT3_DatabaseSourceAsksUntilItHasTheKey(t *testing.T) {
	asked, fails := 0, errors.New("down")
	s := FromDatabase(func(context.Context) ([KeyBytes]byte, error) {
		asked++
		return testKey, fails
	})
	if key, err := s.Key(t.Context()); !errors.Is(err, fails) || key != (Key{}) {
		t.Errorf("%v", err)
	}
	fails = nil
	for range 3 {
		if key, err := s.Key(t.Context()); err != nil || key != testKey {
			t.Errorf("%v", err)
		}
	}
	if asked != 2 || s.Name() != SourceDatabase {
		t.Errorf("asked %d times, %s", asked, s.Name())
	}
}
