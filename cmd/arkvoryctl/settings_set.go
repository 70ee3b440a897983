package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// settingsSet is arkvoryctl settings set.
type settingsSet struct {
	connection
	Changes  []string `arg:"" optional:"" name:"field=value" predictor:"changes" help:"Fields with their new values."`
	From     string   `placeholder:"FILE" help:"Take all overrides from a JSON file (- is standard input): an object of overrides, or what settings get --json prints. Those that it lacks are given back to the environment."`
	Revision *int64   `placeholder:"N" help:"Change nothing unless this is the current revision (the one that is read)."`
	JSON     bool     `name:"json" help:"Print the settings after the change as the server's JSON document."`
}

// Help is the part of the help below the flags.
func (settingsSet) Help() string {
	return deskHelp(settingsHelp + `

Examples:

  arkvoryctl settings set strategy=smallest-first sessions=20 weights.bulk=3

  arkvoryctl settings set mode=queue-all

  arkvoryctl settings set windows.bulk=` + "'22:00-06:00 Europe/Berlin'" + ` windows.background=` + windowExample + `

  arkvoryctl settings set windows.bulk=always sessionMinBytes=32MiB agingMinutes=1h

  arkvoryctl settings set principals.user:ci=` + quotaExample + ` quotas.bytesPerDay=2TB principals.user:old=none

  arkvoryctl settings set --from settings.json

A value is JSON, or a text, or bytes and durations with their units. Overrides that are not named stay as they are.`)
}

// Run reads the settings, changes them and sends them back.
func (s *settingsSet) Run(to streams) error {
	if len(s.Changes) == 0 && s.From == "" {
		return inputError{errors.New("cannot change nothing: must be FIELD=VALUE or --from FILE, for example sessions=20")}
	}
	var given *givenSettings
	if s.From != "" {
		var err error
		if given, err = readGiven(s.From, os.Stdin); err != nil {
			return inputError{err}
		}
	}
	return s.visit(to, func(ctx context.Context, d *desk) error {
		return d.change(ctx, to, s.JSON, func(doc *settingsDocument) (int64, object, error) {
			expected, overrides := doc.Revision, doc.Overrides
			if given != nil {
				overrides = given.overrides
				if given.expected != nil {
					expected = *given.expected
				}
			}
			if s.Revision != nil {
				expected = *s.Revision
			}
			overrides, err := doc.changed(overrides, s.Changes)
			return expected, overrides, err
		})
	})
}

// givenSettings are the overrides of a file, and the revision that they are for, where it says so.
type givenSettings struct {
	overrides object
	expected  *int64
}

// mostSettings bounds a file of settings: the server takes no more.
const mostSettings = 8 << 20

// readGiven reads --from. The file is an object of overrides; or the body of a PUT, whose expectedRevision counts; or an answer to a GET, whose overrides alone do: it
// may be old, and putting an old state back is what it was kept for.
func readGiven(path string, input io.Reader) (*givenSettings, error) {
	shown := "--from " + clip(path)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read --from: %w", err)
		}
		defer f.Close()
		input = f
	}
	text, err := io.ReadAll(io.LimitReader(input, mostSettings+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", shown, err)
	}
	if len(text) > mostSettings {
		return nil, fmt.Errorf("cannot use %s: must have at most %s", shown, showBytes(mostSettings))
	}
	return parseGiven(shown, text)
}

// parseGiven reads the text of such a file; shown is what a person calls it.
func parseGiven(shown string, text []byte) (*givenSettings, error) {
	wrong := fmt.Errorf("cannot use %s: must be a JSON object of overrides with each field once, for example {\"sessions\":20}", shown)
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n")) + 1
			return nil, fmt.Errorf("cannot use %s: line %d is no JSON: %w", shown, line, err)
		}
		return nil, wrong
	}
	inner := o.get("overrides")
	if inner == nil {
		return &givenSettings{overrides: o}, nil
	}
	given := new(givenSettings)
	if json.Unmarshal(inner, &given.overrides) != nil {
		return nil, wrong
	}
	if value := o.get("expectedRevision"); value != nil {
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("cannot use %s: expectedRevision must be a whole number from 0, for example 0", shown)
		}
		given.expected = &n
	}
	return given, nil
}

