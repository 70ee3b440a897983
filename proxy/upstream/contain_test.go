package upstream

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestL3_APanicOfOneReportCostsNoOther: what stands behind it in the same batch is worked off all the same, the end of the pool above all; and what stands behind it among the
// commands of one step is carried out.
func TestL3_APanicOfOneReportCostsNoOther(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	active, goOn := make(chan struct{}), make(chan struct{})
	var panics atomic.Int32
	p := openPool(t, func(set *Settings) {
		set.OnPanic = func(any, []byte) { panics.Add(1) }
		set.OnGeneration = func(_ string, _ uint64, gone bool) {
			if !gone {
				close(active)
				<-goOn
				panic("of a test")
			}
		}
	}, "http://"+s.addr().String())
	<-active
	p.tell(report{kind: reportLost}) // of no writer: a defect
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Close()
	}()
	eventually(t, "both reports are told", func() bool {
		p.inMu.Lock()
		defer p.inMu.Unlock()
		return len(p.inbox) == 2
	})
	close(goOn)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the pool does not end")
		p.tell(report{kind: reportStop})
		<-ended
	}
	if n := panics.Load(); n != 2 {
		t.Errorf("%d panics", n)
	}
}

// TestL3_APanicOfTheObserverKeepsNoWriterBack: the command behind it puts the first connection up for choice.
func TestL3_APanicOfTheObserverKeepsNoWriterBack(t *testing.T) {
	t.Parallel()
	s := newStore(t, "")
	p := openPool(t, func(set *Settings) {
		set.OnPanic = func(any, []byte) {}
		set.OnGeneration = func(_ string, _ uint64, gone bool) { panic("of a test") }
	}, "http://"+s.addr().String())
	eventually(t, "it is covered", func() bool { ok, _ := p.Covered(); return ok })
	eventually(t, "the connection is for choice", func() bool { idle, _ := p.Connections(); return idle == 1 })
}
