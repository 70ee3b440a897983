package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settingsCommand is arkvoryctl settings: the live settings of the queue.
type settingsCommand struct {
	Get   settingsGet   `cmd:"" help:"Show what is in force and where each value comes from."`
	Set   settingsSet   `cmd:"" help:"Change some fields and leave the others as they are."`
	Edit  settingsEdit  `cmd:"" help:"Change them in your editor, as JSON."`
	Reset settingsReset `cmd:"" help:"Give fields, or all of them, back to the environment."`
}

// Help is the part of the help below the commands.
func (settingsCommand) Help() string { return settingsHelp }

const settingsHelp = `A change is in force from the queue's next decision; running downloads are not touched. It replaces what was read: when somebody else was faster nothing is changed, what he changed is shown, and the exit code is 7.

Fields: strategy, mode, sessions, sessionsElastic, reserve, perPrincipal, weights.CLASS, windows.CLASS, principals.ID, quotas.bytesPerDay, quotas.bytesPerWeek, quotas.zone, sessionMinBytes, idleSeconds, agingMinutes, preempt, rangesPerSession, and whatever a newer server has.`

// settingsDocument is the answer of /settings. Overrides are what was changed live, effective what is in force: environment and overrides.
type settingsDocument struct {
	Revision  int64      `json:"revision"`
	Overrides object     `json:"overrides"`
	Effective object     `json:"effective"`
	Admission string     `json:"admission"`
	Problem   string     `json:"problem"`
	Persisted bool       `json:"persisted"`
	UpdatedBy string     `json:"updatedBy"`
	UpdatedAt *time.Time `json:"updatedAt"`
}

// settings asks for the settings: as they came, and read.
func (d *desk) settings(ctx context.Context) ([]byte, *settingsDocument, error) {
	text, err := d.get(ctx, "settings", nil)
	if err != nil {
		return nil, nil, err
	}
	doc, err := d.settingsIn(text)
	return text, doc, err
}

func (d *desk) settingsIn(text []byte) (*settingsDocument, error) {
	doc := new(settingsDocument)
	if err := d.read(text, doc, "revision", "overrides", "effective"); err != nil {
		return nil, err
	}
	return doc, nil
}

// put sends a change and returns the settings in force after it.
func (d *desk) put(ctx context.Context, expected int64, overrides object) ([]byte, *settingsDocument, error) {
	body, err := json.Marshal(struct {
		Expected  int64  `json:"expectedRevision"`
		Overrides object `json:"overrides"`
	}{expected, overrides})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot write the change: %w", err)
	}
	text, err := d.call(ctx, http.MethodPut, "settings", nil, body)
	if err != nil {
		return nil, nil, err
	}
	doc, err := d.settingsIn(text)
	return text, doc, err
}

// source says where the value of a shown name comes from.
func (s *settingsDocument) source(name string) string {
	field, part, _ := strings.Cut(name, ".")
	override := s.Overrides.get(field)
	if group, ok := objectOf(override); ok && part != "" && apart[field] {
		override = group.get(part)
	}
	switch {
	case override == nil:
		return "environment"
	case s.Problem != "":
		return "environment, the override is not in force"
	}
	return "override"
}

// settingsGet is arkvoryctl settings get.
type settingsGet struct {
	connection
	Fields []string `arg:"" optional:"" name:"field" predictor:"fields" help:"Show these only, for example mode or windows.bulk."`
	JSON   bool     `name:"json" help:"Print the server's JSON document; with fields one object of their values."`
}

// Help is the part of the help below the flags.
func (settingsGet) Help() string {
	return deskHelp(`Examples:

  arkvoryctl settings get

  arkvoryctl settings get mode sessions windows

  arkvoryctl settings get --json > settings.json   # settings set --from settings.json puts it back`)
}

