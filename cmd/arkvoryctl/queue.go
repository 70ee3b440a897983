package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// queueCommand is arkvoryctl queue: one look at the queue of a sidecar, or many.
type queueCommand struct {
	connection
	JSON  bool     `name:"json" help:"Print the server's JSON document; with --watch one a line."`
	Watch interval `placeholder:"2s" help:"Look again and again, at this interval (2s): drawn in place on a terminal, lines on a pipe. Write it --watch=5s."`
}

// Help is the part of the help below the flags.
func (queueCommand) Help() string {
	return deskHelp(`Examples:

  arkvoryctl queue

  arkvoryctl queue --watch

  arkvoryctl queue --watch=10s --json | jq -c '{waiting, emptyAt}'

  ARKVORY_ADMIN_TOKEN_FILE=/run/secrets/admin arkvoryctl queue --admin https://store.example:8443

Times of day are those of this machine's zone.`)
}

// Bounds of --watch.
const (
	watchDefault = interval(2 * time.Second)
	watchLeast   = 250 * time.Millisecond
	watchMost    = time.Hour
)

// interval is the flag --watch[=2s]; 0 = not given.
type interval time.Duration

// IsBool says that the flag may stand without a value.
func (*interval) IsBool() bool { return true }

// Decode reads the value behind the =, if there is one.
func (w *interval) Decode(c *kong.DecodeContext) error {
	*w = watchDefault
	if c.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	text := fmt.Sprint(c.Scan.Pop().Value)
	d, err := parseDuration(text)
	if err != nil || d < watchLeast || d > watchMost {
		return fmt.Errorf("must be a duration %v..%v, for example 2s, not %q", watchLeast, watchMost, clip(text))
	}
	*w = interval(d)
	return nil
}

// Run looks and prints.
func (q *queueCommand) Run(to streams) error {
	return q.visit(to, func(ctx context.Context, d *desk) error {
		document, snapshot, err := d.queue(ctx)
		if err != nil {
			return err
		}
		if q.Watch > 0 {
			return q.watch(ctx, d, to, document, snapshot)
		}
		if q.JSON {
			return printIndented(to.out, document)
		}
		return printLines(to.out, queueLines(snapshot, time.Local))
	})
}

// queue asks for the snapshot: as it came, and read.
func (d *desk) queue(ctx context.Context) ([]byte, *queueSnapshot, error) {
	document, err := d.get(ctx, "queue", nil)
	if err != nil {
		return nil, nil, err
	}
	snapshot := new(queueSnapshot)
	if err := d.read(document, snapshot, "mode", "slots", "byClass"); err != nil {
		return nil, nil, err
	}
	return document, snapshot, nil
}

// printLines prints lines.
func printLines(out io.Writer, lines []string) error {
	return emit(out, []byte(strings.Join(lines, "\n")+"\n"))
}

// queueLines are the snapshot for people. The server's clock is now.
func queueLines(s *queueSnapshot, zone *time.Location) []string {
	now := s.At.In(zone)
	rows := [][]string{
		{"mode", modeLine(s)},
		{"slots", slotsLine(s.Slots)},
		{"waiting", waitingLine(s)},
		{"empty", emptyLine(s, now)},
		{"rate", rateLine(s)},
		{"gate", gateLine(s.Gate)},
		{"promises", promisesLine(s.Promises)},
		{"since start", countsLine(s.Counts)},
		{"server", fmt.Sprintf("%s, up %s, settings revision %d, tick %.1f ms", word(s.Version), showSpan(inSpan(s.UptimeSeconds)), s.SettingsRevision, s.TickMilliseconds)},
	}
	lines := append(columnsOf(rows), "")
	table := [][]string{{"class", "active", "waiting", "oldest", "to come", "hours"}}
	for _, c := range s.ByClass.named() {
		table = append(table, []string{c.name, fmt.Sprint(c.Active), fmt.Sprint(c.Waiting), ago(c.OldestWaitSeconds), showAmount(c.WaitingBytes), windowWords(c.Window, now)})
	}
	return append(lines, columnsOf(table, 1, 2, 3, 4)...)
}

// modeWords say what a mode does, where it is not the normal one.
var modeWords = map[string]string{
	"queue-all":    "queue-all (nobody gets a slot; places are kept; running downloads go on)",
	"pass-through": "pass-through (nobody queues)",
	"reject-new":   "reject-new (unknown downloads are refused; the others go on)",
	"dry-run":      "dry-run (the queue decides and counts; it delays nobody)",
}