// changed returns overrides with changes FIELD=VALUE made to them. The document says what the other parts of a field are where only one is changed.
func (s *settingsDocument) changed(overrides object, changes []string) (object, error) {
	var faults []error
	for _, change := range changes {
		name, text, ok := strings.Cut(change, "=")
		if !ok || name == "" {
			faults = append(faults, fmt.Errorf("cannot use %q: must be FIELD=VALUE, for example sessions=20", clip(oneLine(change))))
			continue
		}
		next, err := s.with(overrides, name, text)
		if err != nil {
			faults = append(faults, fmt.Errorf("cannot use %s: %w", oneLine(clip(name)), err))
			continue
		}
		overrides = next
	}
	if len(faults) > 0 {
		return nil, inputError{errors.Join(faults...)}
	}
	return overrides, nil
}

// apart are the fields whose parts stand on their own. Of another, such as weights, all parts are sent together: what is not changed goes as it is in force.
var apart = map[string]bool{"windows": true, "principals": true, "quotas": true}

// with returns overrides with one change made to them.
func (s *settingsDocument) with(overrides object, name, text string) (object, error) {
	field, part, inner := strings.Cut(name, ".")
	if !inner {
		if weights, ok := weightsOf(text); ok && field == "weights" {
			return overrides.with(field, weights), nil
		}
		return overrides.with(field, valueOf(field, text)), nil
	}
	if part == "" {
		return nil, fmt.Errorf("must be a name behind the dot, for example %s.bulk", field)
	}
	group, ok := objectOf(overrides.get(field))
	if !ok && !apart[field] {
		group, _ = objectOf(s.Effective.get(field))
	}
	value, err := partOf(field, part, text)
	switch {
	case err != nil:
		return nil, err
	case value == nil:
		group = group.without(part)
	default:
		group = group.with(part, value)
	}
	whole, err := json.Marshal(group)
	if err != nil {
		return nil, err
	}
	return overrides.with(field, whole), nil
}

// partOf reads the value of one member of a field; nil takes it out.
func partOf(field, part, text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	switch {
	case field == "windows" && (text == "always" || text == "open"), field == "principals" && text == "none":
		return nil, nil
	case field == "windows":
		return windowOf(text)
	case field == "principals":
		return quotaOf(text)
	}
	return valueOf(part, text), nil
}

// change reads the settings, asks for the new overrides and the revision they are for, sends them and says what came of it.
func (d *desk) change(ctx context.Context, to streams, asJSON bool, decide func(*settingsDocument) (int64, object, error)) error {
	text, before, err := d.settings(ctx)
	if err != nil {
		return err
	}
	expected, overrides, err := decide(before)
	if err != nil {
		return err
	}
	if expected == before.Revision && equalObjects(overrides, before.Overrides) {
		if asJSON {
			return printIndented(to.out, text)
		}
		return printLines(to.out, []string{"nothing to change: " + before.head(wallClock())})
	}
	text, after, err := d.put(ctx, expected, overrides)
	if err != nil {
		return d.explainConflict(ctx, err, before, expected)
	}
	if asJSON {
		return printIndented(to.out, text)
	}
	return printLines(to.out, after.since(before))
}

// since says what a change did.
func (s *settingsDocument) since(before *settingsDocument) []string {
	lines := []string{s.head(wallClock())}
	if s.Problem != "" {
		lines = append(lines, "problem: "+oneLine(s.Problem))
	}
	for _, part := range []struct {
		title       string
		older, newr object
	}{{"overrides:", before.Overrides, s.Overrides}, {"in force:", before.Effective, s.Effective}} {
		if changed := difference(part.older, part.newr); len(changed) > 0 {
			lines = append(append(lines, part.title), changed...)
		}
	}
	return lines
}

