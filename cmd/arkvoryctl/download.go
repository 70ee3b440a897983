package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/arkvory/sidecar/queue/client"
)

// download is the command of that name. Flags are texts as in simulate: one table (downloadOptions) has their rules, examples and meanings.
type download struct {
	URL string `arg:"" name:"url" help:"What to download, http:// or https://; - reads it from standard input, where no other user of the machine sees it."`

	Output       string   `short:"o" placeholder:"FILE" help:"${d_output}"`
	Force        bool     `help:"Replace the file when it is there already."`
	Fresh        bool     `help:"Forget what an earlier run left and begin with the first byte."`
	Checkpoint   string   `placeholder:"FILE" help:"${d_checkpoint}"`
	Class        *string  `placeholder:"CLASS" enum:"interactive,release,bulk,background" help:"${d_class}"`
	ID           string   `name:"id" placeholder:"ID" help:"${d_id}"`
	Header       []string `short:"H" sep:"none" placeholder:"NAME:VALUE" help:"${d_header}"`
	HeaderFile   string   `placeholder:"FILE" env:"ARKVORYCTL_HEADER_FILE" help:"${d_header_file}"`
	User         string   `short:"u" placeholder:"NAME" help:"${d_user}"`
	PasswordFile string   `placeholder:"FILE" help:"${d_password_file}"`
	CAFile       string   `name:"ca-file" placeholder:"FILE" env:"ARKVORYCTL_CA_FILE" help:"${d_ca_file}"`

	WaitLimit string `placeholder:"DURATION" help:"${d_wait_limit}"`
	NotBefore string `placeholder:"TIME" help:"${d_not_before}"`
	NotAfter  string `placeholder:"TIME" help:"${d_not_after}"`

	Size   string `placeholder:"BYTES" help:"${d_size}"`
	Digest string `placeholder:"sha256:HEX" help:"${d_digest}"`

	Parallel       string `placeholder:"N" help:"${d_parallel}"`
	RangeBytes     string `placeholder:"BYTES" help:"${d_range_bytes}"`
	Retries        string `placeholder:"N" help:"${d_retries}"`
	Attempts       string `placeholder:"N" help:"${d_attempts}"`
	AttemptTimeout string `placeholder:"DURATION" help:"${d_attempt_timeout}"`

	JSON       bool `name:"json" xor:"show" help:"Print every event as a JSON object a line on standard output, and no progress."`
	Quiet      bool `short:"q" xor:"show" help:"Print errors only."`
	NoProgress bool `xor:"show" help:"Print plain lines even in a terminal: one at each change, and one in 30 s."`
}

// Help is the part of the help below the flags' table.
func (download) Help() string { return outcomeHelp() }

// Run downloads. Whatever it returns has been said already where it was asked to be said.
func (d *download) Run(to streams) error {
	plan, err := d.plan(os.Stdin, time.Now())
	if err = plan.secrets.clean(err); err != nil {
		if d.JSON {
			(&jsonWatcher{out: to.out}).end(client.Result{}, err)
		}
		return err
	}
	ctx, release := untilSignalled(context.Background(), to.complaints)
	defer release()
	watch := d.watcher(plan, to)
	var last client.Event
	plan.options.Observe = func(e client.Event) {
		if e.Kind != client.Verifying { // its bytes are those that were checked
			last = e
		}
		watch.see(e)
	}
	result, err := client.Download(ctx, plan.options)
	if errors.Is(err, client.ErrExists) {
		err = fmt.Errorf("%w; --force replaces it", err)
	}
	if err != nil && ctx.Err() != nil {
		err = interruption{cause: context.Cause(ctx), err: err, last: last}
	}
	err = plan.secrets.clean(err)
	watch.end(result, err)
	return err
}

// interruption is the end of a download by a signal. It says how to go on instead of what broke.
type interruption struct {
	cause, err error
	last       client.Event
}

func (i interruption) Error() string {
	kept := ""
	switch {
	case i.last.Bytes > 0 && i.last.Kept:
		kept = ", " + showBytes(i.last.Bytes) + " are kept"
	case i.last.Kind == client.Queued && i.last.Position > 0:
		kept = ", the place in the queue is kept for some minutes"
	}
	return fmt.Sprintf("%v%s; run the same command again to go on", i.cause, kept)
}
func (i interruption) Unwrap() []error { return []error{i.cause, i.err} }

// untilSignalled returns a context that SIGINT and SIGTERM end, so that the checkpoint is written and its lock let go. A second
// signal ends the process at once: the checkpoint on the disk is whole at every moment. The release must be called.
func untilSignalled(parent context.Context, complaints io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, done, ended := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(ended)
		for first := true; ; first = false {
			select {
			case <-done:
				return
			case s := <-signals:
				by := signalled{code: exitInterrupted, name: "interrupted"}
				if s == syscall.SIGTERM {
					by = signalled{code: exitTerminated, name: "terminated"}
				}
				if !first {
					fmt.Fprintf(complaints, "\narkvoryctl: %s twice\n", by.name)
					os.Exit(by.code)
				}
				cancel(by)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-ended
		cancel(nil)
	}
}

// watcher shows a download. Its methods are called one after another.
type watcher interface {
	// see is told every event, often many in a second. It must not block long: the download waits for it.
	see(client.Event)
	// end is told how it ended, after the last event.
	end(client.Result, error)
}

// watcher chooses how to show the download.
func (d *download) watcher(p *downloadPlan, to streams) watcher {
	v := view{name: oneLine(p.name), secrets: p.secrets, checked: !p.options.Digest.IsZero()}
	switch terminal := terminalOf(to.complaints); {
	case d.JSON:
		return &jsonWatcher{out: to.out, secrets: p.secrets}
	case d.Quiet:
		return quietWatcher{}
	case terminal != nil && !d.NoProgress && os.Getenv("TERM") != "dumb":
		return newTerminalWatcher(terminal, v, os.Getenv("NO_COLOR") == "")
	}
	return &plainWatcher{out: to.complaints, view: v}
}

// quietWatcher shows nothing; main says errors.
type quietWatcher struct{}

func (quietWatcher) see(client.Event)         {}
func (quietWatcher) end(client.Result, error) {}

var errExists = errors.New("is there already; --force replaces it")
