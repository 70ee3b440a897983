package main

import (
	"fmt"
	"math"

	"github.com/arkvory/sidecar/queue/sim"
)

// chart is the picture of a comparison, before it is drawn as SVG or PNG: two panels, one above the other, with one curve a
// strategy. Coordinates are pixels from the upper left corner.
type chart struct {
	title, about  string
	width, height float64
	panels        []panel
}

// panel is one system of axes: x is time, y the share of clients 0..1.
type panel struct {
	title, xTitle, yTitle    string
	left, top, right, bottom float64 // of the plotting area
	xTicks                   []tick
	yTicks                   []tick
	curves                   []curve
}

type tick struct {
	at    float64
	label string
}

// curve is one strategy: told apart by colour and, without colours, by its dashes.
type curve struct {
	name   string
	colour [3]uint8
	dashes []float64 // lengths drawn and left out, in turn; none = solid
	width  float64   // the first is the widest, so that curves which coincide are all seen
	points [][2]float64
}

// styles are colours that people with any kind of colour sight tell apart (the palette of Okabe and Ito), each with own dashes.
var styles = []struct {
	colour [3]uint8
	dashes []float64
}{
	{[3]uint8{0, 114, 178}, nil}, {[3]uint8{213, 94, 0}, []float64{10, 4}}, {[3]uint8{0, 158, 115}, []float64{3, 3}},
	{[3]uint8{204, 121, 167}, []float64{10, 3, 3, 3}}, {[3]uint8{90, 90, 90}, []float64{2, 6}},
}

// mostPoints bounds the points of a curve: more than pixels are not seen.
const mostPoints = 400

// newChart lays the picture out.
func newChart(p *plan, results []sim.Result) *chart {
	s := p.settings
	c := &chart{
		title: p.title(), width: 960, height: 860,
		about: fmt.Sprintf("%d clients, %s, link %s/s, %d slots, seed %d", s.Clients, p.sizes(), showBytes(s.LinkBytesPerSecond),
			s.Policy.Sessions, s.Seed),
	}
	done := panel{title: "Clients done", yTitle: "share of clients done", left: 80, top: 100, right: 740, bottom: 420}
	waits := panel{title: "Waits for the first byte", yTitle: "share of clients started", left: 80, top: 500, right: 740, bottom: 800}
	ended, started := map[string][]float64{}, map[string][]float64{}
	var names []string
	for i := range results {
		r := &results[i]
		names = append(names, r.Name)
		ended[r.Name], started[r.Name] = r.DoneAt, r.FirstBytes
	}
	const ideal = "equal sharing"
	if len(results) > 0 {
		ended[ideal] = results[0].SharingDoneAt
	}
	done.fill(append(names[:len(names):len(names)], ideal), ended, s.Clients, "time since the first arrival")
	waits.fill(names, started, s.Clients, "wait from arrival to the first byte")
	c.panels = []panel{done, waits}
	return c
}

// fill scales the panel to the data and draws each as its cumulative share.
func (p *panel) fill(names []string, times map[string][]float64, clients int, xTitle string) {
	longest := 1.0
	for _, all := range times {
		if len(all) > 0 {
			longest = max(longest, all[len(all)-1])
		}
	}
	unit, unitName := 1.0, "s"
	switch {
	case longest > 4*86400:
		unit, unitName = 86400, "days"
	case longest > 2*3600:
		unit, unitName = 3600, "h"
	case longest > 300:
		unit, unitName = 60, "min"
	}
	p.xTitle = xTitle + " (" + unitName + ")"
	step := niceStep(longest / unit / 6)
	end := math.Ceil(longest/unit/step) * step
	x := func(seconds float64) float64 { return p.left + (p.right-p.left)*seconds/unit/end }
	y := func(share float64) float64 { return p.bottom - (p.bottom-p.top)*share }
	for v := 0.0; v <= end+step/2; v += step {
		p.xTicks = append(p.xTicks, tick{x(v * unit), fmt.Sprintf("%g", math.Round(v*1000)/1000)})
	}
	for i := 0; i <= 5; i++ {
		p.yTicks = append(p.yTicks, tick{y(float64(i) / 5), fmt.Sprintf("%d%%", i*20)})
	}
	for i, name := range names {
		style := styles[i%len(styles)]
		if name == "equal sharing" {
			style = styles[len(styles)-1]
		}
		c := curve{name: name, colour: style.colour, dashes: style.dashes, width: 2 + 1.2*float64(len(names)-1-i), points: [][2]float64{{x(0), y(0)}}}
		all := times[name]
		stride := max(1, len(all)/mostPoints)
		for n := 0; n < len(all); n += stride {
			c.points = append(c.points, [2]float64{x(all[n]), y(float64(n+1) / float64(clients))})
		}
		if n := len(all); n > 0 {
			c.points = append(c.points, [2]float64{x(all[n-1]), y(float64(n) / float64(clients))})
		}
		p.curves = append(p.curves, c)
	}
}

// niceStep returns the least of 1, 2, 5 times a power of ten that is not below.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= least {
			return f * power
		}
	}
	return 10 * power
}
