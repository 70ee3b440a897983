package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/sim"
)

// simulate is the command of that name. Flags are texts: they and the fields of a scenario file are read by the same table, so
// that both have the same units and complaints. A flag wins over the file.
type simulate struct {
	Scenario   string `placeholder:"FILE" help:"Scenario file (YAML); flags win over it."`
	Clients    string `placeholder:"N" help:"Number of clients (1000)."`
	Size       string `placeholder:"LOW..HIGH" help:"Object sizes, evenly spread (4GB..20GB; GB is decimal, GiB binary)."`
	Link       string `placeholder:"RATE" help:"The link (1Gbit; Mbit, MB/s, MiB/s too)."`
	ClientRate string `placeholder:"RATE" help:"What one client can take (the link)."`
	Slots      string `placeholder:"N" help:"Slots (16)."`
	Elastic    string `placeholder:"N" help:"Slots that may open while the link is not full (none beyond --slots)."`
	Strategy   string `placeholder:"NAMES" help:"Strategies to compare (ordered,smallest-first,fair-sojourn,shared)."`
	Burst      string `placeholder:"DURATION" help:"All clients come within this time (10s)."`
	Poisson    string `placeholder:"N/h or LOAD" help:"Clients come independently: so many an hour (120/h), or for this load of the link (95%)."`
	Slow       string `placeholder:"SHARE@RATE" help:"Slow readers, for example 20%@1MB/s."`
	Classes    string `placeholder:"LIST" help:"CLASS:SHARE[:SIZE[:CLIENTS_PER_PRINCIPAL]], for example release:40,bulk:60:1GB..2GB."`
	Plain      string `placeholder:"LIST" help:"Clients that know nothing of the queue: PROFILE:SHARE, for example curl:10%,apt:20%."`
	Aging      string `placeholder:"DURATION" help:"Waiting that lifts a session one class (15m; 0 = never)."`
	Seed       string `placeholder:"N" help:"Seed of everything random (1)."`
	Limit      string `placeholder:"DURATION" help:"Longest virtual time (1440h)."`
	Invariants string `placeholder:"DURATION" help:"Virtual time between proofs of the scheduler's invariants (never)."`

	JSON  bool   `name:"json" help:"Print JSON instead of a table."`
	SVG   string `name:"svg" placeholder:"FILE" help:"Write a picture of completions and waits as SVG."`
	PNG   string `name:"png" placeholder:"FILE" help:"The same as PNG."`
	Trace string `placeholder:"FILE" help:"Write every decision and event; with several strategies FILE.STRATEGY each."`
}

// plan is what is simulated.
type plan struct {
	name       string
	about      string
	settings   sim.Settings
	strategies []queue.Strategy
}

// Run simulates and prints.
func (s *simulate) Run(out io.Writer) (err error) {
	p, err := s.plan()
	if err != nil {
		return inputError{err}
	}
	var files traces
	defer func() { err = errors.Join(err, files.close()) }()
	if err := files.open(s.Trace, p.strategies); err != nil {
		return err
	}
	results, err := sim.Compare(p.settings, p.strategies, files.of)
	if err != nil {
		return err
	}
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
	if s.JSON {
		return printJSON(out, p, results)
	}
	return printTable(out, p, results)
}

// plan reads the scenario and the flags over it.
func (s *simulate) plan() (*plan, error) {
	p := &plan{settings: sim.NewSettings(), strategies: []queue.Strategy{queue.Ordered, queue.SmallestFirst, queue.FairSojourn, queue.Shared}}
	if s.Scenario != "" {
		if err := p.load(s.Scenario); err != nil {
			return nil, err
		}
	}
	var faults []error
	for _, f := range []struct{ flag, field, value string }{
		{"--clients", "clients", s.Clients}, {"--size", "size", s.Size}, {"--link", "link", s.Link}, {"--client-rate", "clientRate", s.ClientRate},
		{"--slots", "slots", s.Slots}, {"--elastic", "elastic", s.Elastic}, {"--strategy", "strategies", s.Strategy}, {"--burst", "burst", s.Burst},
		{"--poisson", "poisson", s.Poisson}, {"--slow", "slow", s.Slow}, {"--classes", "classes", s.Classes}, {"--plain", "plain", s.Plain},
		{"--aging", "aging", s.Aging}, {"--seed", "seed", s.Seed}, {"--limit", "limit", s.Limit}, {"--invariants", "invariants", s.Invariants},
	} {
		if f.value != "" {
			faults = append(faults, p.set(f.flag, f.field, f.value))
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
