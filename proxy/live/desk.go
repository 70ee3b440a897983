package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// Settings of a Desk.
type Settings struct {
	// Base is the environment's policy; it must be valid.
	Base queue.Policy
	// Store keeps the record.
	Store config.RecordStore
	// Apply puts what a record decides in force. It is called in the desk's turn and must not call the desk.
	Apply func(Effective) error
	// Now is the wall clock.
	Now func() time.Time
	// Changed is told about each change that was carried out, once, in the order of the revisions; nil drops it.
	Changed func(admin.SettingsDocument)
	// Noticed is told what Follow found: the change of another process in force here, or another Problem, "" when it is over. It is called in the desk's turn and
	// must not call the desk; nil drops it.
	Noticed func(admin.SettingsDocument)
}

// Desk judges, keeps and applies changes of the settings; it implements admin.LiveSettings. It is safe for concurrent use.
type Desk struct {
	set Settings
	doc atomic.Pointer[admin.SettingsDocument] // what is in force

	// turn holds one token: who has it may touch record, and compare, swap and apply are one step. It is a mutex whose wait ends with a context: behind a store
	// that hangs every change gives up in its own time, else they would pile up until the listener has no connection left for a probe.
	turn    chan struct{}
	record  config.Record
	problem string // of the record
	trouble string // of the store, "" while it answers
	// moves counts what became of record, so that an answer of the store is known to be older than it.
	moves atomic.Int64
}

// New returns a desk with the stored record in force. A store that fails, or a record that does not fit, is its document's Problem.
func New(ctx context.Context, set Settings) *Desk {
	d := &Desk{set: set, turn: make(chan struct{}, 1)}
	d.turn <- struct{}{}
	defer d.yield()
	d.showLocked(baseOf(set.Base), "")
	record, err := set.Store.Load(ctx)
	if err != nil {
		d.troubleLocked(err)
		return d
	}
	if record.Revision > 0 {
		d.adoptLocked(record)
	}
	return d
}

func (d *Desk) yield() { <-d.turn }

// Current returns what is in force, without a lock.
func (d *Desk) Current() admin.SettingsDocument { return *d.doc.Load() }

// Change carries out {"expectedRevision": N, "overrides": {...}}: all of it or nothing. Errors as of admin.LiveSettings.
func (d *Desk) Change(ctx context.Context, body []byte, by string) (admin.SettingsDocument, error) {
	expected, text, wrong := request(body)
	if len(wrong) > 0 {
		return admin.SettingsDocument{}, &admin.SettingsError{Faults: wrong}
	}
	o, wrong := parse(text, false)
	next, more := effectiveOf(d.set.Base, o)
	for _, one := range more {
		wrong.add(one.Field, one.Rule, one.Example)
	}
	if len(wrong) > 0 {
		return admin.SettingsDocument{}, &admin.SettingsError{Faults: wrong}
	}
	kept, err := json.Marshal(o)
	if err != nil {
		return admin.SettingsDocument{}, fmt.Errorf("cannot write the settings: %w", err)
	}
	select {
	case d.turn <- struct{}{}:
		defer d.yield()
	case <-ctx.Done():
		return admin.SettingsDocument{}, fmt.Errorf("cannot save the settings: %w", context.Cause(ctx))
	}
	record, err := d.set.Store.Swap(ctx, expected, config.Record{Overrides: kept, UpdatedBy: by, UpdatedAt: d.set.Now().UTC()})
	switch {
	case errors.Is(err, config.ErrRevision):
		if record.Revision > d.record.Revision { // another process was faster
			d.adoptLocked(record)
		}
		return admin.SettingsDocument{}, &admin.RevisionError{Current: record.Revision}
	case errors.Is(err, config.ErrOverridesSize):
		wrong.add("overrides", fmt.Sprintf("at most %d bytes as they are kept", config.MaxOverridesBytes), json.RawMessage("{}"))
		return admin.SettingsDocument{}, &admin.SettingsError{Faults: wrong}
	case err != nil:
		return admin.SettingsDocument{}, fmt.Errorf("cannot save the settings: %w", err)
	}
	d.record, d.trouble = record, "" // a store that saves can be read
	d.moves.Add(1)
	d.applyLocked(next)
	doc := d.Current()
	if d.set.Changed != nil {
		d.set.Changed(doc)
	}
	return doc, nil
}

// adoptLocked puts a record of the store in force, or the environment when the record does not fit this server.
func (d *Desk) adoptLocked(record config.Record) {
	d.record, d.trouble = record, ""
	d.moves.Add(1)
	text := record.Overrides
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	o, wrong := parse(text, true)
	next, more := effectiveOf(d.set.Base, o)
	if wrong = append(wrong, more...); len(wrong) > 0 {
		d.applyLocked(baseOf(d.set.Base))
		d.showLocked(baseOf(d.set.Base), (&admin.SettingsError{Faults: wrong}).Error()+"; the environment is in force")
		return
	}
	d.applyLocked(next)
}

// applyLocked puts settings in force and shows them. What was judged is not refused; if it were, the old one stays and the problem says so. A panic
// of Apply goes on to the caller: the record is saved then, and what is in force may be either policy.
func (d *Desk) applyLocked(next Effective) {
	problem := "a defect met the change; send it again"
	defer func() {
		if problem != "" {
			before := d.Current()
			d.showLocked(baseOf(d.set.Base), "cannot apply the settings: "+problem)
			doc := d.Current() // of the record that is kept, so that it can be replaced, with what is in force
			doc.Effective, doc.Admission = before.Effective, before.Admission
			d.doc.Store(&doc)
		}
	}()
	if err := d.set.Apply(next); err != nil {
		problem = err.Error()
		return
	}
	problem = ""
	d.showLocked(next, "")
}

// showLocked makes the document of what is in force and the present record.
func (d *Desk) showLocked(now Effective, problem string) {
	d.problem = problem
	doc := admin.SettingsDocument{
		Revision: d.record.Revision, Overrides: d.record.Overrides, Effective: effective(now), Admission: Admission(now.Policy), Problem: d.problemLocked(),
		Persisted: d.set.Store.Persisted(), UpdatedBy: d.record.UpdatedBy,
	}
	if len(doc.Overrides) == 0 {
		doc.Overrides = json.RawMessage("{}")
	}
	if d.record.Revision > 0 {
		at := d.record.UpdatedAt
		doc.UpdatedAt = &at
	}
	d.doc.Store(&doc)
}

// request takes the envelope of a change apart.
func request(body []byte) (expected int64, text []byte, wrong faults) {
	const revisionRule, overridesRule = "the revision that was read, a whole number from 0", "a JSON object of the changed fields; {} returns to the environment"
	fields, err := object(body)
	switch err {
	case errNoObject:
		wrong.add("body", "one JSON object with expectedRevision and overrides", json.RawMessage(`{"expectedRevision":0,"overrides":{"sessions":8}}`))
		return 0, nil, wrong
	case errTwice:
		wrong.add(shown(fields[len(fields)-1].name), twiceRule, nil)
		return 0, nil, wrong
	}
	expected = -1
	for _, one := range fields {
		switch one.name {
		case "expectedRevision":
			if n := whole(one.value); n != nil && *n >= 0 {
				expected = *n
			}
		case "overrides":
			if text = one.value; text[0] != '{' {
				text = nil
			}
		default:
			wrong.add(shown(one.name), "expectedRevision and overrides are the only fields here", nil)
		}
	}
	if expected < 0 {
		wrong.add("expectedRevision", revisionRule, 0)
	}
	if text == nil {
		wrong.add("overrides", overridesRule, json.RawMessage("{}"))
	}
	return expected, text, wrong
}
