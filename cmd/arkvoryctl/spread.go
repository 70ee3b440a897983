package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/sim"
)

// maxSeeds bounds the runs of one command.
const maxSeeds = 1000

var errSeeds = errors.New("not a number of runs")

func setSeeds(p *plan, v string) error {
	n, err := strconv.Atoi(v)
	if err == nil && (n < 1 || n > maxSeeds) {
		err = errSeeds
	}
	p.seeds = n
	return err
}

// compare runs all strategies for each seed, one seed after another: the results by seed, then by strategy. Only those of the first
// keep what pictures need.
func (p *plan) compare(trace func(queue.Strategy) io.Writer) ([][]sim.Result, error) {
	runs := make([][]sim.Result, 0, p.seeds)
	for i := range p.seeds {
		settings := p.settings
		settings.Seed += uint64(i)
		results, err := sim.Compare(settings, p.strategies, trace)
		if err != nil {
			if p.seeds > 1 {
				err = fmt.Errorf("seed %d: %w", settings.Seed, err)
			}
			return nil, err
		}
		if i > 0 {
			for j := range results {
				results[j].DoneAt, results[j].FirstBytes, results[j].SharingDoneAt = nil, nil, nil
			}
		}
		runs = append(runs, results)
	}
	return runs, nil
}

// spread is one figure over all seeds. A figure that some seed does not have is left out of the three, and null in Values.
type spread struct {
	Least  sim.Measure   `json:"min"`
	Median sim.Measure   `json:"median"`
	Most   sim.Measure   `json:"max"`
	Values []sim.Measure `json:"values"` // by seed
}

// spreadReport is the figures of one strategy over all seeds.
type spreadReport struct {
	Name    string            `json:"name"`
	Figures map[string]spread `json:"figures"`
}

// figure is a main figure: its name in JSON, that of its row, and how it is written.
type figure struct {
	json, row string
	of        func(*sim.Result) sim.Measure
	show      func(float64) string
}

func whole64(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

var figures = []figure{
	{"meanVsSharing", "mean against equal sharing", func(r *sim.Result) sim.Measure { return r.MeanVsSharing }, decimals(3)},
	{"firstDoneSeconds", "first client done", func(r *sim.Result) sim.Measure { return r.FirstDoneSeconds }, showSeconds},
	{"drainRatio", "against the ideal drain", func(r *sim.Result) sim.Measure { return r.DrainRatio }, decimals(4)},
	{"laterThanSharing", "later than equal sharing", func(r *sim.Result) sim.Measure { return sim.Measure(r.LaterThanSharing) }, whole64},
	{"maxLaterRatio", "  at most by", func(r *sim.Result) sim.Measure { return r.MaxLaterRatio }, decimals(3)},
	{"linkBusy", "link busy while any wait", func(r *sim.Result) sim.Measure { return r.LinkBusy }, showShare},
	{"idleSlots", "idle slots while any wait", func(r *sim.Result) sim.Measure { return r.IdleSlots }, showShare},
	{"startsWithinTolerance", "starts as promised", func(r *sim.Result) sim.Measure { return r.StartsWithinTolerance }, showPerCent},
	{"p90Holds", "starts within the p90", func(r *sim.Result) sim.Measure { return r.P90Holds }, showPerCent},
	{"failedClients", "clients that gave up", func(r *sim.Result) sim.Measure { return sim.Measure(r.FailedClients) }, whole64},
	{"unexplainedRises", "positions risen unexplained", func(r *sim.Result) sim.Measure { return sim.Measure(r.Rises.Unexplained) }, whole64},
}

// over collects a figure of one strategy over all seeds.
func (f *figure) over(runs [][]sim.Result, strategy int) spread {
	s := spread{Least: sim.Measure(math.NaN()), Median: sim.Measure(math.NaN()), Most: sim.Measure(math.NaN())}
	var known []sim.Measure
	for _, results := range runs {
		v := f.of(&results[strategy])
		s.Values = append(s.Values, v)
		if v.Known() {
			known = append(known, v)
		}
	}
	if n := len(known); n > 0 {
		slices.Sort(known)
		s.Least, s.Median, s.Most = known[0], (known[(n-1)/2]+known[n/2])/2, known[n-1]
	}
	return s
}

func spreads(runs [][]sim.Result) []spreadReport {
	var all []spreadReport
	for i := range runs[0] {
		one := spreadReport{runs[0][i].Name, map[string]spread{}}
		for _, f := range figures {
			one.Figures[f.json] = f.over(runs, i)
		}
		all = append(all, one)
	}
	return all
}

// printSpreads prints least, median and most of the main figures, the strategies side by side.
func printSpreads(out io.Writer, p *plan, runs [][]sim.Result) error {
	p.printHead(out)
	fmt.Fprintf(out, "least / median / most of %d runs\n\n", len(runs))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	cells := []string{""}
	for i := range runs[0] {
		cells = append(cells, runs[0][i].Name)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	for _, f := range figures {
		cells = []string{f.row}
		for i := range runs[0] {
			s := f.over(runs, i)
			cells = append(cells, shown(s.Least, "-", func(least float64) string {
				return f.show(least) + " / " + f.show(float64(s.Median)) + " / " + f.show(float64(s.Most))
			}))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	return nil
}
