//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestC4_BashCompletes types into a real interactive bash that has loaded the script, and presses TAB.
func TestC4_BashCompletes(t *testing.T) {
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "chosen-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := openTerminal(t, 200)
	bash := exec.Command("bash", "--noprofile", "--norc", "-i")
	bash.Dir = dir
	bash.Env = []string{"PATH=" + filepath.Dir(path) + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb", "PS1=ready> ", "INPUTRC=/dev/null", "HISTFILE="}
	bash.Stdin, bash.Stdout, bash.Stderr = p.slave, p.slave, p.slave
	bash.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test failed before its exit
		_ = bash.Process.Kill()
		_, _ = bash.Process.Wait()
	})
	write := func(text string) {
		t.Helper()
		if _, err := p.master.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	p.sees("ready>")
	write("source <(arkvoryctl completion bash); echo loaded $?\n")
	p.sees("loaded 0\nready>")
	for _, step := range [][2]string{
		{"arkvoryctl dow\t", "arkvoryctl download"}, {"--outp\t", "download --output"}, {"chos\t", "--output chosen-file"}, {"--class inter\t", "--class interactive"},
		{"--wait\t", "--class interactive --wait-limit"}, {"\x15arkvoryctl settings set mode=pa\t", "settings set mode=pass-through"}, {"\x15arkvoryctl sim\t", "arkvoryctl simulate"}, {"--strat\t", "simulate --strategy"}, {"fair\t", "--strategy fair-sojourn"},
		{"\x15arkvoryctl completion f\t", "arkvoryctl completion fish"}, {"\x15arkvoryctl download --json --class=b\tu\t", "--class=bulk"},
	} {
		write(step[0])
		p.seesThat(step[1], func(text string) bool {
			lines := strings.Split(text, "\n")
			return strings.HasSuffix(lines[len(lines)-1], step[1])
		})
	}
	write("\x15exit\n")
	if err := bash.Wait(); err != nil {
		t.Log(err) // the code is that of the last line
	}
}

// TestC4_CompletionLine speaks what bash and zsh speak with a program that completes.
func TestC4_CompletionLine(t *testing.T) {
	for line, want := range map[string][]string{
		"arkvoryctl ":                                      {"completion", "download", "queue", "sessions", "settings", "simulate"},
		"arkvoryctl d":                                     {"download"},
		"arkvoryctl download --no":                         {"--no-progress", "--not-after", "--not-before"},
		"arkvoryctl download --class ":                     {"background", "bulk", "interactive", "release"},
		"arkvoryctl download --class=re":                   {"release"},
		"arkvoryctl download http://host/f --class ba":     {"background"},
		"arkvoryctl download --output ":                    {},
		"arkvoryctl download http":                         {},
		"arkvoryctl simulate --strategy ":                  {"fair-sojourn", "ordered", "shared", "smallest-first"},
		"arkvoryctl completion ":                           {"bash", "fish", "zsh"},
		"arkvoryctl download --class bulk --attempt":       {"--attempt-timeout", "--attempts"},
		"arkvoryctl download --header-file f --password-f": {"--password-file"},
		"arkvoryctl settings ":                             {"edit", "get", "reset", "set"},
		"arkvoryctl settings set st":                       {"strategy="},
		"arkvoryctl settings set sessions=3 mode=":         {"dry-run", "normal", "pass-through", "queue-all", "reject-new"},
		"arkvoryctl settings set strategy=s":               {"shared", "smallest-first"},
		"arkvoryctl settings set mode st":                  {"strategy="},
		"arkvoryctl settings set windows.bulk=":            {},
		"arkvoryctl settings set windows.b":                {"windows.background=", "windows.bulk="},
		"arkvoryctl settings get weights.b":                {"weights.background", "weights.bulk"},
		"arkvoryctl settings reset mode quo":               {"quotas", "quotas.bytesPerDay", "quotas.bytesPerWeek", "quotas.zone"},
		"arkvoryctl sessions ":                             {"kick", "list", "move", "pause", "resume", "show"},
		"arkvoryctl sessions list --state ":                {"active", "all", "remembered", "waiting"},
		"arkvoryctl sessions list --class b":               {"background", "bulk"},
		"arkvoryctl sessions move x --to ":                 {"back", "front"},
		"arkvoryctl sessions move x --class i":             {"interactive"},
		"arkvoryctl queue --w":                             {"--watch"},
		"arkvoryctl queue --token-f":                       {"--token-file"},
	} {
		t.Setenv("COMP_LINE", line)
		code, out, complaint := ctl(t)
		got := strings.Fields(out)
		slices.Sort(got)
		if code != exitDone || complaint != "" || !slices.Equal(got, want) {
			t.Errorf("%q: code %d, offers %v, want %v; said %q", line, code, got, want, complaint)
		}
	}
}

// TestC4_CompletionScripts: paths with spaces and quotes survive, and fish knows every flag that takes a file.
func TestC4_CompletionScripts(t *testing.T) {
	var line cli
	parser, err := newParser(&line, streams{&strings.Builder{}, &strings.Builder{}})
	if err != nil {
		t.Fatal(err)
	}
	const odd = "/opt/my tools/it's/arkvoryctl"
	for _, shell := range []string{"bash", "zsh"} {
		script := completionScript(shell, odd, parser.Model)
		_, words, ok := strings.Cut(script, "complete -o default -C ")
		if !ok {
			t.Fatalf("%s: %s", shell, script)
		}
		// What the shell runs is what the quotes leave, evaluated once more.
		out, err := exec.Command("bash", "-c", `eval "set -- $1"; eval "set -- $1"; printf %s "$1"`, "bash", words).Output()
		if err != nil || string(out) != odd {
			t.Errorf("%s runs %q (%v), want %q", shell, out, err, odd)
		}
	}
	fish := completionScript("fish", "/bin/arkvoryctl", parser.Model)
	for _, want := range []string{"COMP_LINE", "'/bin/arkvoryctl'", "-l output -s o -r -F", "-l header-file -r -F", "-l scenario -r -F", "__fish_seen_subcommand_from download", "__fish_seen_subcommand_from simulate",
		"'__fish_seen_subcommand_from queue' -l token-file -r -F", "'__fish_seen_subcommand_from settings; and __fish_seen_subcommand_from set' -l from -r -F"} {
		if !strings.Contains(fish, want) {
			t.Errorf("the script of fish has no %q:\n%s", want, fish)
		}
	}
	if code, _, complaint := ctl(t, "completion", "tcsh"); code != exitInput || !strings.Contains(complaint, "bash") {
		t.Errorf("code %d, said %q", code, complaint)
	}
}
