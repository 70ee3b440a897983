// Command arkvoryctl is the operator's and the user's tool:
//
//	arkvoryctl download https://store.example/release.tar
//	arkvoryctl simulate --clients 1000 --size 4GB..20GB --link 1Gbit --slots 16
//	arkvoryctl queue --watch
//	arkvoryctl settings set mode=queue-all
//	arkvoryctl sessions list --state waiting
//	arkvoryctl completion bash
//
// download fetches one file through the queue of a sidecar (or from any server) and shows its place and progress: the work is done by
// queue/client, here are the flags, the words, the screen and the exit codes. simulate plays fleets over the scheduler of the
// sidecar. queue, settings and sessions speak with a sidecar's admin listener: desk.go has the connection, desk_documents.go what comes over it. The exit codes are
// in the tables of outcomes; help and README are made of them.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// version is set by the linker.
var version = "dev"

// cli is the command line.
type cli struct {
	Version    kong.VersionFlag `help:"Print the version and stop."`
	Download   download         `cmd:"" help:"Download a file: wait in the queue as long as it takes, go on where an earlier run ended, check what came."`
	Simulate   simulate         `cmd:"" help:"Simulate a fleet of downloads and compare strategies side by side."`
	Queue      queueCommand     `cmd:"" help:"Look at the queue of a running sidecar, once or again and again."`
	Settings   settingsCommand  `cmd:"" help:"Show and change the live settings of a running sidecar."`
	Sessions   sessionsCommand  `cmd:"" help:"List the sessions of a running sidecar; move, pause, resume and kick them."`
	Completion completion       `cmd:"" help:"Print the script that completes command lines in your shell."`
}

// inputError is the caller's fault: exit code 2.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// streams are where a command writes: what it was asked for, and what it has to say.
type streams struct{ out, complaints io.Writer }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// helpShown stops the parser after it printed the help.
type helpShown int

// newParser makes the parser of the command line.
func newParser(line *cli, to streams) (*kong.Kong, error) {
	vars := meanings()
	maps.Copy(vars, downloadMeanings())
	maps.Copy(vars, deskMeanings())
	vars["version"] = "arkvoryctl " + version
	return kong.New(line, kong.Name("arkvoryctl"), kong.Description("The tool for the Arkvory sidecar: download through its queue, simulate before you switch, watch and steer it while it runs."),
		kong.Writers(to.out, to.complaints), kong.Exit(func(code int) { panic(helpShown(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}), kong.BindTo(to.out, (*io.Writer)(nil)), kong.Bind(to), vars)
}

// run is main without the process: it returns the exit code.
func run(args []string, out, complaints io.Writer) (code int) {
	defer func() {
		switch shown := recover().(type) {
		case nil:
		case helpShown:
			code = int(shown)
		default:
			panic(shown)
		}
	}()
	var line cli
	parser, err := newParser(&line, streams{out, complaints})
	if err != nil {
		complain(complaints, err)
		return exitWork
	}
	if suggest(parser) {
		return exitDone
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	context, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(complaints, "arkvoryctl: %s; see arkvoryctl --help\n", strings.TrimSpace(secretsOfArguments(args).hide(err.Error())))
		return exitInput
	}
	err = context.Run(parser)
	complain(complaints, err)
	return exitCode(err)
}
