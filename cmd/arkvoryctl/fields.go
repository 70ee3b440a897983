package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/sim"
)

// field is one thing that a scenario file, and perhaps a flag, may set.
type field struct {
	rule, example string
	set           func(p *plan, value string) error
	name          string // in scenario files; "." stands between a group and its member
	flag          string // without its dashes; "" = scenario files only
	meaning       string
}

// as gives a field its names and meaning.
func (f field) as(name, flag, meaning string) field {
	f.name, f.flag, f.meaning = name, flag, meaning
	return f
}

// of makes a field of a function that sets it.
func of(rule, example string, set func(*plan, string) error) field {
	return field{rule: rule, example: example, set: set}
}

// whole makes a field of a number.
func whole(example string, to func(*plan) *int) field {
	return of("a whole number", example, func(p *plan, v string) error {
		n, err := strconv.Atoi(strings.ReplaceAll(v, "_", ""))
		*to(p) = n
		return err
	})
}

func duration(example string, to func(*plan) *time.Duration) field {
	return of("a duration", example, func(p *plan, v string) (err error) {
		*to(p), err = parseDuration(v)
		return err
	})
}

func rate(example string, to func(*plan) *int64) field {
	return of("a rate in bit/s (Mbit, Gbit) or bytes/s (MB/s, MiB/s)", example, func(p *plan, v string) (err error) {
		*to(p), err = parseRate(v)
		return err
	})
}

func bytesOf(example string, to func(*plan) *int64) field {
	return of("bytes (GB decimal, GiB binary)", example, func(p *plan, v string) (err error) {
		*to(p), err = parseBytes(v)
		return err
	})
}

func share(example string, to func(*plan) *float64) field {
	return of("a share as 20% or 0.2", example, func(p *plan, v string) (err error) {
		*to(p), err = parseShare(v)
		return err
	})
}

// set gives a field a value; shown is what the caller calls it.
func (p *plan) set(shown, name, value string) error {
	f := fields[name]
	if err := f.set(p, strings.TrimSpace(value)); err != nil {
		return faulty(shown, value, f.rule, f.example)
	}
	return nil
}

// faulty is the complaint about a value: what it was given for, the rule and an example.
func faulty(shown, value, rule, example string) error {
	return fmt.Errorf("cannot use %s %q: must be %s, for example %s", shown, clip(value), rule, example)
}

func clip(text string) string {
	if len(text) > 80 {
		return text[:80] + "..."
	}
	return text
}

func setSize(p *plan, v string) error {
	low, high, err := parseSizes(v)
	p.settings.Size = sim.Sizes{Low: low, High: high}
	return err
}

// setSlots keeps what depends on the number of slots within it, as a change of the setting alone does.
func setSlots(p *plan, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return err
	}
	policy := &p.settings.Policy
	if policy.SessionsElastic == policy.Sessions || policy.SessionsElastic < n {
		policy.SessionsElastic = n
	}
	policy.Sessions = n
	policy.Reserve = max(0, min(policy.Reserve, n-1))
	policy.PerPrincipal = max(1, min(policy.PerPrincipal, n))
	policy.QueueLimit = max(policy.QueueLimit, min(n, queue.MaxQueueLimit))
	p.settings.Gate.Capacity = n
	p.settings.Gate.PerPrincipal = max(1, min(p.settings.Gate.PerPrincipal, n))
	return nil
}

// setWindows reads windows by class; what they say is judged with all other settings.
func setWindows(p *plan, v string) error {
	d := json.NewDecoder(strings.NewReader(v))
	d.DisallowUnknownFields()
	p.settings.Windows = nil
	if err := d.Decode(&p.settings.Windows); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the windows")
	}
	return nil
}

func setSlow(p *plan, v string) error {
	part, speed, ok := strings.Cut(v, "@")
	if !ok {
		return errNumber
	}
	var err error
	if p.settings.Slow.Part, err = parseShare(part); err != nil {
		return err
	}
	p.settings.Slow.BytesPerSecond, err = parseRate(speed)
	return err
}

func setClasses(p *plan, v string) error {
	var all []sim.Mix
	for one := range strings.SplitSeq(v, ",") {
		parts := strings.Split(strings.TrimSpace(one), ":")
		if len(parts) < 2 || len(parts) > 4 {
			return errNumber
		}
		class, err := queue.ParseClass(parts[0])
		if err != nil {
			return err
		}
		m := sim.Mix{Class: class}
		if m.Part, err = parseShare(parts[1]); err != nil {
			return err
		}
		if len(parts) > 2 {
			if m.Size.Low, m.Size.High, err = parseSizes(parts[2]); err != nil {
				return err
			}
		}
		if len(parts) > 3 {
			if m.ClientsPerPrincipal, err = strconv.Atoi(parts[3]); err != nil {
				return err
			}
		}
		all = append(all, m)
	}
	p.settings.Classes = all
	return nil
}

func setPlain(p *plan, v string) error {
	var all []sim.PlainMix
	for one := range strings.SplitSeq(v, ",") {
		name, part, _ := strings.Cut(strings.TrimSpace(one), ":")
		value, err := parseShare(part)
		if err != nil {
			return err
		}
		all = append(all, sim.PlainMix{Profile: name, Part: value})
	}
	p.settings.Plain = all
	return nil
}

func setPoisson(p *plan, v string) (err error) {
	a := sim.Arrivals{Kind: sim.Poisson, Waves: p.settings.Arrivals.Waves}
	if count, hourly := strings.CutSuffix(v, "/h"); hourly {
		a.PerHour, err = strconv.ParseFloat(count, 64)
	} else {
		a.Load, err = parseShare(v)
	}
	p.settings.Arrivals = a
	return err
}

// setWaves reads SHARE@DURATION; it belongs to poisson arrivals and is read after them.
func setWaves(p *plan, v string) error {
	part, every, ok := strings.Cut(v, "@")
	if !ok {
		return errNumber
	}
	w := &p.settings.Arrivals.Waves
	var err error
	if w.Part, err = parseShare(part); err != nil {
		return err
	}
	w.Every, err = parseDuration(every)
	return err
}

// setOver makes an arrival kind with its duration.
func setOver(kind sim.ArrivalKind) func(*plan, string) error {
	return func(p *plan, v string) (err error) {
		a := &p.settings.Arrivals
		*a = sim.Arrivals{Kind: kind} // waves of a scenario file are not those of another way to come
		a.Over, err = parseDuration(v)
		return err
	}
}

func setStrategies(p *plan, v string) error {
	var all []queue.Strategy
	for name := range strings.SplitSeq(v, ",") {
		strategy, err := queue.ParseStrategy(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		if !slices.Contains(all, strategy) {
			all = append(all, strategy)
		}
	}
	p.strategies = all
	return nil
}

func setWeights(p *plan, v string) error {
	parts := strings.Split(v, ",")
	if len(parts) != queue.Classes {
		return errNumber
	}
	for i, part := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		p.settings.Policy.Weights[i] = n
	}
	return nil
}
