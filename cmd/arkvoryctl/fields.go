package main

import (
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
}

// whole makes a field of a number.
func whole(example string, to func(*plan) *int) field {
	return field{"a whole number", example, func(p *plan, v string) error {
		n, err := strconv.Atoi(strings.ReplaceAll(v, "_", ""))
		*to(p) = n
		return err
	}}
}

func duration(example string, to func(*plan) *time.Duration) field {
	return field{"a duration", example, func(p *plan, v string) (err error) {
		*to(p), err = parseDuration(v)
		return err
	}}
}

func rate(example string, to func(*plan) *int64) field {
	return field{"a rate in bit/s (Mbit, Gbit) or bytes/s (MB/s, MiB/s)", example, func(p *plan, v string) (err error) {
		*to(p), err = parseRate(v)
		return err
	}}
}

func bytesOf(example string, to func(*plan) *int64) field {
	return field{"bytes (GB decimal, GiB binary)", example, func(p *plan, v string) (err error) {
		*to(p), err = parseBytes(v)
		return err
	}}
}

func share(example string, to func(*plan) *float64) field {
	return field{"a share as 20% or 0.2", example, func(p *plan, v string) (err error) {
		*to(p), err = parseShare(v)
		return err
	}}
}

// fields by the name that scenario files use; "." stands between a group and its member.
var fields = map[string]field{
	"name":  {"a text", "mass update", func(p *plan, v string) error { p.name = v; return nil }},
	"about": {"a text", "1000 clients at once", func(p *plan, v string) error { p.about = v; return nil }},

	"clients":             whole("1000", func(p *plan) *int { return &p.settings.Clients }),
	"clientsPerPrincipal": whole("10", func(p *plan) *int { return &p.settings.ClientsPerPrincipal }),
	"size":                {"bytes, or low..high", "4GB..20GB", setSize},
	"link":                rate("1Gbit", func(p *plan) *int64 { return &p.settings.LinkBytesPerSecond }),
	"clientRate":          rate("100Mbit", func(p *plan) *int64 { return &p.settings.ClientBytesPerSecond }),
	"slow":                {"SHARE@RATE", "20%@1MB/s", setSlow},
	"classes":             {"CLASS:SHARE[:SIZE[:CLIENTS_PER_PRINCIPAL]], comma between classes; classes are interactive, release, bulk, background", "release:40,bulk:60:1GB..2GB", setClasses},
	"plain":               {"PROFILE:SHARE, comma between profiles", "curl:10%,apt:20%", setPlain},
	"nat":                 whole("5", func(p *plan) *int { return &p.settings.NATClients }),
	"burst": {"a duration", "10s", func(p *plan, v string) (err error) {
		p.settings.Arrivals = sim.Arrivals{Kind: sim.Burst}
		p.settings.Arrivals.Over, err = parseDuration(v)
		return err
	}},
	"ramp": {"a duration", "1h", func(p *plan, v string) (err error) {
		p.settings.Arrivals = sim.Arrivals{Kind: sim.Ramp}
		p.settings.Arrivals.Over, err = parseDuration(v)
		return err
	}},
	"poisson": {"clients an hour as N/h, or the load of the link as a share", "95%", setPoisson},

	"strategies": {"names from ordered, smallest-first, fair-sojourn, shared, comma between", "ordered,shared", setStrategies},
	"seed": {"a whole number from 0", "1", func(p *plan, v string) (err error) {
		p.settings.Seed, err = strconv.ParseUint(v, 10, 64)
		return err
	}},
	"limit":      duration("720h", func(p *plan) *time.Duration { return &p.settings.Limit }),
	"invariants": duration("10m", func(p *plan) *time.Duration { return &p.settings.InvariantsEvery }),

	"rangeSize":    bytesOf("8MiB", func(p *plan) *int64 { return &p.settings.RangeBytes }),
	"rangesAtOnce": whole("4", func(p *plan) *int { return &p.settings.RangesAtOnce }),
	"jitter":       share("10%", func(p *plan) *float64 { return &p.settings.Jitter }),
	"leaveWaiting": share("10%", func(p *plan) *float64 { return &p.settings.LeaveWaiting }),
	"leaveMidway":  share("5%", func(p *plan) *float64 { return &p.settings.LeaveMidway }),
	"breaksPerGiB": {"a number", "0.1", func(p *plan, v string) (err error) {
		p.settings.BreaksPerGiB, err = strconv.ParseFloat(v, 64)
		return err
	}},

	"slots":            {"a whole number", "16", setSlots},
	"elastic":          whole("64", func(p *plan) *int { return &p.settings.Policy.SessionsElastic }),
	"aging":            duration("15m", func(p *plan) *time.Duration { return &p.settings.Policy.AgingEvery }),
	"reserve":          whole("1", func(p *plan) *int { return &p.settings.Policy.Reserve }),
	"perPrincipal":     whole("4", func(p *plan) *int { return &p.settings.Policy.PerPrincipal }),
	"weights":          {"four whole numbers, comma between", "8,4,2,1", setWeights},
	"minBytes":         bytesOf("16MiB", func(p *plan) *int64 { return &p.settings.Policy.SessionMinBytes }),
	"idle":             duration("30s", func(p *plan) *time.Duration { return &p.settings.Policy.IdleFor }),
	"rangesPerSession": whole("4", func(p *plan) *int { return &p.settings.Policy.RangesPerSession }),
	"band":             rate("1Gbit", func(p *plan) *int64 { return &p.settings.Policy.BandBytesPerSecond }),
	"preempt": {"true or false", "true", func(p *plan, v string) (err error) {
		p.settings.Policy.Preempt, err = strconv.ParseBool(v)
		return err
	}},

	"gate.capacity":         whole("16", func(p *plan) *int { return &p.settings.Gate.Capacity }),
	"gate.perPrincipal":     whole("4", func(p *plan) *int { return &p.settings.Gate.PerPrincipal }),
	"gate.waitLimit":        whole("64", func(p *plan) *int { return &p.settings.Gate.WaitLimit }),
	"gate.waitPerPrincipal": whole("8", func(p *plan) *int { return &p.settings.Gate.WaitPerPrincipal }),
	"gate.timeout":          duration("20s", func(p *plan) *time.Duration { return &p.settings.Gate.Timeout }),
	"hold.time":             duration("20s", func(p *plan) *time.Duration { return &p.settings.Hold }),
	"hold.limit":            whole("64", func(p *plan) *int { return &p.settings.HoldLimit }),
	"hold.perPrincipal":     whole("32", func(p *plan) *int { return &p.settings.HoldPerPrincipal }),
}

// set gives a field a value; shown is what the caller calls it.
func (p *plan) set(shown, name, value string) error {
	f := fields[name]
	if err := f.set(p, strings.TrimSpace(value)); err != nil {
		return fmt.Errorf("cannot use %s %q: must be %s, for example %s", shown, clip(value), f.rule, f.example)
	}
	return nil
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
	a := sim.Arrivals{Kind: sim.Poisson}
	if count, hourly := strings.CutSuffix(v, "/h"); hourly {
		a.PerHour, err = strconv.ParseFloat(count, 64)
	} else {
		a.Load, err = parseShare(v)
	}
	p.settings.Arrivals = a
	return err
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
