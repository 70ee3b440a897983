package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/arkvory/sidecar/queue/client"
)

// Exit codes. Scripts branch on them: a number is never given another meaning.
const (
	exitDone        = 0
	exitWork        = 1
	exitInput       = 2
	exitMismatch    = 3
	exitDeadline    = 4
	exitWaitLimit   = 5
	exitRefused     = 6
	exitInterrupted = 130 // 128 + SIGINT, as shells count
	exitTerminated  = 143 // 128 + SIGTERM
)

// outcomes say of each exit code its reason in JSON and what it means. Help and README are made of them.
var outcomes = []struct {
	code    int
	reason  string
	meaning string
}{
	{exitDone, "done", "The file is complete and what was asked to be checked is right."},
	{exitWork, "failed", "It failed: the network or the server broke more often than --retries and --attempts allow, the disk refused, or another process downloads the same file. What came is kept."},
	{exitInput, "usage", "The command line is wrong; or the file is there already (--force replaces it); or an earlier run of another URL left its part there (--fresh forgets it). Nothing was asked of the server."},
	{exitMismatch, "verification", "The bytes are not those that were asked for: digest or size differ, or the object kept changing. With a wrong digest they stay as FILE.bad."},
	{exitDeadline, "queue_deadline", "The download would start, or is still waiting, after --not-after."},
	{exitWaitLimit, "wait_limit", "It waited longer than --wait-limit in all."},
	{exitRefused, "refused", "The server refused for good: 401, 403, 404 and other answers that asking again does not change."},
	{exitInterrupted, "interrupted", "Ended by Ctrl-C (SIGINT). What came is kept: the same command goes on."},
	{exitTerminated, "terminated", "Ended by SIGTERM, as above."},
}

// signalled is the end by a signal, as the cause of a cancelled context.
type signalled struct {
	code int
	name string
}

func (s signalled) Error() string { return s.name }

// exitCode is what the process ends with after err.
func exitCode(err error) int {
	var (
		input inputError
		by    signalled
		fault *deskFault
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &by):
		return by.code
	case errors.As(err, &fault):
		return fault.code
	case errors.As(err, &input), errors.Is(err, client.ErrOptions), errors.Is(err, client.ErrCheckpoint), errors.Is(err, client.ErrExists):
		return exitInput
	case errors.Is(err, client.ErrDigest), errors.Is(err, client.ErrSize), errors.Is(err, client.ErrChanged):
		return exitMismatch
	case errors.Is(err, client.ErrQueueDeadline):
		return exitDeadline
	case errors.Is(err, client.ErrWaitLimit):
		return exitWaitLimit
	case errors.Is(err, client.ErrRefused):
		return exitRefused
	}
	return exitWork
}

// reasonOf is the word for an exit code.
func reasonOf(code int) string {
	for _, one := range outcomes {
		if one.code == code {
			return one.reason
		}
	}
	return "failed"
}

// complain says what went wrong; nothing when nothing did.
func complain(to io.Writer, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(to, "arkvoryctl: %s\n", strings.TrimRight(strings.Map(printed, line), " "))
	}
}

// printed keeps what can be seen; names of files and texts of servers may hold more, which would draw on the terminal.
func printed(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// outcomeHelp is the table of exit codes as the help shows it.
func outcomeHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n\n")
	for _, one := range outcomes {
		fmt.Fprintf(&b, "%d: %s. %s\n\n", one.code, one.reason, one.meaning)
	}
	return b.String()
}
