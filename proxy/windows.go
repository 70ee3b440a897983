package proxy

import (
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/queue"
)

// outsideEvery is how often what classes have of the band outside their windows is brought up to date.
const outsideEvery = 500 * time.Millisecond

// outsideBand is the band that shares outside of windows are taken of (W1): the configured download rate, else the measured one.
//
// The sessions of a class that began outside its window are a group of the download direction, numbered as the class; its limit is the class's share of the band. It is
// switched off by the window's opening and on by its closing, for bodies on their way too. Sessions that began inside are in no group, and neither are clients that are fed
// while they wait.
type outsideBand struct {
	tick     every        // of the watcher
	measured atomic.Int64 // bytes per second, 0 = not known yet: no limit until then
}

// tickOutside runs on the watcher's goroutine.
func (p *Proxy) tickOutside(now time.Duration) {
	if !p.outside.tick.due(now, outsideEvery) {
		return
	}
	limited := false
	for class := range queue.Classes {
		share := p.queue.Share(queue.Class(class))
		limited = limited || share > 0 && share < queue.WholeShare
	}
	if p.set.DownloadTotal.Off() {
		p.outside.measured.Store(bandAfter(p.outside.measured.Load(), p.queue.Snapshot().RateBytesPerSecond, limited))
	}
	for class := range queue.Classes {
		p.limitOutside(queue.Class(class))
	}
}

// bandAfter is what is known of the band after a measurement, 0 for none. While a class is limited the band only rises: what flows then is partly the limit's own doing, and
// a share of it, taken again and again, would end at nothing.
func bandAfter(known, measured int64, limited bool) int64 {
	if measured > known || measured > 0 && !limited {
		return measured
	}
	return known
}

// limitOutside sets the limit of a class's sessions that began outside its window. A share of 0 says only that nobody starts: what runs keeps the limit that it has. In a
// dry run nobody is delayed.
func (p *Proxy) limitOutside(class queue.Class) {
	share := p.queue.Share(class)
	if share == 0 {
		return
	}
	var limit bucket.Limit
	if share < queue.WholeShare && p.queue.Policy().Mode != queue.ModeDryRun {
		limit = p.outsideLimit(share)
	}
	p.downGov.ConfigureGroup(class.Index(), limit)
}

// outsideLimit is a share of the band, off while the band is not known.
func (p *Proxy) outsideLimit(share int) bucket.Limit {
	band := p.set.DownloadTotal.BytesPerSecond
	if band == 0 {
		band = p.outside.measured.Load()
	}
	if band == 0 {
		return bucket.Limit{}
	}
	return bucket.Limit{BytesPerSecond: max(band/queue.WholeShare*int64(share)+band%queue.WholeShare*int64(share)/queue.WholeShare, 1)}
}

// paceOutside lets the response of a session that began outside its window take part in its class's share. There is a stream even while nothing is limited: the body follows
// what changes meanwhile. A stream that fed the client before is not of the group and ends.
func (x *exchange) paceOutside() {
	class := x.grant.Class()
	x.p.limitOutside(class) // the tick may be half a second behind
	x.pace.Close()
	x.pace = x.p.downGov.OpenIn(x.id.Principal, class.Index())
}
