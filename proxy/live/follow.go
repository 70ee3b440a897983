package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/arkvory/sidecar/config"
)

// Times of following: what another process saved is in force here at most followEvery + loadTime later (S3: within 10 s).
const (
	followEvery = 5 * time.Second
	loadTime    = 3 * time.Second
)

// Follow puts the changes of other processes in force until ctx ends: at once when the store calls, else at the next of its looks, every five seconds. A store that does
// not answer is the document's Problem until it does. It blocks; one goroutine runs it. It holds the desk's turn only to compare and apply, never while the store is asked.
func (d *Desk) Follow(ctx context.Context) {
	called := make(chan struct{}, 1)
	ended := make(chan struct{})
	if watched, ok := d.set.Store.(config.RecordWatcher); ok {
		go func() {
			defer close(ended)
			watched.Watch(ctx, func() {
				select {
				case called <- struct{}{}:
				default: // a look is due already
				}
			})
		}()
	} else {
		close(ended)
	}
	look := time.NewTicker(followEvery)
	defer look.Stop()
	for {
		select {
		case <-called:
		case <-look.C:
		case <-ctx.Done():
			<-ended
			return
		}
		d.refresh(ctx)
	}
}

// refresh reads the record once and adopts it when it is newer, or is another one of the same revision: then the store went back and was changed since, and all others go by
// what it holds. An answer that may be older than what became of the record meanwhile undoes nothing; where it was not, the next look finds the same.
func (d *Desk) refresh(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	moves := d.moves.Load()
	record, err := d.set.Store.Load(bounded)
	select {
	case d.turn <- struct{}{}:
		defer d.yield()
	case <-ctx.Done():
		return
	}
	if ctx.Err() != nil { // it failed because we stop
		return
	}
	before := d.Current()
	switch {
	case err != nil:
		d.troubleLocked(err)
	case moves != d.moves.Load(): // it was asked for before a change that was made here
	case record.Revision > d.record.Revision, record.Revision == d.record.Revision && !sameRecord(record, d.record):
		d.adoptLocked(record)
	case record.Revision < d.record.Revision:
		d.backLocked(record)
	default:
		d.trouble = ""
		d.retellLocked()
	}
	if now := d.Current(); d.set.Noticed != nil && (now.Revision != before.Revision || now.Problem != before.Problem) {
		d.set.Noticed(now)
	}
}

// backLocked takes note that the stored record went back, by a restore of the database perhaps. What is in force stays: nothing older is ever applied. But the stored
// revision is what a change has to expect from now on, else none could be saved any more.
func (d *Desk) backLocked(stored config.Record) {
	d.trouble = ""
	d.problem = fmt.Sprintf("the stored live settings went back from revision %d to %d (restored or emptied, perhaps); those of revision %d stay in force until the next change",
		d.record.Revision, stored.Revision, d.record.Revision)
	d.record = stored
	d.moves.Add(1)
	d.retellLocked()
}

// sameRecord reports whether two records of one revision are one change. What a store gives back is what it answered to the change.
func sameRecord(a, b config.Record) bool {
	none := func(o []byte) bool { return len(o) == 0 || string(o) == "{}" }
	return a.UpdatedBy == b.UpdatedBy && a.UpdatedAt.Equal(b.UpdatedAt) && (bytes.Equal(a.Overrides, b.Overrides) || none(a.Overrides) && none(b.Overrides))
}

// troubleLocked takes note that the store could not be read. Only its own words for others are shown: an error may name hosts and accounts.
func (d *Desk) troubleLocked(err error) {
	d.trouble = "cannot read the live settings: the store does not answer"
	var known *config.StoreError
	if errors.As(err, &known) {
		d.trouble = known.Error()
	}
	if d.record.Revision == 0 {
		d.trouble += "; the environment is in force"
	} else {
		d.trouble += "; what was read last stays in force"
	}
	d.retellLocked()
}

// retellLocked shows the present problem with what is in force.
func (d *Desk) retellLocked() {
	doc := d.Current()
	doc.Problem = d.problemLocked()
	doc.Revision = d.record.Revision
	d.doc.Store(&doc)
}

// problemLocked is what is wrong with the record, and with the store.
func (d *Desk) problemLocked() string {
	switch {
	case d.problem == "":
		return d.trouble
	case d.trouble == "":
		return d.problem
	}
	return d.problem + "; " + d.trouble
}
