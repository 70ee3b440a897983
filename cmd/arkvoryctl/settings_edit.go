package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
)

// settingsEdit is arkvoryctl settings edit.
type settingsEdit struct {
	connection
	JSON bool `name:"json" help:"Print the settings after the change as the server's JSON document."`
}

// Help is the part of the help below the flags.
func (settingsEdit) Help() string {
	return deskHelp(`The overrides are opened as JSON in $VISUAL or $EDITOR. What is saved there replaces them when the editor ends; a file that is left as it was changes nothing. When the change is not taken the file is kept and said: settings set --from FILE sends it.

Examples:

  arkvoryctl settings edit

  EDITOR='code --wait' arkvoryctl settings edit`)
}

// Run reads the settings, opens them in an editor and sends what became of them.
func (e *settingsEdit) Run(to streams) (err error) {
	draft, before := "", (*settingsDocument)(nil)
	defer func() {
		switch {
		case draft == "":
		case err == nil:
			err = os.Remove(draft)
		default:
			err = hiddenError{text: err.Error() + "\nwhat you wrote is kept in " + draft, cause: err}
		}
	}()
	// Asked in a visit of its own: while the editor has the terminal the signals are the editor's.
	err = e.visit(to, func(ctx context.Context, d *desk) (err error) {
		_, before, err = d.settings(ctx)
		return err
	})
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(before.Overrides, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the draft: %w", err)
	}
	text = append(text, '\n')
	if draft, err = writeDraft(text); err != nil {
		return err
	}
	edited, err := edit(draft)
	if err != nil {
		return err
	}
	given, err := parseGiven("the draft", edited)
	if err != nil {
		return inputError{err}
	}
	if equalObjects(given.overrides, before.Overrides) {
		return printLines(to.out, []string{"nothing to change: " + before.head(wallClock())})
	}
	return e.visit(to, func(ctx context.Context, d *desk) error {
		text, after, err := d.put(ctx, before.Revision, given.overrides)
		if err != nil {
			return d.explainConflict(ctx, err, before, before.Revision)
		}
		if e.JSON {
			return printIndented(to.out, text)
		}
		return printLines(to.out, after.since(before))
	})
}

// writeDraft writes a file that only this user reads: names of principals may stand in it.
func writeDraft(text []byte) (string, error) {
	f, err := os.CreateTemp("", "arkvory-settings-*.json") // with mode 0600
	if err != nil {
		return "", fmt.Errorf("cannot write the draft: %w", err)
	}
	if _, err = f.Write(text); err == nil {
		err = f.Close()
	} else {
		_ = f.Close()
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("cannot write the draft: %w", err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// editorCommand is the editor with its arguments.
func editorCommand() []string {
	for _, variable := range []string{"VISUAL", "EDITOR"} {
		if words := strings.Fields(os.Getenv(variable)); len(words) > 0 {
			return words
		}
	}
	if runtime.GOOS == "windows" {
		return []string{"notepad"}
	}
	return []string{"vi"}
}

// edit opens a file in the editor and returns what it has when that ended.
func edit(path string) ([]byte, error) {
	words := append(editorCommand(), path)
	command := exec.Command(words[0], words[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Ctrl-C in an editor is meant for the editor, but the terminal sends it to both. An ignored signal would be ignored there as well; one that is taken is not.
	taken := make(chan os.Signal, 1)
	signal.Notify(taken, os.Interrupt)
	defer signal.Stop(taken)
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("cannot edit: %s: %w; $VISUAL or $EDITOR names another editor", words[0], err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the draft: %w", err)
	}
	return text, nil
}
