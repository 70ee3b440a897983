package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// sessionsList is arkvoryctl sessions list.
type sessionsList struct {
	connection
	State     string `enum:"waiting,active,remembered,all" default:"all" placeholder:"STATE" help:"Those in this state: waiting, active, remembered or all (all)."`
	Class     string `enum:",interactive,release,bulk,background" default:"" placeholder:"CLASS" predictor:"classes" help:"Those of this class."`
	Principal string `placeholder:"ID" help:"Those of this principal: its hash as shown (h:...), or its id."`
	Limit     string `placeholder:"N" help:"How many at most, 1..1000 (100); with --all how many are asked for at once (1000)."`
	After     string `placeholder:"CURSOR" help:"Go on behind the page that named this cursor."`
	All       bool   `help:"Page after page to the end, printed as they come."`
	ClearIDs  bool   `name:"clear-ids" help:"Show principals, objects and clients as they are; this is written into the sidecar's log."`
	JSON      bool   `name:"json" help:"Print the server's JSON document; with --all one session a line."`
}

// Help is the part of the help below the flags.
func (sessionsList) Help() string {
	return deskHelp(`Examples:

  arkvoryctl sessions list --state waiting --limit 20

  arkvoryctl sessions list --class bulk --principal h:1f2e3d4c5b6a7980

  arkvoryctl sessions list --all --json | jq -r 'select(.why == "window") | .id'

A queue that moves while it is read page by page may show a session twice or not at all.`)
}

const (
	pageDefault = 100
	pageMost    = 1000
)

// sessionsPage is one page of the list, its sessions as they came.
type sessionsPage struct {
	Total    int               `json:"total"`
	Sessions []json.RawMessage `json:"sessions"`
	Next     *string           `json:"next"`
}

// query judges the flags.
func (l *sessionsList) query() (url.Values, error) {
	limit := pageDefault
	if l.All {
		limit = pageMost
	}
	if l.Limit != "" {
		n, err := whole1(l.Limit, pageMost)
		if err != nil {
			return nil, faulty("--limit", l.Limit, "a whole number 1..1000", "100")
		}
		limit = n
	}
	query := idsQuery(l.ClearIDs)
	query.Set("state", l.State)
	query.Set("limit", strconv.Itoa(limit))
	for name, value := range map[string]string{"class": l.Class, "principal": l.Principal, "after": l.After} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query, nil
}

// Run prints a page, or all of them.
func (l *sessionsList) Run(to streams) error {
	query, err := l.query()
	if err != nil {
		return inputError{err}
	}
	return l.visit(to, func(ctx context.Context, d *desk) error {
		table := &sessionTable{out: to.out, now: wallClock()}
		for shown := 0; ; {
			document, err := d.get(ctx, "sessions", query)
			if err != nil {
				return err
			}
			var page sessionsPage
			if err := d.read(document, &page, "sessions", "next"); err != nil {
				return err
			}
			if err := l.show(to.out, d, table, document, page); err != nil {
				return err
			}
			shown += len(page.Sessions)
			switch {
			case !l.All || page.Next == nil:
				return l.end(to.out, page, shown, table.aged)
			case *page.Next == query.Get("after"):
				return failed(errors.New("the same cursor came twice"), "%s goes round in circles: the page after %d sessions names itself as the next", d.where(), shown)
			}
			query.Set("after", *page.Next)
		}
	})
}

// show prints what a page has.
func (l *sessionsList) show(out io.Writer, d *desk, table *sessionTable, document []byte, page sessionsPage) error {
	if l.JSON && !l.All {
		return printIndented(out, document)
	}
	for _, one := range page.Sessions {
		if l.JSON {
			if err := printCompact(out, one); err != nil {
				return err
			}
			continue
		}
		var row sessionRow
		if err := d.read(one, &row, "id", "state"); err != nil {
			return err
		}
		table.add(&row)
	}
	return table.flush()
}

// end says how many there are, where a person looks.
func (l *sessionsList) end(out io.Writer, page sessionsPage, shown int, aged bool) error {
	if l.JSON {
		return nil
	}
	line := counted(shown, "session")
	if shown == 0 {
		line = "no session"
	}
	if shown < page.Total {
		line += fmt.Sprintf(" of %d", page.Total)
	}
	if page.Next != nil {
		line += "; --after " + shellWord(*page.Next) + " shows the next, --all all of them"
	}
	lines := []string{line}
	if aged {
		lines = append(lines, "^ by age it stands in a higher class")
	}
	return printLines(out, lines)
}

// shellWord quotes a server's text for a command line where it has to be.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._:/=+-", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return shellQuote(oneLine(text))
}

// sessionTable prints sessions as they come: its columns have fixed widths, since the widest cell of pages to come is not known.
type sessionTable struct {
	out     io.Writer
	now     time.Time
	begun   bool
	aged    bool // a session was marked that stands in a higher class
	pending strings.Builder
}

// sessionColumns are the titles with their widths; the last has none.
var sessionColumns = []struct {
	title string
	width int
	right bool
}{
	{"id", 16, false}, {"state", 10, false}, {"place", 6, true}, {"class", 12, false}, {"waited", 11, true}, {"starts", 9, true}, {"size", 7, true}, {"sent", 5, true},
	{"why", 8, false}, {"principal", 18, false}, {"object", 0, false},
}

func (t *sessionTable) line(cells []string) {
	var b strings.Builder
	for i, column := range sessionColumns {
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(padded(cells[i], column.width, column.right))
	}
	t.pending.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

func (t *sessionTable) add(s *sessionRow) {
	if !t.begun {
		t.begun = true
		var titles []string
		for _, column := range sessionColumns {
			titles = append(titles, column.title)
		}
		t.line(titles)
	}
	place, size, sent, class, starts := "-", "-", "-", word(s.Class), when(s.StartsAt, t.now)
	if s.Position != nil {
		place = strconv.Itoa(*s.Position)
	}
	if s.SizeBytes != nil {
		size = showAmount(*s.SizeBytes)
		if s.SentBytes > 0 {
			sent = showPercent(s.SentBytes, *s.SizeBytes)
		}
	}
	if s.StandsIn != "" && s.StandsIn != s.Class {
		class, t.aged = class+"^", true // sessions show says in which
	}
	if s.StartedAt != nil {
		starts = showClock(*s.StartedAt, t.now)
	}
	why := s.Why
	if why == "" && s.PausedByOperator {
		why = "operator"
	}
	t.line([]string{word(s.ID), word(s.State), place, class, ago(s.WaitedSeconds), starts, size, sent, word(why), word(s.Principal), oneLine(s.Object)})
}

// flush prints what was added since the last.
func (t *sessionTable) flush() error {
	defer t.pending.Reset()
	if t.pending.Len() == 0 {
		return nil
	}
	return emit(t.out, []byte(t.pending.String()))
}
