package main

import (
	"strconv"
	"time"

	"github.com/arkvory/sidecar/queue/sim"
)

// options are all fields in the order in which they are explained. In a meaning the default stands in brackets.
var options = []field{
	of("a text", "mass update", func(p *plan, v string) error { p.name = v; return nil }).as("name", "", "Title of the table and the picture."),
	of("a text", "1000 clients at once", func(p *plan, v string) error { p.about = v; return nil }).as("about", "", "A sentence below the title."),

	whole("1000", func(p *plan) *int { return &p.settings.Clients }).as("clients", "clients", "Number of clients (1000)."),
	of("bytes, or low..high", "4GB..20GB", setSize).as("size", "size", "Object sizes, evenly spread (4GB..20GB; GB is decimal, GiB binary)."),
	rate("1Gbit", func(p *plan) *int64 { return &p.settings.LinkBytesPerSecond }).as("link", "link", "The link (1Gbit; Mbit, MB/s, MiB/s too)."),
	rate("100Mbit", func(p *plan) *int64 { return &p.settings.ClientBytesPerSecond }).as("clientRate", "client-rate", "What one client can take (the link)."),
	of("SHARE@RATE", "20%@1MB/s", setSlow).as("slow", "slow", "Slow readers among the clients (none)."),
	of("CLASS:SHARE[:SIZE[:CLIENTS_PER_PRINCIPAL]], comma between classes; classes are interactive, release, bulk, background",
		"release:40,bulk:60:1GB..2GB", setClasses).as("classes", "classes", "Classes with their share of the clients (all release)."),
	whole("10", func(p *plan) *int { return &p.settings.ClientsPerPrincipal }).as("clientsPerPrincipal", "", "Clients in a row that share a principal (1)."),
	of("PROFILE:SHARE, comma between profiles", "curl:10%,apt:20%", setPlain).as("plain", "plain", "Clients that know nothing of the queue, by profile (none)."),
	whole("5", func(p *plan) *int { return &p.settings.NATClients }).as("nat", "", "Plain clients behind one address that fetch one object (none)."),

	of("a duration", "10s", setOver(sim.Burst)).as("burst", "burst", "All clients come within this time (10s)."),
	of("a duration", "1h", setOver(sim.Ramp)).as("ramp", "ramp", "They come more and more densely until then."),
	of("clients an hour as N/h, or the load of the link as a share", "95%", setPoisson).as("poisson", "poisson", "They come independently: so many an hour, or for this load of the link."),
	of("SHARE@DURATION", "40%@1h", setWaves).as("waves", "waves", "With poisson: this share comes at the next full hour, or other period, instead (none)."),
	share("10%", func(p *plan) *float64 { return &p.settings.LeaveWaiting }).as("leaveWaiting", "", "Clients that vanish at some moment if they still wait then (none)."),
	share("5%", func(p *plan) *float64 { return &p.settings.LeaveMidway }).as("leaveMidway", "", "Clients that vanish in mid-download (none)."),
	of("a number", "0.1", func(p *plan, v string) (err error) {
		p.settings.BreaksPerGiB, err = strconv.ParseFloat(v, 64)
		return err
	}).as("breaksPerGiB", "", "Broken connections a GiB transferred (0)."),
	bytesOf("8MiB", func(p *plan) *int64 { return &p.settings.RangeBytes }).as("rangeSize", "", "Ranges of protocol clients (8MiB)."),
	whole("4", func(p *plan) *int { return &p.settings.RangesAtOnce }).as("rangesAtOnce", "", "Ranges of one of them at once (4)."),
	share("10%", func(p *plan) *float64 { return &p.settings.Jitter }).as("jitter", "", "How much later than told they come back at most (10%)."),

	of("names from ordered, smallest-first, fair-sojourn, shared, comma between", "ordered,shared", setStrategies).as("strategies", "strategy", "Strategies to compare (all four)."),
	of("a whole number", "16", setSlots).as("slots", "slots", "Slots (16)."),
	whole("64", func(p *plan) *int { return &p.settings.Policy.SessionsElastic }).as("elastic", "elastic", "Slots that may open while the link is not full (none beyond slots)."),
	whole("1", func(p *plan) *int { return &p.settings.Policy.Reserve }).as("reserve", "", "Slots that only interactive sessions take (1 from 4 slots on)."),
	whole("4", func(p *plan) *int { return &p.settings.Policy.PerPrincipal }).as("perPrincipal", "", "Slots of one principal while others wait (4)."),
	of("four whole numbers, comma between", "8,4,2,1", setWeights).as("weights", "", "Shares of freed slots by class (8,4,2,1)."),
	duration("15m", func(p *plan) *time.Duration { return &p.settings.Policy.AgingEvery }).as("aging", "aging", "Waiting that lifts a session one class (15m; 0 = never)."),
	of("true or false", "true", func(p *plan, v string) (err error) {
		p.settings.Policy.Preempt, err = strconv.ParseBool(v)
		return err
	}).as("preempt", "", "Long downloads of protocol clients make way (true)."),
	bytesOf("16MiB", func(p *plan) *int64 { return &p.settings.Policy.SessionMinBytes }).as("minBytes", "", "Objects up to this size are admitted per request (16MiB)."),
	duration("30s", func(p *plan) *time.Duration { return &p.settings.Policy.IdleFor }).as("idle", "", "Pause after which a session loses its slot (30s)."),
	whole("4", func(p *plan) *int { return &p.settings.Policy.RangesPerSession }).as("rangesPerSession", "", "Responses of one session at once (4)."),
	rate("1Gbit", func(p *plan) *int64 { return &p.settings.Policy.BandBytesPerSecond }).as("band", "", "The configured rate of the link that estimates begin with (none)."),

	of("windows by class, in JSON or as a tree of the scenario file", `{"bulk":{"zone":"Europe/Berlin","open":[{"from":"22:00","to":"06:00"}]}}`, setWindows).
		as("windows", "windows", "Hours in which classes may start, with zone, days and the share outside (always)."),
	of("a time as RFC 3339", "2027-03-27T18:00:00+01:00", func(p *plan, v string) (err error) {
		p.settings.Begin, err = time.Parse(time.RFC3339, v)
		return err
	}).as("begin", "begin", "What the clock on the wall shows when the run begins; windows need it."),

	whole("16", func(p *plan) *int { return &p.settings.Gate.Capacity }).as("gate.capacity", "", "Places for single requests (as many as slots)."),
	whole("4", func(p *plan) *int { return &p.settings.Gate.PerPrincipal }).as("gate.perPrincipal", "", "Places of one principal (4)."),
	whole("64", func(p *plan) *int { return &p.settings.Gate.WaitLimit }).as("gate.waitLimit", "", "Single requests that wait (64)."),
	whole("8", func(p *plan) *int { return &p.settings.Gate.WaitPerPrincipal }).as("gate.waitPerPrincipal", "", "Those of one principal (8)."),
	duration("20s", func(p *plan) *time.Duration { return &p.settings.Gate.Timeout }).as("gate.timeout", "", "Longest wait for a place (20s)."),
	duration("20s", func(p *plan) *time.Duration { return &p.settings.Hold }).as("hold.time", "", "How long requests of plain clients are held (20s)."),
	whole("64", func(p *plan) *int { return &p.settings.HoldLimit }).as("hold.limit", "", "Requests held at once (64)."),
	whole("32", func(p *plan) *int { return &p.settings.HoldPerPrincipal }).as("hold.perPrincipal", "", "Those of one principal (32; 0 = no limit)."),

	of("a whole number from 0", "1", func(p *plan, v string) (err error) {
		p.settings.Seed, err = strconv.ParseUint(v, 10, 64)
		return err
	}).as("seed", "seed", "Seed of everything random (1)."),
	of("a whole number 1..1000", "10", setSeeds).as("seeds", "seeds", "Runs with as many seeds in a row; prints least, median and most of each figure (1)."),
	duration("720h", func(p *plan) *time.Duration { return &p.settings.Limit }).as("limit", "limit", "Longest virtual time (1440h)."),
	duration("10m", func(p *plan) *time.Duration { return &p.settings.InvariantsEvery }).as("invariants", "invariants", "Virtual time between proofs of the scheduler's invariants (never)."),
}

// fields are the options by the name that scenario files use.
var fields = func() map[string]field {
	all := make(map[string]field, len(options))
	for _, f := range options {
		all[f.name] = f
	}
	return all
}()