func modeLine(s *queueSnapshot) string {
	mode := modeWords[s.Mode]
	if mode == "" {
		mode = word(s.Mode)
	}
	admission, draining := "admission of "+word(s.Admission), ""
	if s.Admission == "per-request" {
		admission = "admission of single requests"
	}
	if s.Draining {
		draining = "the process stops and starts nothing any more"
	}
	return join(mode, "strategy "+word(s.Strategy), admission, draining)
}

func slotsLine(s slotCounts) string {
	elastic, reserve := "", ""
	if s.ElasticLimit > s.Configured {
		elastic = fmt.Sprintf("%d of them open for now (%d set, at most %d)", s.Elastic, s.Configured, s.ElasticLimit)
	}
	if s.Reserve > 0 {
		reserve = fmt.Sprintf("%d kept for interactive", s.Reserve)
	}
	return join(fmt.Sprintf("%d of %d taken", s.Active, s.Open), elastic, reserve)
}

func waitingLine(s *queueSnapshot) string {
	oldest, bytes, paused, held, remembered := "", "", "", "", ""
	if s.Waiting > 0 {
		oldest, bytes = "the oldest for "+showSpan(inSpan(s.OldestWaitSeconds)), showAmount(s.WaitingBytes)+" to come"
	}
	if s.PausedByOperator > 0 {
		paused = fmt.Sprintf("%d paused by the operator", s.PausedByOperator)
	}
	if s.Held > 0 || s.Fed > 0 {
		held = fmt.Sprintf("%d held here and %d of them fed", s.Held, s.Fed)
	}
	if s.Remembered > 0 {
		remembered = fmt.Sprintf("%d remembered", s.Remembered)
	}
	return join(counted(s.Waiting, "session"), oldest, bytes, paused, held, remembered)
}

// emptyLine says when nobody waits any more.
func emptyLine(s *queueSnapshot, now time.Time) string {
	switch {
	case s.EmptyInSeconds == nil:
		return "nobody knows when"
	case *s.EmptyInSeconds <= 0:
		return "now: nobody waits"
	}
	in := inSpan(*s.EmptyInSeconds)
	at := now.Add(in)
	if s.EmptyAt != nil {
		at = *s.EmptyAt
	}
	return fmt.Sprintf("about %s (in %s)", showClock(at, now), showSpan(in))
}

func rateLine(s *queueSnapshot) string {
	band, left := "", ""
	if s.BandBytesPerSecond > 0 {
		band = fmt.Sprintf("%s of a band of %s/s", showPercent(s.RateBytesPerSecond, s.BandBytesPerSecond), showAmount(s.BandBytesPerSecond))
	}
	if s.ActiveRemainingBytes > 0 {
		left = showAmount(s.ActiveRemainingBytes) + " left of what runs"
	}
	return join(showAmount(s.RateBytesPerSecond)+"/s", band, left)
}

func gateLine(g gateState) string {
	state := "closed"
	if g.Open {
		state = "open"
	}
	return join(state, strings.ReplaceAll(oneLine(g.Reason), "_", " "))
}

func promisesLine(p promiseCounts) string {
	if p.Judged == 0 {
		return "none judged yet"
	}
	share := func(n uint64) string { return fmt.Sprintf("%.1f %%", float64(n)/float64(p.Judged)*100) }
	return fmt.Sprintf("%s of the told starts were right, %s not late, of %d", share(p.Within), share(p.Held), p.Judged)
}

// countsLine are the totals that are not 0.
func countsLine(c eventCounts) string {
	var all []string
	for _, one := range []struct {
		n    uint64
		word string
	}{
		{c.Queued, "queued"}, {c.Rejoined, "rejoined"}, {c.Started, "started"}, {c.Completed, "completed"}, {c.Refused, "refused"}, {c.Idle, "idle"}, {c.NoShow, "not back"},
		{c.Cancelled, "cancelled"}, {c.Yielded, "yielded"}, {c.Kicked, "kicked"}, {c.Moved, "moved"}, {c.Paused, "paused"}, {c.Resumed, "resumed"},
		{c.RejectedNew, "rejected as new"}, {c.WouldWait, "would have waited"}, {c.OverQuota, "over quota"},
	} {
		if one.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", one.n, one.word))
		}
	}
	if len(all) == 0 {
		return "nothing yet"
	}
	return join(all...)
}

// windowWords say whether a class may start now and until when that holds.
func windowWords(w windowState, now time.Time) string {
	until := ""
	if w.ChangesAt != nil {
		until = " until " + showClock(*w.ChangesAt, now)
	}
	switch {
	case w.Open && w.ChangesAt == nil:
		return "always"
	case w.Open:
		return "open" + until
	case w.OutsideShare > 0:
		return fmt.Sprintf("closed%s, %.3g %% meanwhile", until, w.OutsideShare*100)
	}
	return "closed" + until
}
