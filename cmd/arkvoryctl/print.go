package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/sim"
)

// report is the JSON output.
type report struct {
	Scenario   scenarioReport `json:"scenario"`
	Strategies []sim.Result   `json:"strategies"`
}

// scenarioReport repeats what was simulated.
type scenarioReport struct {
	Name                 string  `json:"name"`
	About                string  `json:"about,omitempty"`
	Clients              int     `json:"clients"`
	SizeLowBytes         int64   `json:"sizeLowBytes"`
	SizeHighBytes        int64   `json:"sizeHighBytes"`
	LinkBytesPerSecond   int64   `json:"linkBytesPerSecond"`
	ClientBytesPerSecond int64   `json:"clientBytesPerSecond"` // 0 = the link
	SlowShare            float64 `json:"slowShare"`
	SlowBytesPerSecond   int64   `json:"slowBytesPerSecond"`
	Arrivals             string  `json:"arrivals"`
	ArrivalsSeconds      float64 `json:"arrivalsSeconds"`
	Slots                int     `json:"slots"`
	SlotsElastic         int     `json:"slotsElastic"`
	Seed                 uint64  `json:"seed"`
}

func (p *plan) report() scenarioReport {
	s := p.settings
	elastic := max(s.Policy.SessionsElastic, s.Policy.Sessions)
	return scenarioReport{
		Name: p.title(), About: p.about, Clients: s.Clients, SizeLowBytes: s.Size.Low, SizeHighBytes: s.Size.High,
		LinkBytesPerSecond: s.LinkBytesPerSecond, ClientBytesPerSecond: s.ClientBytesPerSecond, SlowShare: s.Slow.Part,
		SlowBytesPerSecond: s.Slow.BytesPerSecond, Arrivals: string(s.Arrivals.Kind), ArrivalsSeconds: s.Arrivals.Over.Seconds(),
		Slots: s.Policy.Sessions, SlotsElastic: elastic, Seed: s.Seed,
	}
}

func (p *plan) title() string {
	if p.name != "" {
		return p.name
	}
	return fmt.Sprintf("%d clients", p.settings.Clients)
}

func printJSON(out io.Writer, p *plan, results []sim.Result) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(report{p.report(), results}); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	return nil
}

// row is one line of the table.
type row struct {
	name string
	of   func(*sim.Result) string
}

func fixed(digits int, of func(*sim.Result) float64) func(*sim.Result) string {
	return func(r *sim.Result) string { return fmt.Sprintf("%.*f", digits, of(r)) }
}

func percent(of func(*sim.Result) float64) func(*sim.Result) string {
	return func(r *sim.Result) string {
		v := of(r) * 100
		if v > 0 && v < 0.005 {
			return fmt.Sprintf("%.1e %%", v)
		}
		return fmt.Sprintf("%.2f %%", v)
	}
}

func maybe(of func(*sim.Result) *float64) func(*sim.Result) string {
	return func(r *sim.Result) string {
		if v := of(r); v != nil {
			return fmt.Sprintf("%.1f %%", *v*100)
		}
		return "none made"
	}
}

func count[T int | uint64](of func(*sim.Result) T) func(*sim.Result) string {
	return func(r *sim.Result) string { return fmt.Sprint(of(r)) }
}

func span(of func(*sim.Result) float64) func(*sim.Result) string {
	return func(r *sim.Result) string {
		if v := of(r); !math.IsInf(v, 0) {
			return showSeconds(v)
		}
		return "never"
	}
}

var rows = []row{
	{"mean against equal sharing", fixed(3, func(r *sim.Result) float64 { return r.MeanVsSharing })},
	{"mean time to the last byte", span(func(r *sim.Result) float64 { return r.MeanSeconds })},
	{"first client done", span(func(r *sim.Result) float64 { return r.FirstDoneSeconds })},
	{"last client done", span(func(r *sim.Result) float64 { return r.MakespanSeconds })},
	{"against the ideal drain", fixed(4, func(r *sim.Result) float64 { return r.DrainRatio })},
	{"later than equal sharing", count(func(r *sim.Result) int { return r.LaterThanSharing })},
	{"  at most by", fixed(3, func(r *sim.Result) float64 { return r.MaxLaterRatio })},
	{"link busy while any wait", percent(func(r *sim.Result) float64 { return r.LinkBusy })},
	{"idle slots while any wait", percent(func(r *sim.Result) float64 { return r.IdleSlots })},
	{"starts as promised", maybe(func(r *sim.Result) *float64 { return r.StartsWithinTolerance })},
	{"starts within the p90", maybe(func(r *sim.Result) *float64 { return r.P90Holds })},
	{"answers / without estimate", func(r *sim.Result) string { return fmt.Sprintf("%d / %d", r.Answers, r.UnknownAnswers) }},
	{"refusals per request", count(func(r *sim.Result) uint64 { return r.Refusals })},
	{"positions risen / unexplained", func(r *sim.Result) string { return fmt.Sprintf("%d / %d", r.Rises.Rises, r.Rises.Unexplained) }},
	{"preemptions", count(func(r *sim.Result) uint64 { return r.Preemptions })},
	{"most slots", count(func(r *sim.Result) int { return r.MostSlots })},
	{"done / failed / left", func(r *sim.Result) string {
		return fmt.Sprintf("%d / %d / %d", r.DoneClients, r.FailedClients, r.LeftClients)
	}},
	{"bytes repeated", func(r *sim.Result) string { return showBytes(r.RepeatedBytes) }},
}

// printTable prints the strategies side by side.
func printTable(out io.Writer, p *plan, results []sim.Result) error {
	s := p.settings
	fmt.Fprintf(out, "%s: %d clients of %s..%s, link %s/s, %d slots, %s arrivals, seed %d\n", p.title(), s.Clients, showBytes(s.Size.Low),
		showBytes(s.Size.High), showBytes(s.LinkBytesPerSecond), s.Policy.Sessions, s.Arrivals.Kind, s.Seed)
	if p.about != "" {
		fmt.Fprintln(out, p.about)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, of func(*sim.Result) string) {
		cells := []string{name}
		for i := range results {
			cells = append(cells, of(&results[i]))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	line("", func(r *sim.Result) string { return r.Name })
	for _, row := range rows {
		line(row.name, row.of)
	}
	for class := range queue.Classes {
		name := queue.Class(class).String()
		of := func(r *sim.Result) *sim.Waits {
			for i := range r.Waits {
				if r.Waits[i].Class == name {
					return &r.Waits[i]
				}
			}
			return nil
		}
		if !anyHas(results, func(r *sim.Result) bool { return of(r) != nil }) {
			continue
		}
		line("wait "+name+" p50 / p99", func(r *sim.Result) string {
			if v := of(r); v != nil {
				return showSeconds(v.P50) + " / " + showSeconds(v.P99)
			}
			return "-"
		})
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	return nil
}

func anyHas(results []sim.Result, is func(*sim.Result) bool) bool {
	for i := range results {
		if is(&results[i]) {
			return true
		}
	}
	return false
}
