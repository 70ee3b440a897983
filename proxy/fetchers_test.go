package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/arkvory/sidecar/proxy/drip"
)

// farPiece comes from an origin that is a tenth of a second away, as stores across a network are.
type farPiece struct{}

func (farPiece) Fetch(ctx context.Context, p []byte) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (farPiece) Piece(_, _ int64) drip.Piece { return farPiece{} }

// ear notes the longest silence that a client heard.
type ear struct {
	last    time.Time
	silence time.Duration
}

func (e *ear) TryWrite(p []byte) (int, error) {
	now := time.Now()
	e.silence = max(e.silence, now.Sub(e.last))
	e.last = now
	return len(p), nil
}

func (*ear) Cut() {}

// TestX2_ManyObjectsOfAFarOriginAreFedInTime: the limit's number of clients, each of an object of its own, and every one hears something in time although nothing is shared.
func TestX2_ManyObjectsOfAFarOriginAreFedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 4096
		d, err := drip.New(drip.Settings{BytesPerSecond: 1024, Limit: clients, StoreBytes: dripStore, Fetchers: dripFetchers,
			Budget: func() int64 { return assumedBand / 100 * 49 / 50 }})
		if err != nil {
			t.Fatal(err)
		}
		ears := make([]*ear, clients)
		began := time.Now()
		next := 0
		for tick := 0; tick < 4*120; tick++ { // two minutes
			for ; next < min(clients, (tick+1)*64); next++ {
				e := &ear{last: time.Now()}
				ears[next] = e
				x := d.Join("p")
				x.Begin(drip.Start{Object: [32]byte{1, byte(next), byte(next >> 8)}, Last: 1 << 30, SizeBytes: 1<<30 + 1, Sink: e, Source: farPiece{},
					Piece: make([]byte, drip.PieceBytes)})
				defer x.Leave()
			}
			<-time.After(drip.Step)
			synctest.Wait()
			d.Tick(time.Since(began))
		}
		late := 0
		worst := time.Duration(0)
		for _, e := range ears {
			e.silence = max(e.silence, time.Since(e.last))
			if worst = max(worst, e.silence); e.silence > 5*time.Second {
				late++
			}
		}
		if late > 0 {
			t.Errorf("%d of %d clients heard nothing for more than 15 s, the worst for %v", late, clients, worst)
		}
		d.Close()
	})
}
