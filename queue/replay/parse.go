package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// LineError says which line of a log cannot be used, and why.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error names the line and the reason.
func (e *LineError) Error() string {
	return fmt.Sprintf("cannot read the log of decisions: line %d: %v", e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// ErrTruncated says that a log ends inside a line, or before the first one.
var ErrTruncated = errors.New("the log ends inside this line")

// Parse reads a log and calls visit with each event in order, until visit fails or the log ends. The event is valid during the
// call only. A line that cannot be used is a *LineError; an error of visit is returned as it is.
func Parse(r io.Reader, visit func(*Event) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	first, err := readLine(lines, nil)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return &LineError{1, err}
	}
	if string(first) != header {
		return &LineError{1, fmt.Errorf("this is no log of decisions of a known version: it must begin with %q", header)}
	}
	for n, line := 2, first; ; n++ {
		line, err = readLine(lines, line[:0])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &LineError{n, err}
		}
		event, err := parseLine(string(line))
		if err != nil {
			return &LineError{n, err}
		}
		event.Line = n
		if err := visit(&event); err != nil {
			return err
		}
	}
}

// readLine reads a line without its end into the buffer; io.EOF at the end of the log.
func readLine(r *bufio.Reader, buffer []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(buffer)+len(part) > MaxBuffered {
			return nil, fmt.Errorf("it is longer than %d bytes", MaxBuffered)
		}
		buffer = append(buffer, part...)
		switch {
		case err == nil:
			return buffer[:len(buffer)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(buffer) > 0:
			return nil, ErrTruncated
		default:
			return nil, err
		}
	}
}

// fields takes the fields of a line one after another and keeps the first fault.
type fields struct {
	rest string
	err  error
}

func parseLine(line string) (e Event, err error) {
	call, rest, more := strings.Cut(line, " | ")
	f := &fields{rest: call}
	f.call(&e)
	f.done()
	for more && f.err == nil {
		var one string
		one, rest, more = strings.Cut(rest, " | ")
		f.rest = one
		switch kind := f.next("settled or ended"); kind {
		case "settled":
			s := Settled{Waiter: f.ordinal("WAITER")}
			s.Response = f.verdict(&s.Verdict)
			e.Settled = append(e.Settled, s)
		case "ended":
			e.Ended = append(e.Ended, f.end())
		default:
			f.fail("settled or ended", kind)
		}
		f.done()
	}
	return e, f.err
}

// call reads what stands before the first bar.
func (f *fields) call(e *Event) {
	e.Op = lookup(f, "call", opCount)
	e.Now = f.duration("NOW")
	switch e.Op {
	case OpPolicy, OpConfigure:
		e.Policy = f.policy()
	case OpAsk:
		e.Ask = f.ask()
		f.equals()
		e.Response = f.verdict(&e.Verdict)
	case OpHold:
		e.Ask, e.Waiter = f.ask(), f.ordinal("WAITER")
		f.equals()
		e.Response = f.verdict(&e.Verdict)
	case OpWithdraw:
		e.Waiter, e.OK = f.ordinal("WAITER"), f.flag("OK")
		f.equals()
		e.Response = f.verdict(&e.Verdict)
	case OpDepart:
		e.Waiter, e.OK = f.ordinal("WAITER"), f.flag("OK")
	case OpLeave:
		e.Ask.Key = f.key()
	case OpProgress:
		e.Response, e.Bytes = f.ordinal("RESPONSE"), f.number("BYTES")
	case OpFinish:
		e.Response, e.First, e.End, e.Complete = f.ordinal("RESPONSE"), f.number("FIRST"), f.number("END"), f.flag("COMPLETE")
	case OpAbandon:
		e.Response = f.ordinal("RESPONSE")
	case OpTick:
		f.equals()
		e.State = f.state()
	case OpGrace:
		if e.Until = f.duration("UNTIL"); f.rest != "" {
			e.Gather = f.duration("GATHER")
		}
	case OpAct:
		e.Ask.Key, e.Action, e.OK = f.key(), f.action(), f.flag("OK")
	case OpGate:
		e.Open = f.flag("OPEN")
	case OpWindows:
		e.Windows = f.plan()
	case OpDrain:
	}
}

