package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// sessionsCommand is arkvoryctl sessions: the downloads in the queue and what an operator does to them.
type sessionsCommand struct {
	List   sessionsList   `cmd:"" help:"List sessions in the order of their places."`
	Show   sessionsShow   `cmd:"" help:"Show one session and what it waits for."`
	Move   sessionsMove   `cmd:"" help:"Move waiting sessions within their class, or into another."`
	Pause  sessionsPause  `cmd:"" help:"Keep sessions from starting until they are resumed; their places are kept."`
	Resume sessionsResume `cmd:"" help:"End a pause."`
	Kick   sessionsKick   `cmd:"" help:"End sessions: waiting ones are refused, running ones are cut."`
}

// Help is the part of the help below the commands.
func (sessionsCommand) Help() string {
	return `Ids are those of sessions list; they live as long as the session in one process. Who asks, for what and from where is shown as hashes (h:...) unless --clear-ids asks for it; asking for it is written into the sidecar's log.`
}

// query is the part of a query that says how ids are shown.
func idsQuery(clear bool) url.Values {
	query := url.Values{}
	if clear {
		query.Set("ids", "clear")
	}
	return query
}

// sessionsShow is arkvoryctl sessions show.
type sessionsShow struct {
	connection
	ID       string `arg:"" name:"id" help:"The session."`
	ClearIDs bool   `name:"clear-ids" help:"Show principal, object and client as they are; this is written into the sidecar's log."`
	JSON     bool   `name:"json" help:"Print the server's JSON document."`
}

// Help is the part of the help below the flags.
func (sessionsShow) Help() string {
	return deskHelp(`Example:

  arkvoryctl sessions show 3f9c0a51d27be846`)
}

// Run shows the session.
func (s *sessionsShow) Run(to streams) error {
	if err := checkSessionID(s.ID); err != nil {
		return inputError{err}
	}
	return s.visit(to, func(ctx context.Context, d *desk) error {
		document, row, err := d.session(ctx, s.ID, s.ClearIDs)
		if err != nil {
			return err
		}
		if s.JSON {
			return printIndented(to.out, document)
		}
		return printLines(to.out, sessionLines(row, wallClock()))
	})
}

// session asks for one session: as it came, and read.
func (d *desk) session(ctx context.Context, id string, clear bool) ([]byte, *sessionRow, error) {
	document, err := d.get(ctx, "sessions/"+id, idsQuery(clear))
	if err != nil {
		return nil, nil, err
	}
	row := new(sessionRow)
	return document, row, d.read(document, row, "id", "state")
}

// checkSessionID holds an id to its form, so that nothing else becomes a part of a path.
func checkSessionID(id string) error {
	odd := func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }
	if len(id) != 16 || strings.ContainsFunc(id, odd) {
		return fmt.Errorf("cannot use session id %q: must be 16 hexadecimal digits as sessions list shows them, for example 3f9c0a51d27be846", clip(oneLine(id)))
	}
	return nil
}

// whyWords say what a session waits for.
var whyWords = map[string]string{
	"slots":    "no slot is free",
	"order":    "slots are free or about to be, and others come first",
	"share":    "its principal has its share of the slots while others wait",
	"reserve":  "what is free is kept for class interactive",
	"window":   "its class is outside its hours",
	"gate":     "there is no upstream",
	"grace":    "the sidecar has just started and waits for those who were there before",
	"operator": "paused by the operator",
	"mode":     "the mode gives nobody a slot",
	"turn":     "it may start at its next contact",
	"yielded":  "it gave its slot up and waits until the one it yielded to has started",
}

// sessionLines are one session for people.
func sessionLines(s *sessionRow, now time.Time) []string {
	rows := [][]string{{"id", word(s.ID)}, {"state", stateLine(s)}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	why := whyWords[s.Why]
	if why == "" && s.Why != "" {
		why = oneLine(s.Why)
	}
	add("waits because", why)
	add("class", classLine(s))
	add("principal", oneLine(s.Principal))
	add("object", oneLine(s.Object))
	add("client", join(oneLine(s.Client), protocolWord(s), heldWord(s.Held)))
	if s.BundleObjects > 0 {
		add("bundle", counted(s.BundleObjects, "object"))
	}
	add("size", sizeLine(s))
	add("arrived", join(showClock(s.ArrivedAt, now), "waited "+showSpan(inSpan(s.WaitedSeconds))))
	if s.StartedAt != nil {
		add("started", showClock(*s.StartedAt, now))
	}
	if s.StartsAt != nil {
		between := ""
		if w := s.StartsWindow; w != nil {
			between = "between " + showClock(w.Earliest, now) + " and " + showClock(w.Latest, now)
		}
		add("starts", join("about "+showClock(*s.StartsAt, now), between))
	}
	return columnsOf(rows)
}

func stateLine(s *sessionRow) string {
	place, paused := "", ""
	if s.Position != nil {
		place = ordinal(int64(*s.Position))
	}
	if s.PausedByOperator {
		paused = "paused"
	}
	return join(word(s.State), place, paused)
}

func classLine(s *sessionRow) string {
	if s.StandsIn != "" && s.StandsIn != s.Class {
		return word(s.Class) + ", by age it stands in " + word(s.StandsIn)
	}
	return word(s.Class)
}

func protocolWord(s *sessionRow) string {
	if s.Protocol {
		return "speaks the queue protocol"
	}
	return "plain client"
}

func heldWord(n int) string {
	if n == 0 {
		return ""
	}
	return counted(n, "request") + " held"
}

func sizeLine(s *sessionRow) string {
	if s.SizeBytes == nil {
		return join("unknown", showAmount(s.SentBytes)+" sent")
	}
	return join(showAmount(*s.SizeBytes), fmt.Sprintf("%s sent (%s)", showAmount(s.SentBytes), showPercent(s.SentBytes, *s.SizeBytes)))
}