// Run shows the settings.
func (g *settingsGet) Run(to streams) error {
	return g.visit(to, func(ctx context.Context, d *desk) error {
		text, doc, err := d.settings(ctx)
		if err != nil {
			return err
		}
		if len(g.Fields) == 0 {
			if g.JSON {
				return printIndented(to.out, text)
			}
			return printLines(to.out, doc.lines(wallClock()))
		}
		chosen, err := doc.chosen(g.Fields)
		if err != nil {
			return inputError{err}
		}
		if g.JSON {
			values, err := json.Marshal(object(chosen))
			if err != nil {
				return fmt.Errorf("cannot print the settings: %w", err)
			}
			return printIndented(to.out, values)
		}
		return printLines(to.out, doc.table(chosen))
	})
}

// chosen are the members with these names: a field, or a part of one. It is an error when there is none.
func (s *settingsDocument) chosen(names []string) ([]member, error) {
	var all []member
	for _, name := range names {
		if value := s.Effective.get(name); value != nil {
			all = append(all, member{name, value})
			continue
		}
		found := slices.IndexFunc(s.Effective.flat(), func(one member) bool { return one.name == name })
		if found < 0 {
			return nil, fmt.Errorf("cannot show %q: must be a field of the settings, one of %s", clip(oneLine(name)), strings.Join(s.fields(), ", "))
		}
		all = append(all, s.Effective.flat()[found])
	}
	return all, nil
}

// fields are the names that can be changed, as this server has them.
func (s *settingsDocument) fields() []string {
	var all []string
	for _, one := range s.Effective {
		all = append(all, oneLine(one.name))
	}
	return all
}

// table are fields with their values and where they come from.
func (s *settingsDocument) table(members []member) []string {
	rows := [][]string{{"field", "value", "from"}}
	for _, one := range object(members).flat() {
		rows = append(rows, []string{oneLine(one.name), showValue(one.name, one.value), s.source(one.name)})
	}
	return columnsOf(rows)
}

// lines are the settings for people.
func (s *settingsDocument) lines(now time.Time) []string {
	lines := []string{s.head(now)}
	if s.Problem != "" {
		lines = append(lines, "problem: "+oneLine(s.Problem))
	}
	lines = append(append(lines, ""), s.table(s.Effective)...)
	var unknown []member // saved by a newer server, perhaps
	for _, one := range s.Overrides {
		if s.Effective.get(one.name) == nil {
			unknown = append(unknown, one)
		}
	}
	if len(unknown) > 0 {
		lines = append(lines, "", "overrides that this server does not know:")
		for _, one := range object(unknown).flat() {
			lines = append(lines, oneLine(one.name)+"="+showValue(one.name, one.value))
		}
	}
	return lines
}

// head says which revision it is, whose, and whether it outlives the process.
func (s *settingsDocument) head(now time.Time) string {
	by, kept := "nobody changed anything", "kept over a restart"
	if s.Revision > 0 {
		by = "changed by " + word(s.UpdatedBy)
		if s.UpdatedAt != nil {
			by += " at " + showClock(*s.UpdatedAt, now)
		}
	}
	if !s.Persisted {
		kept = "lost when the process ends"
	}
	return join("revision "+strconv.FormatInt(s.Revision, 10), by, kept)
}

// difference says what changed between two sets of fields, a line each.
func difference(before, after object) []string {
	older, newer := object(before.flat()), object(after.flat())
	// An empty field that has parts on the other side is told by these.
	filled := func(other object, name string) bool {
		return slices.ContainsFunc(other, func(one member) bool { return strings.HasPrefix(one.name, name+".") })
	}
	var rows [][]string
	row := func(name, was, is string) { rows = append(rows, []string{"  " + oneLine(name), was, "->", is}) }
	for _, one := range older {
		switch now := newer.get(one.name); {
		case now == nil && !filled(newer, one.name):
			row(one.name, showValue(one.name, one.value), "(none)")
		case now != nil && !same(one.value, now):
			row(one.name, showValue(one.name, one.value), showValue(one.name, now))
		}
	}
	for _, one := range newer {
		if older.get(one.name) == nil && !filled(older, one.name) {
			row(one.name, "(none)", showValue(one.name, one.value))
		}
	}
	return columnsOf(rows)
}

// equalObjects reports whether two sets of overrides mean the same.
func equalObjects(a, b object) bool {
	first, err1 := json.Marshal(a)
	second, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && (bytes.Equal(first, second) || same(first, second))
}