// explainConflict adds to a revision_mismatch what the other one changed. Nothing is sent again: whether the change still makes sense beside that is for its author to say.
func (d *desk) explainConflict(ctx context.Context, err error, read *settingsDocument, expected int64) error {
	var fault *deskFault
	if !errors.As(err, &fault) || fault.reason != "revision_mismatch" {
		return err
	}
	lines := []string{fmt.Sprintf("nothing was changed: revision %d was expected", expected)}
	_, now, again := d.settings(ctx)
	switch {
	case again != nil:
		lines[0] += " and is not the current one"
	case now.Revision == read.Revision: // the revision was given by hand
		lines[0] += ", the current one is"
		lines = append(lines, now.head(wallClock()))
	default:
		lines[0] += ", and meanwhile there is"
		lines = append(lines, now.head(wallClock()))
		if changed := difference(read.Overrides, now.Overrides); len(changed) > 0 {
			lines = append(append(lines, "overrides that changed since they were read:"), changed...)
		} else {
			lines = append(lines, "its overrides are those that were read")
		}
	}
	lines = append(lines, "look at it (arkvoryctl settings get) and give your change again")
	return &deskFault{code: fault.code, status: fault.status, reason: fault.reason, text: strings.Join(lines, "\n"), cause: err}
}

// settingsReset is arkvoryctl settings reset.
type settingsReset struct {
	connection
	Fields   []string `arg:"" optional:"" name:"field" predictor:"fields" help:"Give these back, for example mode or windows.bulk; without any, all of them."`
	Revision *int64   `placeholder:"N" help:"Change nothing unless this is the current revision (the one that is read)."`
	JSON     bool     `name:"json" help:"Print the settings after the change as the server's JSON document."`
}

// Help is the part of the help below the flags.
func (settingsReset) Help() string {
	return deskHelp(`Examples:

  arkvoryctl settings reset mode

  arkvoryctl settings reset windows.bulk weights

  arkvoryctl settings reset   # the environment alone rules`)
}

// Run takes overrides away.
func (r *settingsReset) Run(to streams) error {
	return r.visit(to, func(ctx context.Context, d *desk) error {
		return d.change(ctx, to, r.JSON, func(doc *settingsDocument) (int64, object, error) {
			expected := doc.Revision
			if r.Revision != nil {
				expected = *r.Revision
			}
			if len(r.Fields) == 0 {
				return expected, object{}, nil
			}
			overrides, err := doc.without(r.Fields)
			return expected, overrides, err
		})
	})
}

// without returns the overrides without some fields or parts of fields. One that is not overridden is no fault; one that is no field is.
func (s *settingsDocument) without(names []string) (object, error) {
	overrides := s.Overrides
	for _, name := range names {
		field, part, inner := strings.Cut(name, ".")
		if s.Effective.get(field) == nil && s.Overrides.get(field) == nil {
			return nil, inputError{fmt.Errorf("cannot reset %q: must be a field of the settings, one of %s", clip(oneLine(name)), strings.Join(s.fields(), ", "))}
		}
		if !inner {
			overrides = overrides.without(field)
			continue
		}
		group, ok := objectOf(overrides.get(field))
		if !ok || !slices.ContainsFunc(group, func(one member) bool { return one.name == part }) {
			continue
		}
		if group = group.without(part); len(group) == 0 {
			overrides = overrides.without(field)
			continue
		}
		if !apart[field] {
			return nil, inputError{fmt.Errorf("cannot reset %s alone: its parts stand together; reset %s", oneLine(name), field)}
		}
		whole, err := json.Marshal(group)
		if err != nil {
			return nil, err
		}
		overrides = overrides.with(field, whole)
	}
	return overrides, nil
}
