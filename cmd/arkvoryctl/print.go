package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/sim"
)

// report is the JSON output.
type report struct {
	Scenario   scenarioReport `json:"scenario"`
	Strategies []sim.Result   `json:"strategies"`        // of the first seed
	Spreads    []spreadReport `json:"spreads,omitempty"` // over all seeds, when there are several
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
	Seeds                int     `json:"seeds"`
}

func (p *plan) report() scenarioReport {
	s := p.settings
	elastic := max(s.Policy.SessionsElastic, s.Policy.Sessions)
	return scenarioReport{
		Name: p.title(), About: p.about, Clients: s.Clients, SizeLowBytes: s.Size.Low, SizeHighBytes: s.Size.High,
		LinkBytesPerSecond: s.LinkBytesPerSecond, ClientBytesPerSecond: s.ClientBytesPerSecond, SlowShare: s.Slow.Part,
		SlowBytesPerSecond: s.Slow.BytesPerSecond, Arrivals: string(s.Arrivals.Kind), ArrivalsSeconds: s.Arrivals.Over.Seconds(),
		Slots: s.Policy.Sessions, SlotsElastic: elastic, Seed: s.Seed, Seeds: p.seeds,
	}
}

func (p *plan) title() string {
	if p.name != "" {
		return p.name
	}
	return fmt.Sprintf("%d clients", p.settings.Clients)
}

func printJSON(out io.Writer, p *plan, runs [][]sim.Result) error {
	all := report{Scenario: p.report(), Strategies: runs[0]}
	if p.seeds > 1 {
		all.Spreads = spreads(runs)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	return nil
}

// row is one line of the table.
type row struct {
	name string
	of   func(*sim.Result) string
}

// shown writes a measure, or nothing for "there was none".
func shown(m sim.Measure, nothing string, of func(float64) string) string {
	if !m.Known() {
		return nothing
	}
	return of(float64(m))
}

func fixed(digits int, of func(*sim.Result) sim.Measure) func(*sim.Result) string {
	return func(r *sim.Result) string { return shown(of(r), "-", decimals(digits)) }
}

func decimals(digits int) func(float64) string {
	return func(v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }
}

func percent(of func(*sim.Result) sim.Measure) func(*sim.Result) string {
	return func(r *sim.Result) string { return shown(of(r), "nobody waited", showShare) }
}

// showShare writes a share as per cent; a tiny one is not shown as nothing.
func showShare(v float64) string {
	if v *= 100; v > 0 && v < 0.005 {
		return fmt.Sprintf("%.0e %%", v)
	}
	return fmt.Sprintf("%.2f %%", v)
}

func promised(of func(*sim.Result) sim.Measure) func(*sim.Result) string {
	return func(r *sim.Result) string { return shown(of(r), "none made", showPerCent) }
}

func showPerCent(v float64) string { return fmt.Sprintf("%.1f %%", v*100) }

func count[T int | uint64](of func(*sim.Result) T) func(*sim.Result) string {
	return func(r *sim.Result) string { return fmt.Sprint(of(r)) }
}

func span(of func(*sim.Result) sim.Measure) func(*sim.Result) string {
	return func(r *sim.Result) string { return shown(of(r), "never", showSeconds) }
}

var rows = []row{
	{"mean against equal sharing", fixed(3, func(r *sim.Result) sim.Measure { return r.MeanVsSharing })},
	{"mean time to the last byte", span(func(r *sim.Result) sim.Measure { return r.MeanSeconds })},
	{"first client done", span(func(r *sim.Result) sim.Measure { return r.FirstDoneSeconds })},
	{"last client done", span(func(r *sim.Result) sim.Measure { return r.MakespanSeconds })},
	{"against the ideal drain", fixed(4, func(r *sim.Result) sim.Measure { return r.DrainRatio })},
	{"later than equal sharing", count(func(r *sim.Result) int { return r.LaterThanSharing })},
	{"  at most by", fixed(3, func(r *sim.Result) sim.Measure { return r.MaxLaterRatio })},
	{"link busy while any wait", percent(func(r *sim.Result) sim.Measure { return r.LinkBusy })},
	{"idle slots while any wait", percent(func(r *sim.Result) sim.Measure { return r.IdleSlots })},
	{"starts as promised", promised(func(r *sim.Result) sim.Measure { return r.StartsWithinTolerance })},
	{"starts within the p90", promised(func(r *sim.Result) sim.Measure { return r.P90Holds })},
	{"answers / without estimate", func(r *sim.Result) string { return fmt.Sprintf("%d / %d", r.Answers, r.UnknownAnswers) }},
	{"promises nobody can judge", count(func(r *sim.Result) uint64 { return r.PromisesOpen })},
	{"refusals per request", count(func(r *sim.Result) uint64 { return r.Refusals })},
	{"positions risen / unexplained", func(r *sim.Result) string { return fmt.Sprintf("%d / %d", r.Rises.Rises, r.Rises.Unexplained) }},
	{"preemptions", count(func(r *sim.Result) uint64 { return r.Preemptions })},
	{"most slots", count(func(r *sim.Result) int { return r.MostSlots })},
	{"done / failed / left", func(r *sim.Result) string {
		return fmt.Sprintf("%d / %d / %d", r.DoneClients, r.FailedClients, r.LeftClients)
	}},
	{"bytes repeated", func(r *sim.Result) string { return showBytes(r.RepeatedBytes) }},
}

// sizes writes the smallest and the largest size of all classes.
func (p *plan) sizes() string {
	all := p.settings.Size
	for i, m := range p.settings.Classes {
		size := m.Size
		if size == (sim.Sizes{}) {
			size = p.settings.Size
		}
		if i == 0 {
			all = size
		}
		all.Low, all.High = min(all.Low, size.Low), max(all.High, size.High)
	}
	if all.Low == all.High {
		return showBytes(all.Low)
	}
	return showBytes(all.Low) + " to " + showBytes(all.High)
}

// printHead prints what was simulated.
func (p *plan) printHead(out io.Writer) {
	s := p.settings
	seeds := fmt.Sprintf("seed %d", s.Seed)
	if p.seeds > 1 {
		seeds = fmt.Sprintf("seeds %d..%d", s.Seed, s.Seed+uint64(p.seeds)-1)
	}
	fmt.Fprintf(out, "%s: %d clients of %s, link %s/s, %d slots, %s arrivals, %s\n", p.title(), s.Clients, p.sizes(),
		showBytes(s.LinkBytesPerSecond), s.Policy.Sessions, s.Arrivals.Kind, seeds)
	if p.about != "" {
		fmt.Fprintln(out, p.about)
	}
	fmt.Fprintln(out)
}

// printTable prints the strategies side by side.
func printTable(out io.Writer, p *plan, results []sim.Result) error {
	p.printHead(out)
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
			if v := of(r); v != nil && v.Clients > 0 {
				return showSeconds(float64(v.P50)) + " / " + showSeconds(float64(v.P99))
			}
			return "never"
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
