package admin

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// The documents with many rows or samples are written by hand: encoding/json, with its reflection and with the second look that it takes at what a MarshalJSON
// returns, took three quarters of the time of a page. What is written is byte for byte what encoding/json writes; a test
// compares the two, so that the types and their tags stay the one description of a document.

// appender is a document that writes itself.
type appender interface{ appendJSON(b []byte) []byte }

func (d SessionsDocument) appendJSON(b []byte) []byte {
	b = append(b, `{"total":`...)
	b = strconv.AppendInt(b, int64(d.Total), 10)
	b = append(b, `,"sessions":`...)
	if d.Sessions == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, '[')
		for i := range d.Sessions {
			if i > 0 {
				b = append(b, ',')
			}
			b = d.Sessions[i].appendTo(b)
		}
		b = append(b, ']')
	}
	b = append(b, `,"next":`...)
	if d.Next == nil {
		b = append(b, "null"...)
	} else {
		b = appendText(b, *d.Next)
	}
	return append(b, '}')
}

func (d SessionDocument) appendJSON(b []byte) []byte { return d.appendTo(b) }

// appendTo is appendJSON without a copy of the document.
func (d *SessionDocument) appendTo(b []byte) []byte {
	b = appendText(append(b, `{"id":`...), d.ID)
	b = appendText(append(b, `,"state":`...), d.State)
	b = append(b, `,"position":`...)
	if d.Position == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(*d.Position), 10)
	}
	b = appendText(append(b, `,"principal":`...), d.Principal)
	b = appendText(append(b, `,"object":`...), d.Object)
	b = appendText(append(b, `,"client":`...), d.Client)
	b = appendText(append(b, `,"class":`...), d.Class)
	b = appendText(append(b, `,"standsIn":`...), d.StandsIn)
	b = strconv.AppendBool(append(b, `,"protocol":`...), d.Protocol)
	b = strconv.AppendInt(append(b, `,"held":`...), int64(d.Held), 10)
	b = strconv.AppendInt(append(b, `,"bundleObjects":`...), int64(d.BundleObjects), 10)
	b = append(b, `,"sizeBytes":`...)
	if d.SizeBytes == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, *d.SizeBytes, 10)
	}
	b = strconv.AppendInt(append(b, `,"sentBytes":`...), d.SentBytes, 10)
	b = d.ArrivedAt.appendTo(append(b, `,"arrivedAt":`...))
	b = d.WaitedSeconds.appendTo(append(b, `,"waitedSeconds":`...))
	b = appendMoment(append(b, `,"startedAt":`...), d.StartedAt)
	b = appendMoment(append(b, `,"startsAt":`...), d.StartsAt)
	b = append(b, `,"startsWindow":`...)
	if w := d.StartsWindow; w == nil {
		b = append(b, "null"...)
	} else {
		b = w.Earliest.appendTo(append(b, `{"earliest":`...))
		b = w.Latest.appendTo(append(b, `,"latest":`...))
		b = append(b, '}')
	}
	b = strconv.AppendBool(append(b, `,"pausedByOperator":`...), d.PausedByOperator)
	b = appendText(append(b, `,"why":`...), d.Why)
	return append(b, '}')
}

func (d HistoryDocument) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"stepSeconds":`...), int64(d.StepSeconds), 10)
	b = d.Until.appendTo(append(b, `,"until":`...))
	b = d.BytesPerSecond.appendTo(append(b, `,"bytesPerSecond":`...))
	b = d.UploadBytesPerSecond.appendTo(append(b, `,"uploadBytesPerSecond":`...))
	b = d.Active.appendTo(append(b, `,"active":`...))
	b = d.Slots.appendTo(append(b, `,"slots":`...))
	b = d.Waiting.Interactive.appendTo(append(b, `,"waiting":{"interactive":`...))
	b = d.Waiting.Release.appendTo(append(b, `,"release":`...))
	b = d.Waiting.Bulk.appendTo(append(b, `,"bulk":`...))
	b = d.Waiting.Background.appendTo(append(b, `,"background":`...))
	b = d.Started.appendTo(append(b, `},"started":`...))
	b = d.Completed.appendTo(append(b, `,"completed":`...))
	return append(b, '}')
}

// appendTo writes a list of whole numbers and nulls.
func (s Series) appendTo(b []byte) []byte {
	b = append(b, '[')
	for i, n := range s {
		if i > 0 {
			b = append(b, ',')
		}
		if n < 0 {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendInt(b, n, 10)
		}
	}
	return append(b, ']')
}

func appendMoment(b []byte, m *Moment) []byte {
	if m == nil {
		return append(b, "null"...)
	}
	return m.appendTo(b)
}

// appendTo writes the moment in quotes, cut to milliseconds.
func (m Moment) appendTo(b []byte) []byte {
	t := m.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, `"`+momentLayout+`"`)
	}
	hour, minute, second := t.Clock()
	b = appendDigits(append(b, '"'), year, 4)
	b = appendDigits(append(b, '-'), int(month), 2)
	b = appendDigits(append(b, '-'), day, 2)
	b = appendDigits(append(b, 'T'), hour, 2)
	b = appendDigits(append(b, ':'), minute, 2)
	b = appendDigits(append(b, ':'), second, 2)
	b = appendDigits(append(b, '.'), t.Nanosecond()/int(time.Millisecond), 3)
	return append(b, 'Z', '"')
}

// appendDigits writes a number of at most that many digits with zeros before it.
func appendDigits(b []byte, n, digits int) []byte {
	b = append(b, "0000"[:digits]...)
	for i := len(b) - 1; n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}

// exactSeconds bounds the seconds whose milliseconds are written as whole numbers: with 15 digits a decimal is the shortest one of its float64.
const exactSeconds = 1e12

// appendTo writes the number, rounded to milliseconds. It panics at NaN and infinity, as writeJSON does: they are a defect of the source.
func (s Seconds) appendTo(b []byte) []byte {
	f := math.Round(float64(s) * 1000)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		panic("a number of seconds is none")
	case math.Signbit(f) || f >= exactSeconds*1000:
		return strconv.AppendFloat(b, f/1000, 'f', -1, 64)
	}
	n := int64(f)
	b = strconv.AppendInt(b, n/1000, 10)
	part := int(n % 1000)
	if part == 0 {
		return b
	}
	b = appendDigits(append(b, '.'), part, 3)
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}

// plain are the bytes that stand for themselves in a string of encoding/json.
var plain = func() (plain [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		plain[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return plain
}()

// appendText writes a string.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if !plain[text[i]] {
			quoted, _ := json.Marshal(text) // a string can always be encoded
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}
