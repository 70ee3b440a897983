package drip

import (
	"errors"
	"fmt"
)

// job is one fetch that waits for a fetcher.
type job struct {
	piece *piece
	fetch Piece
}

var (
	errPanicked = errors.New("fetch panicked")
	errUnwanted = errors.New("nobody waits for the piece")
)

// fetch hands a fetch to the fetchers. Under the lock.
func (d *Dripper) fetch(p *piece, f Piece) {
	d.jobs = append(d.jobs, job{p, f})
	if d.workers < d.set.Fetchers {
		d.workers++
		d.wg.Go(d.work)
	}
}

// work fetches until there is nothing to fetch.
func (d *Dripper) work() {
	for {
		d.mu.Lock()
		if len(d.jobs) == 0 {
			d.workers--
			d.mu.Unlock()
			return
		}
		j := d.jobs[0]
		d.jobs[0] = job{}
		d.jobs = d.jobs[1:]
		if j.piece.refs == 0 { // nobody waits for it: gone under this lock, before somebody does
			d.store.loaded(j.piece, nil, errUnwanted)
			d.mu.Unlock()
			continue
		}
		data := d.store.buffer(j.piece)
		d.mu.Unlock()
		err := d.run(j.fetch, data)
		d.mu.Lock()
		if err != nil {
			data = nil
			j.piece.failedAt = d.now
			d.counts.Failed++
		} else {
			d.counts.Fetched++
			d.counts.FetchedBy += uint64(len(data))
		}
		d.store.loaded(j.piece, data, err)
		d.mu.Unlock()
	}
}

// run contains a panic of a fetch.
func (d *Dripper) run(f Piece, p []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanicked, v)
			if d.set.OnPanic != nil {
				d.set.OnPanic(v)
			}
		}
	}()
	return f.Fetch(d.ctx, p)
}
