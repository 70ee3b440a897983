package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/arkvory/sidecar/queue"
)

const (
	header = "arkvory-decisions 1"
	// hashBytes of a SHA-256 stand for a part of a key.
	hashBytes = 8
	none      = "-"
	// What an ask of the first logs has not: words behind its last field, where a number or "=" would stand.
	peekMark, bundleMark = "peek", "bundle:"

	flagHeld, flagYielded, flagStarted = 'h', 'y', 's'
)

// Hash returns the form in which a part of a key stands in a log: 16 hex digits.
func Hash(part string) string { return string(appendHash(nil, part)) }

func appendHash(b []byte, part string) []byte {
	sum := sha256.Sum256([]byte(part))
	return hex.AppendEncode(b, sum[:hashBytes])
}

func number[T ~int | ~int64](b []byte, n T) []byte {
	return strconv.AppendInt(append(b, ' '), int64(n), 10)
}

func ordinal(b []byte, n uint64) []byte { return strconv.AppendUint(append(b, ' '), n, 10) }

func word(b []byte, s string) []byte { return append(append(b, ' '), s...) }

func flag(b []byte, on bool) []byte {
	if on {
		return append(b, " 1"...)
	}
	return append(b, " 0"...)
}

// optional writes a number, or the sign for none.
func optional(b []byte, known bool, d time.Duration) []byte {
	if !known {
		return word(b, none)
	}
	return number(b, d)
}

func counts(b []byte, byClass [queue.Classes]int) []byte {
	for i, n := range byClass {
		separator := byte(',')
		if i == 0 {
			separator = ' '
		}
		b = strconv.AppendInt(append(b, separator), int64(n), 10)
	}
	return b
}

func appendKey(b []byte, k queue.Key) []byte {
	k = k.Bounded()
	for _, part := range [...]string{k.Principal, k.Object, k.Client} {
		b = appendHash(append(b, ' '), part)
	}
	return b
}

func appendAsk(b []byte, a *queue.Ask) []byte {
	b = appendKey(b, a.Key)
	b = word(b, queue.Class(a.Class.Index()).String())
	b = flag(b, a.Protocol)
	b = number(b, a.SizeBytes)
	if a.Validator == "" {
		b = word(b, none)
	} else {
		b = appendHash(append(b, ' '), a.Validator)
	}
	b = appendRange(append(b, ' '), a.Range)
	b = optional(b, a.Ticketed, a.Arrival)
	if a.Peek {
		b = word(b, peekMark)
	}
	if a.Bundle {
		b = strconv.AppendUint(word(b, bundleMark), a.Member, 16)
	}
	return b
}

func appendRange(b []byte, r queue.RangeAsk) []byte {
	switch r.Kind {
	case queue.RangeOpen:
		return strconv.AppendInt(append(b, "open:"...), r.First, 10)
	case queue.RangeBounded:
		b = strconv.AppendInt(append(b, "bounded:"...), r.First, 10)
		return strconv.AppendInt(append(b, ':'), r.Last, 10)
	case queue.RangeSuffix:
		return strconv.AppendInt(append(b, "suffix:"...), r.Last, 10)
	case queue.RangeMulti:
		return append(b, "multi"...)
	default:
		return append(b, "none"...)
	}
}

func appendVerdict(b []byte, v *queue.Verdict, response uint64) []byte {
	b = word(b, v.Outcome.String())
	b = word(b, queue.Class(v.Class.Index()).String())
	b = number(b, v.Position)
	b = number(b, v.Waited)
	b = optional(b, !spreadByKey(v.Outcome), v.CheckIn)
	b = number(b, v.Arrival)
	for _, d := range [...]time.Duration{v.StartsIn, v.EarliestIn, v.LatestIn} {
		b = optional(b, v.EstimateKnown, d)
	}
	return ordinal(appendFlags(b, v), response)
}

// appendFlags writes the letters of a verdict's truths.
func appendFlags(b []byte, v *queue.Verdict) []byte {
	b = append(b, ' ')
	before := len(b)
	if v.Held {
		b = append(b, flagHeld)
	}
	if v.Yielded {
		b = append(b, flagYielded)
	}
	if v.Started {
		b = append(b, flagStarted)
	}
	if len(b) == before {
		b = append(b, none...)
	}
	return b
}

func appendPolicy(b []byte, p *queue.Policy) []byte {
	b = word(b, p.Strategy.String())
	for _, n := range [...]int{p.Sessions, p.Reserve, p.PerPrincipal} {
		b = number(b, n)
	}
	b = counts(b, p.Weights)
	b = number(b, p.SessionMinBytes)
	b = number(b, p.IdleFor)
	b = number(b, p.AgingEvery)
	for _, n := range [...]int{p.RangesPerSession, p.QueueLimit, p.QueuePerPrincipal} {
		b = number(b, n)
	}
	b = flag(b, p.Preempt)
	b = number(b, p.SessionsElastic)
	b = number(b, p.BandBytesPerSecond)
	if p.Mode != queue.ModeNormal {
		b = word(b, p.Mode.String())
	}
	return b
}

func appendAction(b []byte, a queue.Action) []byte {
	b = word(b, a.Kind.String())
	if a.Kind != queue.MoveClass {
		return word(b, none)
	}
	return word(b, queue.Class(a.Class.Index()).String())
}

func appendState(b []byte, s *State) []byte {
	b = counts(b, s.Active)
	b = counts(b, s.Waiting)
	for _, n := range [...]int{s.Paused, s.Held, s.Slots, s.Free} {
		b = number(b, n)
	}
	return b
}

func appendEnd(b []byte, e *queue.End) []byte {
	b = word(b, queue.Class(e.Class.Index()).String())
	b = word(b, e.Reason.String())
	b = flag(b, e.Started)
	b = number(b, e.Wait)
	b = number(b, e.Promised)
	b = number(b, e.Duration)
	return number(b, e.Bytes)
}
