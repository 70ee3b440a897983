package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/sim"
)

// simulate is the command of that name. Flags are texts: they and the fields of a scenario file are read by the same table, so
// that both have the same units and complaints. A flag wins over the file.
type simulate struct {
	Scenario   string `placeholder:"FILE" help:"Scenario file (YAML); flags win over it."`
	Clients    string `placeholder:"N" help:"${clients}"`
	Size       string `placeholder:"LOW..HIGH" help:"${size}"`
	Link       string `placeholder:"RATE" help:"${link}"`
	ClientRate string `placeholder:"RATE" help:"${client_rate}"`
	Slots      string `placeholder:"N" help:"${slots}"`
	Elastic    string `placeholder:"N" help:"${elastic}"`
	Strategy   string `placeholder:"NAMES" predictor:"strategies" help:"${strategy}"`
	Burst      string `placeholder:"DURATION" help:"${burst}"`
	Ramp       string `placeholder:"DURATION" help:"${ramp}"`
	Poisson    string `placeholder:"N/h|LOAD" help:"${poisson}"`
	Waves      string `placeholder:"SHARE@DURATION" help:"${waves}"`
	Slow       string `placeholder:"SHARE@RATE" help:"${slow}"`
	Classes    string `placeholder:"LIST" help:"${classes}"`
	Plain      string `placeholder:"LIST" help:"${plain}"`
	Windows    string `placeholder:"JSON" help:"${windows}"`
	Begin      string `placeholder:"TIME" help:"${begin}"`
	Aging      string `placeholder:"DURATION" help:"${aging}"`
	Seed       string `placeholder:"N" help:"${seed}"`
	Seeds      string `placeholder:"N" help:"${seeds}"`
	Limit      string `placeholder:"DURATION" help:"${limit}"`
	Invariants string `placeholder:"DURATION" help:"${invariants}"`

	JSON  bool   `name:"json" help:"Print JSON instead of a table."`
	SVG   string `name:"svg" placeholder:"FILE" help:"Write a picture of completions and waits as SVG; with several seeds of the first."`
	PNG   string `name:"png" placeholder:"FILE" help:"The same as PNG."`
	Trace string `placeholder:"FILE" help:"Write every decision and event; with several strategies FILE.STRATEGY each. Not with several seeds."`
}

// meanings are the helps of the flags by variable: the meaning of the option, its form and an example.
func meanings() kong.Vars {
	vars := kong.Vars{}
	for _, f := range options {
		if f.flag != "" {
			vars[strings.ReplaceAll(f.flag, "-", "_")] = fmt.Sprintf("%s E.g. %s", f.meaning, f.example)
		}
	}
	return vars
}

// given returns what the flag of that name was set to, "" = not at all.
func (s *simulate) given(flag string) string {
	return map[string]string{
		"clients": s.Clients, "size": s.Size, "link": s.Link, "client-rate": s.ClientRate, "slots": s.Slots, "elastic": s.Elastic,
		"strategy": s.Strategy, "burst": s.Burst, "ramp": s.Ramp, "poisson": s.Poisson, "waves": s.Waves, "slow": s.Slow,
		"classes": s.Classes, "plain": s.Plain, "windows": s.Windows, "begin": s.Begin, "aging": s.Aging, "seed": s.Seed, "seeds": s.Seeds, "limit": s.Limit, "invariants": s.Invariants,
	}[flag]
}

// plan is what is simulated.
type plan struct {
	name       string
	about      string
	settings   sim.Settings
	strategies []queue.Strategy
	seeds      int // runs, with seeds in a row from that of the settings on
}

// Run simulates and prints.
func (s *simulate) Run(out io.Writer) (err error) {
	p, err := s.plan()
	if err != nil {
		return inputError{err}
	}
	if s.Trace != "" && p.seeds > 1 { // one file could not tell them apart
		return inputError{errors.New("cannot use --trace with several seeds: must be of one run, for example --seeds 1")}
	}
	var files traces
	defer func() { err = errors.Join(err, files.close()) }()
	if err := files.open(s.Trace, p.strategies); err != nil {
		return err
	}
	runs, err := p.compare(files.of)
	if err != nil {
		return err
	}
	results := runs[0]
	if s.SVG != "" {
		if err := write(s.SVG, func(w io.Writer) error { return newChart(p, results).svg(w) }); err != nil {
			return err
		}
	}
	if s.PNG != "" {
		if err := write(s.PNG, func(w io.Writer) error { return newChart(p, results).png(w) }); err != nil {
			return err
		}
	}
	switch {
	case s.JSON:
		return printJSON(out, p, runs)
	case p.seeds > 1:
		return printSpreads(out, p, runs)
	}
	return printTable(out, p, results)
}

// plan reads the scenario and the flags over it.
func (s *simulate) plan() (*plan, error) {
	p := &plan{settings: sim.NewSettings(), strategies: []queue.Strategy{queue.Ordered, queue.SmallestFirst, queue.FairSojourn, queue.Shared}, seeds: 1}
	if s.Scenario != "" {
		if err := p.load(s.Scenario); err != nil {
			return nil, err
		}
	}
	var faults []error
	if n := len(s.Burst) + len(s.Ramp) + len(s.Poisson); n > max(len(s.Burst), len(s.Ramp), len(s.Poisson)) {
		faults = append(faults, errors.New("cannot use more than one of --burst, --ramp, --poisson: must be one way to come, for example --burst 10s"))
	}
	for _, f := range options { // slots come before what depends on them
		if value := s.given(f.flag); f.flag != "" && value != "" {
			faults = append(faults, p.set("--"+f.flag, f.name, value))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return p, explain(p.settings.Validate())
}

// write makes a file whole: what was there stays until the new one is complete.
func write(path string, content func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".arkvoryctl-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	if err := errors.Join(content(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// traces are the open trace files by strategy.
type traces map[queue.Strategy]*os.File

func (t *traces) open(path string, strategies []queue.Strategy) error {
	*t = traces{}
	if path == "" {
		return nil
	}
	for _, strategy := range strategies {
		name := path
		if len(strategies) > 1 {
			name += "." + strategy.String()
		}
		f, err := os.Create(name)
		if err != nil {
			return fmt.Errorf("cannot write --trace: %w", err)
		}
		(*t)[strategy] = f
	}
	return nil
}

func (t *traces) of(strategy queue.Strategy) io.Writer {
	if f := (*t)[strategy]; f != nil {
		return f
	}
	return nil
}

func (t *traces) close() error {
	var all []error
	for _, f := range *t {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}