func (f *fields) fail(what, got string) {
	if f.err == nil {
		const limit = 40
		if len(got) > limit {
			got = got[:limit] + "..."
		}
		f.err = fmt.Errorf("%s cannot be %q", what, got)
	}
}

// next returns the next field; empty after a fault.
func (f *fields) next(what string) string {
	if f.err != nil {
		return ""
	}
	if f.rest == "" {
		f.err = fmt.Errorf("%s is missing", what)
		return ""
	}
	field, rest, _ := strings.Cut(f.rest, " ")
	f.rest = rest
	return field
}

// done fails when fields are left.
func (f *fields) done() {
	if f.err == nil && f.rest != "" {
		f.fail("what follows the last field", f.rest)
	}
}

func (f *fields) equals() {
	if s := f.next("="); s != "=" {
		f.fail("=", s)
	}
}

func (f *fields) parse(what, s string) int64 {
	if f.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f.fail(what, s)
	}
	return n
}

func (f *fields) number(what string) int64           { return f.parse(what, f.next(what)) }
func (f *fields) duration(what string) time.Duration { return time.Duration(f.number(what)) }

func (f *fields) count(what string) int {
	s := f.next(what)
	n := f.parse(what, s)
	if n < 0 || n > 1<<31-1 {
		f.fail(what, s)
	}
	return int(n)
}

func (f *fields) ordinal(what string) uint64 {
	s := f.next(what)
	n := f.parse(what, s)
	if n < 0 {
		f.fail(what, s)
	}
	return uint64(n)
}

func (f *fields) flag(what string) bool {
	s := f.next(what)
	if s != "0" && s != "1" {
		f.fail(what, s)
	}
	return s == "1"
}

// optional reads a number or the sign for none.
func (f *fields) optional(what string) (time.Duration, bool) {
	s := f.next(what)
	if s == none {
		return 0, false
	}
	return time.Duration(f.parse(what, s)), f.err == nil
}

// marker takes a word that need not be there, and reports whether it was.
func (f *fields) marker(s string) bool {
	rest, there := strings.CutPrefix(f.rest, s+" ")
	f.rest = rest
	return there
}

// lookup reads the name of one of the values 0..limit-1.
func lookup[T interface {
	~uint8
	String() string
}](f *fields, what string, limit T) T {
	s := f.next(what)
	for v := T(0); v < limit; v++ {
		if v.String() == s {
			return v
		}
	}
	f.fail(what, s)
	return 0
}

func (f *fields) byClass(what string) (out [queue.Classes]int) {
	s := f.next(what)
	parts := strings.Split(s, ",")
	if len(parts) != len(out) {
		f.fail(what, s)
		return out
	}
	for i, part := range parts {
		n := f.parse(what, part)
		if n < 0 || n > 1<<31-1 {
			f.fail(what, s)
		}
		out[i] = int(n)
	}
	return out
}

// hash reads a hashed part of a key.
func (f *fields) hash(what string) string {
	s := f.next(what)
	if len(s) != 2*hashBytes || strings.Trim(s, "0123456789abcdef") != "" {
		f.fail(what, s)
	}
	return strings.Clone(s)
}

func (f *fields) key() queue.Key {
	return queue.Key{Principal: f.hash("PRINCIPAL"), Object: f.hash("OBJECT"), Client: f.hash("CLIENT")}
}

func (f *fields) class() queue.Class { return lookup(f, "CLASS", queue.Class(queue.Classes)) }

func (f *fields) ask() (a queue.Ask) {
	a.Key, a.Class, a.Protocol, a.SizeBytes = f.key(), f.class(), f.flag("PROTOCOL"), f.number("SIZE")
	if rest, empty := strings.CutPrefix(f.rest, none+" "); empty {
		f.rest = rest
	} else {
		a.Validator = f.hash("VALIDATOR")
	}
	a.Range = f.rangeAsk()
	a.Arrival, a.Ticketed = f.optional("TICKET")
	a.Peek = f.marker(peekMark)
	if a.Bundle = strings.HasPrefix(f.rest, bundleMark); a.Bundle {
		s := f.next("BUNDLE")
		member, err := strconv.ParseUint(strings.TrimPrefix(s, bundleMark), 16, 64)
		if err != nil {
			f.fail("BUNDLE", s)
		}
		a.Member = member
	}
	return a
}

