package client

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// TestC3_KillOnASlowDiskFetchesLittleAgain: flushes that take long cost a killed process the bytes of half a second and one read of each
// range; a power cut costs those that were not flushed; a damaged trail costs no more than none.
func TestC3_KillOnASlowDiskFetchesLittleAgain(t *testing.T) {
	for name, one := range map[string]struct {
		powerCut bool
		spoil    func(d *memDisk)
		most     int
	}{
		"killed":        {most: 2*4*64<<10 + 4*64<<10, spoil: func(*memDisk) {}},
		"power cut":     {powerCut: true, most: 4 << 20, spoil: func(*memDisk) {}},
		"trail damaged": {most: 4 << 20, spoil: func(d *memDisk) { d.names["/d/out.arkvory.trail"].data[40] ^= 1 }},
		"part damaged":  {most: 4 << 20, spoil: func(d *memDisk) { d.names["/d/out.part"].data[5<<18] ^= 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				want := noise(70, 4<<20)
				o := newOrigin(want)
				o.pace = 500 * time.Millisecond
				d := newMemDisk()
				d.lag = 8 * time.Second
				r := newTrial(t, o)
				r.disk, r.opts.RangeBytes = d, 256<<10
				r.watch = func(e Event) {
					if e.Bytes > 9<<18 {
						d.mu.Lock()
						d.dead = true
						d.mu.Unlock()
					}
				}
				r.ends(errDead)
				var before int
				for _, e := range r.events {
					before = max(before, int(e.Bytes))
				}
				flushed := r.bytesRecorded()
				if flushed > 1<<20 {
					t.Fatalf("%d bytes were flushed: the disk is not slow", flushed)
				}
				next := d.restart(rand.New(rand.NewPCG(1, 1)), one.powerCut)
				one.spoil(next)
				next.lag = 0
				r.disk, r.watch, o.pace, r.events = next, nil, 0, nil
				result := r.gets(want)
				kept := int(r.events[0].Bytes)
				if !result.Resumed && name == "killed" || before-kept > one.most {
					t.Errorf("%d of %d bytes are kept, %d of them were flushed", kept, before, flushed)
				}
				if name == "part damaged" && kept > before-64<<10 {
					t.Errorf("%d of %d bytes are kept, though one of them is wrong", kept, before)
				}
			})
		})
	}
}

// TestC3_TrailOfAnotherDownloadCountsNothing even when its sums are right: it vouches for one state of one object.
func TestC3_TrailOfAnotherDownloadCountsNothing(t *testing.T) {
	in(t, func(t *testing.T) {
		first, second := noise(71, 1<<20), noise(72, 1<<20)
		o := newOrigin(first)
		o.pace = time.Second
		d := newMemDisk()
		r := newTrial(t, o)
		r.disk, r.opts.RangeBytes = d, 256<<10
		r.watch = func(e Event) {
			if e.Bytes > 512<<10 {
				d.mu.Lock()
				d.dead = true
				d.mu.Unlock()
			}
		}
		if _, err := r.run(t.Context()); !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		o.change(second, `"second"`)
		r.disk, r.watch = d.restart(rand.New(rand.NewPCG(1, 1)), false), nil
		r.opts.Fresh = true
		r.gets(second)
	})
}
