// Command arkvoryctl is the operator's tool. Its one command so far simulates a fleet over the scheduler that the sidecar runs:
//
//	arkvoryctl simulate --clients 1000 --size 4GB..20GB --link 1Gbit --slots 16
//
// Exit codes: 0 done, 1 the work failed, 2 the input is wrong.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitDone  = 0
	exitWork  = 1
	exitInput = 2
)

// version is set by the linker.
var version = "dev"

// cli is the command line.
type cli struct {
	Version  kong.VersionFlag `help:"Print the version and stop."`
	Simulate simulate         `cmd:"" help:"Simulate a fleet of downloads and compare strategies side by side."`
}

// inputError is the caller's fault: exit code 2.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// helpShown stops the parser after it printed the help.
type helpShown int

// run is main without the process: it returns the exit code.
func run(args []string, out, complain io.Writer) (code int) {
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
	parser, err := kong.New(&line, kong.Name("arkvoryctl"), kong.Description("The operator's tool for the Arkvory sidecar."),
		kong.Writers(out, complain), kong.Exit(func(code int) { panic(helpShown(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.BindTo(out, (*io.Writer)(nil)), meanings(), kong.Vars{"version": "arkvoryctl " + version})
	if err != nil {
		fmt.Fprintln(complain, "arkvoryctl:", err)
		return exitWork
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	context, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(complain, "arkvoryctl: %v; see arkvoryctl --help\n", err)
		return exitInput
	}
	err = context.Run()
	var input inputError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &input):
		fmt.Fprintf(complain, "arkvoryctl: %v\n", err)
		return exitInput
	default:
		fmt.Fprintf(complain, "arkvoryctl: %v\n", err)
		return exitWork
	}
}