func (f *fields) rangeAsk() (r queue.RangeAsk) {
	s := f.next("RANGE")
	kind, values, valued := strings.Cut(s, ":")
	first, last, two := strings.Cut(values, ":")
	switch {
	case kind == "none" && !valued:
	case kind == "multi" && !valued:
		r.Kind = queue.RangeMulti
	case kind == "open" && valued && !two:
		r = queue.OpenFrom(f.parse("RANGE", first))
	case kind == "bounded" && two:
		r = queue.Bounded(f.parse("RANGE", first), f.parse("RANGE", last))
	case kind == "suffix" && valued && !two:
		r = queue.Suffix(f.parse("RANGE", first))
	default:
		f.fail("RANGE", s)
	}
	return r
}

func (f *fields) verdict(v *queue.Verdict) (response uint64) {
	v.Outcome, v.Class = lookup(f, "OUTCOME", queue.Outcomes), f.class()
	v.Position, v.Waited = f.count("POSITION"), f.duration("WAITED")
	v.CheckIn, _ = f.optional("CHECKIN")
	v.Arrival = f.duration("ARRIVAL")
	v.StartsIn, v.EstimateKnown = f.optional("STARTS")
	v.EarliestIn, _ = f.optional("EARLIEST")
	v.LatestIn, _ = f.optional("LATEST")
	f.flags(v)
	response = f.ordinal("RESPONSE")
	if f.err == nil && (response != 0) != (v.Outcome == queue.Admitted) {
		f.fail("RESPONSE of the outcome "+v.Outcome.String(), strconv.FormatUint(response, 10))
	}
	return response
}

// flags reads the letters of a verdict's truths, in their order.
func (f *fields) flags(v *queue.Verdict) {
	said := f.next("FLAGS")
	left := said
	if said == none {
		left = ""
	}
	take := func(letter rune) (set bool) {
		left, set = strings.CutPrefix(left, string(letter))
		return set
	}
	v.Held, v.Yielded, v.Started = take(flagHeld), take(flagYielded), take(flagStarted)
	if left != "" {
		f.fail("FLAGS", said)
	}
}

func (f *fields) policy() (p queue.Policy) {
	name := f.next("STRATEGY")
	strategy, err := queue.ParseStrategy(name)
	if err != nil {
		f.fail("STRATEGY", name)
	}
	p.Strategy = strategy
	p.Sessions, p.Reserve, p.PerPrincipal = int(f.number("SESSIONS")), int(f.number("RESERVE")), int(f.number("PERPRINCIPAL"))
	p.Weights = f.byClass("WEIGHTS")
	p.SessionMinBytes, p.IdleFor, p.AgingEvery = f.number("SESSIONMIN"), f.duration("IDLE"), f.duration("AGING")
	p.RangesPerSession, p.QueueLimit, p.QueuePerPrincipal = int(f.number("RANGES")), int(f.number("LIMIT")), int(f.number("LIMITPERPRINCIPAL"))
	p.Preempt, p.SessionsElastic, p.BandBytesPerSecond = f.flag("PREEMPT"), int(f.number("ELASTIC")), f.number("BAND")
	if f.rest != "" {
		name := f.next("MODE")
		if p.Mode, err = queue.ParseMode(name); err != nil {
			f.fail("MODE", name)
		}
	}
	return p
}

func (f *fields) action() (a queue.Action) {
	a.Kind = lookup(f, "ACTION", queue.Actions)
	if a.Kind == queue.MoveClass {
		a.Class = f.class()
	} else if s := f.next("CLASS"); s != none {
		f.fail("CLASS", s)
	}
	return a
}

func (f *fields) state() State {
	return State{Active: f.byClass("ACTIVE"), Waiting: f.byClass("WAITING"), Paused: f.count("PAUSED"), Held: f.count("HELD"), Slots: f.count("SLOTS"), Free: int(f.number("FREE"))}
}

func (f *fields) end() (e queue.End) {
	e.Class, e.Reason, e.Started = f.class(), lookup(f, "REASON", queue.Reason(queue.Reasons)), f.flag("STARTED")
	e.Wait, e.Promised, e.Duration, e.Bytes = f.duration("WAIT"), f.duration("PROMISED"), f.duration("DURATION"), f.number("BYTES")
	return e
}
