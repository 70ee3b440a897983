package admin

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawMoment draws times of all kinds: with a zone and parts of a millisecond, before the year 0 and after 9999.
func drawMoment(t *rapid.T, name string) Moment {
	seconds := rapid.OneOf(rapid.Int64Range(0, 4e9), rapid.Int64Range(-1e11, 4e11)).Draw(t, name)
	zone := time.FixedZone("", rapid.IntRange(-12*3600, 14*3600).Draw(t, name+" zone"))
	return Moment{time.Unix(seconds, rapid.Int64Range(0, 1e9-1).Draw(t, name+" ns")).In(zone)}
}

func drawMaybe[T any](t *rapid.T, name string, draw func(*rapid.T, string) T) *T {
	if rapid.Bool().Draw(t, name+" is there") {
		v := draw(t, name)
		return &v
	}
	return nil
}

func drawSeconds(t *rapid.T, name string) Seconds {
	return Seconds(rapid.OneOf(rapid.Float64Range(0, 1e6), rapid.Float64Range(-1e-3, 1e-3), rapid.Float64Range(-1e15, 1e15),
		rapid.Map(rapid.Int64Range(0, 1e15), func(n int64) float64 { return float64(n) / 1000 })).Draw(t, name))
}

func drawSession(t *rapid.T) SessionDocument {
	text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,20}`), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	number := func(t *rapid.T, name string) int64 { return rapid.Int64().Draw(t, name) }
	d := SessionDocument{
		ID: text.Draw(t, "id"), State: text.Draw(t, "state"), Principal: text.Draw(t, "principal"), Object: text.Draw(t, "object"), Client: text.Draw(t, "client"),
		Class: text.Draw(t, "class"), StandsIn: text.Draw(t, "stands in"), Protocol: rapid.Bool().Draw(t, "protocol"), Held: rapid.Int().Draw(t, "held"),
		BundleObjects: rapid.Int().Draw(t, "objects"), SizeBytes: drawMaybe(t, "size", number), SentBytes: number(t, "sent"), ArrivedAt: drawMoment(t, "arrived"),
		WaitedSeconds: drawSeconds(t, "waited"), StartedAt: drawMaybe(t, "started", drawMoment), StartsAt: drawMaybe(t, "starts", drawMoment),
		PausedByOperator: rapid.Bool().Draw(t, "paused"), Why: text.Draw(t, "why"),
	}
	d.Position = drawMaybe(t, "position", func(t *rapid.T, name string) int { return rapid.Int().Draw(t, name) })
	d.StartsWindow = drawMaybe(t, "window", func(t *rapid.T, name string) StartsWindow {
		return StartsWindow{drawMoment(t, "earliest"), drawMoment(t, "latest")}
	})
	return d
}

// sameAsJSON compares a document's own words with encoding/json's.
func sameAsJSON(t *rapid.T, d appender) {
	t.Helper()
	want, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.appendJSON([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) {
		t.Fatalf("it writes\n%s\nencoding/json writes\n%s", got, want)
	}
}

// TestX6_DocumentsAreWrittenAsEncodingJSONWritesThem: to the byte, whatever is in them.
func TestX6_DocumentsAreWrittenAsEncodingJSONWritesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := SessionsDocument{Total: rapid.Int().Draw(t, "total")}
		for range rapid.IntRange(0, 3).Draw(t, "sessions") {
			d.Sessions = append(d.Sessions, drawSession(t))
		}
		d.Next = drawMaybe(t, "next", func(t *rapid.T, name string) string { return rapid.String().Draw(t, name) })
		sameAsJSON(t, d)
		sameAsJSON(t, drawSession(t))
		series := func(name string) Series {
			return Series(rapid.SliceOf(rapid.OneOf(rapid.Int64Range(-1, 10), rapid.Int64())).Draw(t, name))
		}
		sameAsJSON(t, HistoryDocument{
			StepSeconds: rapid.Int().Draw(t, "step"), Until: drawMoment(t, "until"), BytesPerSecond: series("down"), UploadBytesPerSecond: series("up"), Active: series("active"),
			Slots: series("slots"), Started: series("started"), Completed: series("completed"),
			Waiting: SeriesByClass{series("interactive"), series("release"), series("bulk"), series("background")},
		})
	})
}

// TestX6_ANumberThatIsNoneIsADefect: it costs one answer, as in every other document.
func TestX6_ANumberThatIsNoneIsADefect(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is written", f)
				}
			}()
			SessionDocument{WaitedSeconds: Seconds(f)}.appendJSON(nil)
		}()
	}
}

// TestX6_APageIsWrittenWithoutGarbage: into a buffer that is large enough nothing is allocated, however many rows there are.
func TestX6_APageIsWrittenWithoutGarbage(t *testing.T) {
	d := pageOf(1000)
	b := d.appendJSON(nil)
	if n := testing.AllocsPerRun(10, func() { b = d.appendJSON(b[:0]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func pageOf(n int) SessionsDocument {
	at := Moment{time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)}
	size, position, next := int64(17<<20), 4711, "AQEAAAAAAAAnEAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAA"
	d := SessionsDocument{Total: 65536, Sessions: make([]SessionDocument, n), Next: &next}
	for i := range d.Sessions {
		d.Sessions[i] = SessionDocument{ID: "0123456789abcdef", State: StateWaiting, Position: &position, Principal: "h:0123456789abcdef", Object: "h:0123456789abcdef",
			Client: "h:0123456789abcdef", Class: "background", StandsIn: "bulk", Protocol: true, SizeBytes: &size, ArrivedAt: at, WaitedSeconds: 1234.567, StartsAt: &at,
			StartsWindow: &StartsWindow{at, at}, Why: WhySlots}
	}
	return d
}

func BenchmarkX6_Page(b *testing.B) {
	d := pageOf(100)
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		for b.Loop() {
			out = d.appendJSON(out[:0])
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(d)
		}
	})
}
