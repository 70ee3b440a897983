package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"

	"github.com/arkvory/sidecar/queue"
)

// completion is the command of that name: it prints what a shell needs to complete the command line. The shell then runs this program
// with the line in COMP_LINE at each TAB (see suggest), so that what it offers is always what the program takes.
type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help is the part of the help below the flags.
func (completion) Help() string {
	return `bash: put  source <(arkvoryctl completion bash)  into ~/.bashrc.

zsh: put  source <(arkvoryctl completion zsh)  into ~/.zshrc.

fish: arkvoryctl completion fish > ~/.config/fish/completions/arkvoryctl.fish`
}

// Run prints the script.
func (c *completion) Run(to streams, parser *kong.Kong) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program's path: %w", err)
	}
	_, err = io.WriteString(to.out, completionScript(c.Shell, program, parser.Model))
	return err
}

// completionScript is the script of a shell for the program at that path.
func completionScript(shell, program string, model *kong.Application) string {
	quoted := shellQuote(program)
	switch shell {
	case "zsh":
		return "autoload -U +X compinit bashcompinit && { (( $+functions[compdef] )) || compinit; } && bashcompinit\n" +
			"complete -o default -C " + shellQuote(quoted) + " arkvoryctl\n"
	case "fish":
		return fishScript(quoted, model)
	}
	// Where nothing is offered (names of files), bash does what it does by default.
	return "complete -o default -C " + shellQuote(quoted) + " arkvoryctl\n"
}

// fishScript is that of fish, which has no COMP_LINE of its own and completes --flag=value as one word. Flags that take a file are named to it one by one.
func fishScript(program string, model *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, `function __complete_arkvoryctl
    set -lx COMP_LINE (commandline -cp)
    set -l token (commandline -ct)
    test -z "$token"; and set COMP_LINE "$COMP_LINE "
    set -l before (string match -r -- '^[^=]+=' $token) # of --flag=value and field=value only the value is offered
    for word in (%s)
        echo "$before$word"
    end
end
complete -c arkvoryctl -f -a '(__complete_arkvoryctl)'
`, program)
	for _, command := range model.Children {
		fishFiles(&b, command, "__fish_seen_subcommand_from "+command.Name)
	}
	return b.String()
}

// fishFiles names the flags of a command and of those below it that take a file; here is when fish stands behind the command.
func fishFiles(b *strings.Builder, command *kong.Node, here string) {
	for _, flag := range command.Flags {
		if flag.PlaceHolder != "FILE" {
			continue
		}
		short := ""
		if flag.Short != 0 {
			short = " -s " + string(flag.Short)
		}
		fmt.Fprintf(b, "complete -c arkvoryctl -n '%s' -l %s%s -r -F\n", here, flag.Name, short)
	}
	for _, child := range command.Children {
		fishFiles(b, child, here+"; and __fish_seen_subcommand_from "+child.Name)
	}
}

// shellQuote makes one word of a text, for bash, zsh and fish alike.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// suggest answers a shell that completes a command line and reports whether one asked.
func suggest(parser *kong.Kong) (asked bool) {
	if os.Getenv("COMP_LINE") == "" {
		return false
	}
	var strategies []string
	for _, s := range []queue.Strategy{queue.Ordered, queue.SmallestFirst, queue.FairSojourn, queue.Shared} {
		strategies = append(strategies, s.String())
	}
	predictors := map[string]complete.Predictor{"strategies": complete.PredictSet(strategies...)}
	maps.Copy(predictors, deskPredictors(strategies))
	kongplete.Complete(parser, kongplete.WithExitFunc(func(int) {}), kongplete.WithPredictors(predictors))
	return true
}
