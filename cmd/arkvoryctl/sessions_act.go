package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// chosenSessions are the arguments that the actions have in common.
type chosenSessions struct {
	connection
	IDs  []string `arg:"" name:"id" help:"The sessions."`
	JSON bool     `name:"json" help:"Print each session after the action as a JSON document a line."`
}

// sessionsMove is arkvoryctl sessions move.
type sessionsMove struct {
	chosenSessions
	To    string `enum:",front,back" default:"" placeholder:"front|back" predictor:"ends" help:"Before all others of its class, or behind them."`
	Class string `enum:",interactive,release,bulk,background" default:"" placeholder:"CLASS" predictor:"classes" help:"Into this class, a higher one too."`
}

// Help is the part of the help below the flags.
func (sessionsMove) Help() string {
	return deskHelp(`Examples:

  arkvoryctl sessions move 3f9c0a51d27be846 --to front

  arkvoryctl sessions move 3f9c0a51d27be846 0b1c2d3e4f506172 --class background`)
}

// Run moves the sessions.
func (m *sessionsMove) Run(to streams) error {
	if (m.To == "") == (m.Class == "") {
		return inputError{errors.New("cannot move: must have --to front, --to back or --class CLASS, one of them, for example --to front")}
	}
	body := map[string]string{"to": m.To}
	if m.Class != "" {
		body = map[string]string{"class": m.Class}
	}
	return m.act(to, "move", "moved", body, nil)
}

// sessionsPause is arkvoryctl sessions pause.
type sessionsPause struct{ chosenSessions }

// Help is the part of the help below the flags.
func (sessionsPause) Help() string {
	return deskHelp(`A waiting session keeps its place. A running one of a client that speaks the queue protocol gives its slot up at its next range and waits; other running ones cannot be paused (exit code 7).

Example:

  arkvoryctl sessions pause 3f9c0a51d27be846`)
}

// Run pauses the sessions.
func (p *sessionsPause) Run(to streams) error { return p.act(to, "pause", "paused", nil, nil) }

// sessionsResume is arkvoryctl sessions resume.
type sessionsResume struct{ chosenSessions }

// Help is the part of the help below the flags.
func (sessionsResume) Help() string {
	return deskHelp(`Example:

  arkvoryctl sessions resume 3f9c0a51d27be846`)
}

// Run resumes the sessions.
func (r *sessionsResume) Run(to streams) error { return r.act(to, "resume", "resumed", nil, nil) }

// sessionsKick is arkvoryctl sessions kick.
type sessionsKick struct {
	chosenSessions
	Yes      bool `short:"y" help:"Do not ask. Without a terminal to ask on it must be given."`
	ClearIDs bool `name:"clear-ids" help:"Show principals, objects and clients as they are in the question; this is written into the sidecar's log."`
}

// Help is the part of the help below the flags.
func (sessionsKick) Help() string {
	return deskHelp(`A waiting session is refused at its next contact and forgotten; its client may join at the end of the queue. The responses of a running one are cut and its slot is freed.

Examples:

  arkvoryctl sessions kick 3f9c0a51d27be846

  arkvoryctl sessions list --principal user:ci --all --json | jq -r .id | xargs arkvoryctl sessions kick --yes`)
}

// Run asks, unless it was told not to, and kicks the sessions.
func (k *sessionsKick) Run(to streams) error {
	asking := terminalOf(to.complaints) != nil && isTerminal(os.Stdin)
	if !k.Yes && !asking {
		return inputError{errors.New("cannot ask before kicking, since there is no terminal: must be told --yes")}
	}
	if k.Yes {
		return k.act(to, "kick", "kicked", nil, nil)
	}
	return k.act(to, "kick", "kicked", nil, func(ctx context.Context, d *desk) error { return k.ask(ctx, d, os.Stdin, to.complaints) })
}

// ask shows the sessions and waits for a yes. Anything else is a no.
func (k *sessionsKick) ask(ctx context.Context, d *desk, from io.Reader, to io.Writer) error {
	table := &sessionTable{out: to, now: wallClock()}
	for _, id := range k.IDs {
		_, row, err := d.session(ctx, id, k.ClearIDs)
		if err != nil {
			return err
		}
		table.add(row)
	}
	if err := table.flush(); err != nil {
		return err
	}
	what := "this session"
	if len(k.IDs) > 1 {
		what = fmt.Sprintf("these %d sessions", len(k.IDs))
	}
	fmt.Fprintf(to, "Kick %s? [y/N] ", what)
	answers := make(chan string, 1)
	go func() { // a read of the terminal cannot be given up: a signal must not wait for it
		line, _ := bufio.NewReader(from).ReadString('\n')
		answers <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(to)
		return context.Cause(ctx)
	case answer := <-answers:
		if yes := strings.ToLower(strings.TrimSpace(answer)); yes != "y" && yes != "yes" {
			return failed(nil, "nothing was done: the answer was not yes")
		}
		return nil
	}
}

// act does one action to all the sessions, one after another, after what must come before. One that fails does not keep the others from being done; the first failure
// is the command's, the others are said at once.
func (c *chosenSessions) act(to streams, action, done string, body map[string]string, before func(context.Context, *desk) error) error {
	var wrong []error
	for _, id := range c.IDs {
		wrong = append(wrong, checkSessionID(id))
	}
	if err := errors.Join(wrong...); err != nil {
		return inputError{err}
	}
	if body == nil {
		body = map[string]string{}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("cannot write the action: %w", err)
	}
	return c.visit(to, func(ctx context.Context, d *desk) error {
		if before != nil {
			if err := before(ctx, d); err != nil {
				return err
			}
		}
		var first error
		for _, id := range c.IDs {
			err := c.one(ctx, d, to, action, done, id, text)
			if err == nil {
				continue
			}
			var fault *deskFault
			if !errors.As(err, &fault) || fault.status == 0 || fault.status == http.StatusUnauthorized { // the next one would fare no better
				return err
			}
			fault.text = id + ": " + fault.text
			if first == nil {
				first = fault
				continue
			}
			complain(to.complaints, d.clean(fault))
		}
		return first
	})
}

// one does the action to one session and prints it.
func (c *chosenSessions) one(ctx context.Context, d *desk, to streams, action, done, id string, body []byte) error {
	document, err := d.call(ctx, http.MethodPost, "sessions/"+id+"/"+action, nil, body)
	if err != nil {
		return err
	}
	if c.JSON {
		return printCompact(to.out, document)
	}
	row := new(sessionRow)
	if err := d.read(document, row, "id", "state"); err != nil {
		return err
	}
	return printLines(to.out, []string{fmt.Sprintf("%s %s: %s", word(row.ID), done, join(stateLine(row), "class "+classLine(row), oneLine(row.Object)))})
}
