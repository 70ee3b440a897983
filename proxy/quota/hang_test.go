package quota

import (
	"testing"
	"time"
)

// TestX9_ADiskThatHangsHoldsUpTheFileAlone: the proxy's tick rolls the periods over and an operator changes the quotas while a write does not end.
func TestX9_ADiskThatHangsHoldsUpTheFileAlone(t *testing.T) {
	l := with(100, 0)
	l.sends("ann", 100)
	begun, disk, saved, done := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan struct{})
	go func() {
		saved <- l.save("quotas.json", func(string, []byte) error { close(begun); <-disk; return nil })
	}()
	<-begun
	go func() {
		defer close(done)
		l.Roll(midnight)
		l.SetRules(Rules{Default: Limits{50, 0}}, midnight)
		l.sends("bob", 50)
	}()
	patience := time.NewTimer(5 * time.Second)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		t.Error("the tick and the settings wait for the disk")
	}
	close(disk)
	if err := <-saved; err != nil {
		t.Error(err)
	}
	<-done
	l.stands(t, "ann", midnight, never)
	l.stands(t, "bob", midnight, midnight.AddDate(0, 0, 1))
	l.healthy(t)
}
