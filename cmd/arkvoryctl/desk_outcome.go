package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Exit codes of the commands that speak with the admin listener, beside those of a download, which mean the same here.
const (
	exitConflict = 7
	exitInvalid  = 8
)

// deskOutcomes say of each exit code of queue, settings and sessions its word and what it means. Their help is made of them.
var deskOutcomes = []struct {
	code    int
	word    string
	meaning string
}{
	{exitDone, "done", "It was done, or there was nothing to do."},
	{exitWork, "failed", "Nobody listens, no answer came in time, it was no Arkvory admin listener that answered, the store of the settings is down, or the question was not answered with yes."},
	{exitInput, "usage", "The command line is wrong. Nothing was asked of the server, or nothing was changed."},
	{exitRefused, "refused", "The server refused: no token or a wrong one, too many requests, no such session, or an older sidecar that does not know this."},
	{exitConflict, "conflict", "Somebody else changed the settings meanwhile, or the session is not in a state for this. Nothing was changed: look and decide anew."},
	{exitInvalid, "invalid", "The server says that a field breaks its rule. Nothing was changed."},
	{exitInterrupted, "interrupted", "Ended by Ctrl-C (SIGINT), as a watch is."},
	{exitTerminated, "terminated", "Ended by SIGTERM."},
}

// deskHelp is a help's text with the table of exit codes below it.
func deskHelp(text string) string {
	var b strings.Builder
	b.WriteString(text)
	b.WriteString("\n\nExit codes:\n\n")
	for _, one := range deskOutcomes {
		fmt.Fprintf(&b, "%d: %s. %s\n\n", one.code, one.word, one.meaning)
	}
	return b.String()
}

// deskFault is why a command of the desk came to nothing.
type deskFault struct {
	code   int    // what the process ends with
	status int    // of the answer, 0 = there was none
	reason string // the server's word for it, "" = none
	text   string
	cause  error // may be nil
}

func (f *deskFault) Error() string { return f.text }
func (f *deskFault) Unwrap() error { return f.cause }

// failed makes a fault without an answer.
func failed(cause error, format string, args ...any) *deskFault {
	return &deskFault{code: exitWork, text: fmt.Sprintf(format, args...), cause: cause}
}

// refusal is the body of an answer that is no 200.
type refusal struct {
	Error   string       `json:"error"`
	Reason  string       `json:"reason"`
	Message string       `json:"message"`
	Field   string       `json:"field"`
	Rule    string       `json:"rule"`
	Example any          `json:"example"`
	Faults  []fieldFault `json:"faults"`
}

// fieldFault is one field that breaks its rule, with a value that would do.
type fieldFault struct {
	Field   string          `json:"field"`
	Rule    string          `json:"rule"`
	Example json.RawMessage `json:"example"`
}

// line is what a person reads of it.
func (f fieldFault) line() string {
	text := "the server refuses " + oneLine(f.Field) + ": " + oneLine(f.Rule)
	if example := string(bytes.TrimSpace(f.Example)); example != "" && example != "null" {
		text += ", for example " + oneLine(example)
	}
	return text
}

// faultOf turns an answer that is no 200 into a fault. What is no refusal of an admin listener is said to be none.
func (d *desk) faultOf(status int, header http.Header, body []byte) *deskFault {
	var said refusal
	if !isJSON(header) || json.Unmarshal(body, &said) != nil || said.Error == "" {
		if status == http.StatusServiceUnavailable {
			return &deskFault{code: exitWork, status: status, text: d.where() + " answers 503: it is overloaded, or something before it is"}
		}
		return d.foreign(status, header)
	}
	message := oneLine(said.Message)
	fault := &deskFault{code: exitRefused, status: status, reason: said.Reason, text: join(d.where() + " refused: " + message)}
	switch {
	case status == http.StatusUnauthorized && d.token == "":
		fault.text = d.where() + " does not trust this caller: give --token-file, or the token in $" + tokenVariable
	case status == http.StatusUnauthorized:
		fault.text = d.where() + " does not take this token"
	case status == http.StatusTooManyRequests:
		fault.text = d.where() + " was asked too often"
		if after := header.Get("Retry-After"); after != "" {
			fault.text += "; it asks for a pause of " + oneLine(after) + " s"
		}
	case status == http.StatusNotFound && said.Reason == "unknown_session":
		fault.text = "there is no such session: it ended, or its id is of another process"
	case status == http.StatusNotFound:
		fault.text = d.where() + " does not know this: the sidecar is older than this program, or runs without a queue"
	case status == http.StatusConflict:
		fault.code, fault.text = exitConflict, message
	case status == http.StatusBadRequest:
		fault.code, fault.text = exitInvalid, message
		if lines := said.lines(); len(lines) > 0 {
			fault.text = strings.Join(lines, "\n")
		}
	case status >= 500:
		fault.code = exitWork
	}
	return fault
}

// lines are the faults of fields, each once.
func (r refusal) lines() []string {
	var lines []string
	for _, one := range r.Faults {
		lines = append(lines, one.line())
	}
	if len(lines) == 0 && r.Field != "" {
		example, _ := json.Marshal(r.Example) // what was decoded can be encoded
		lines = append(lines, fieldFault{r.Field, r.Rule, example}.line())
	}
	return lines
}

// foreign is an answer of something that is no admin listener.
func (d *desk) foreign(status int, header http.Header) *deskFault {
	kind := oneLine(header.Get("Content-Type"))
	if kind == "" {
		kind = "no type"
	}
	return &deskFault{code: exitWork, status: status, text: fmt.Sprintf("%s is no admin listener of an Arkvory sidecar (it answered %d, %s); ARKVORY_ADMIN_LISTEN of the sidecar says where that is", d.where(), status, kind)}
}
