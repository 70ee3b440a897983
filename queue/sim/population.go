package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/arkvory/sidecar/queue"
)

// never is the time of what does not happen.
const never = time.Duration(math.MaxInt64)

// person is one client as the scenario makes it, before any strategy: the same for all of them.
type person struct {
	class      queue.Class
	principal  int32
	protocol   bool
	profile    Profile // of a plain client
	key        queue.Key
	size       int64
	rate       float64 // bytes/s it can take
	arrival    time.Duration
	leaveAt    time.Duration // vanishes then if it waits
	leaveAfter int64         // bytes after which it vanishes, 0 = stays
}

// stays reports whether the scenario lets it finish.
func (p *person) stays() bool { return p.leaveAt == never && p.leaveAfter == 0 }

// population is everybody who comes, by arrival, and the names of their principals.
type population struct {
	persons    []person
	principals []string
}

// Streams of the seed: what one draws does not move the others.
const (
	streamPeople = iota + 1
	streamRun
	streamGate
)

func source(seed uint64, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// populate draws the fleet from the seed. The settings must be valid.
func populate(set *Settings) *population {
	random := source(set.Seed, streamPeople)
	n := set.Clients
	pop := &population{persons: make([]person, n)}
	drawClasses(set, random, pop.persons)
	for i := range pop.persons {
		p := &pop.persons[i]
		sizes := set.Size
		if m := mixOf(set, p.class); m.Size != (Sizes{}) {
			sizes = m.Size
		}
		p.size = sizes.Low + random.Int64N(sizes.High-sizes.Low+1)
		p.protocol, p.leaveAt = true, never
		p.rate = float64(set.LinkBytesPerSecond)
		if set.ClientBytesPerSecond > 0 {
			p.rate = float64(set.ClientBytesPerSecond)
		}
	}
	for _, i := range choose(random, n, set.Slow.Part) {
		pop.persons[i].rate = float64(set.Slow.BytesPerSecond)
	}
	drawArrivals(set, random, pop.persons)
	drawPlain(set, random, pop.persons)
	drawLeavers(set, random, pop.persons)
	name(set, pop)
	return pop
}

// choose draws a share of 0..n-1 without repetition, rounded to whole ones.
func choose(random *rand.Rand, n int, share float64) []int {
	return random.Perm(n)[:min(n, int(math.Round(share*float64(n))))]
}

func mixOf(set *Settings, class queue.Class) Mix {
	for _, m := range set.Classes {
		if m.Class == class {
			return m
		}
	}
	return Mix{}
}

func drawClasses(set *Settings, random *rand.Rand, all []person) {
	if len(set.Classes) == 0 {
		for i := range all {
			all[i].class = queue.Release
		}
		return
	}
	var sum, upTo float64
	for _, m := range set.Classes {
		sum += m.Part
	}
	order := random.Perm(len(all))
	for _, m := range set.Classes {
		from := int(math.Round(upTo / sum * float64(len(all))))
		upTo += m.Part
		for _, i := range order[from:int(math.Round(upTo/sum*float64(len(all))))] {
			all[i].class = m.Class
		}
	}
}

// drawArrivals sets the times; the first person is the first to come.
func drawArrivals(set *Settings, random *rand.Rand, all []person) {
	a, n := set.Arrivals, float64(len(all))
	var bytes float64
	for i := range all {
		bytes += float64(all[i].size)
	}
	perSecond := a.PerHour / 3600
	if a.PerHour == 0 {
		perSecond = a.Load * float64(set.LinkBytesPerSecond) * n / bytes
	}
	at := 0.0
	for i := range all {
		switch a.Kind {
		case Burst: // ordered uniform times would differ little; even spacing with a random part keeps them sorted
			at = (float64(i) + random.Float64()) / n * a.Over.Seconds()
		case Ramp: // the rate grows linearly, so the count grows with the square of time
			at = math.Sqrt((float64(i)+random.Float64())/n) * a.Over.Seconds()
		default:
			at += random.ExpFloat64() / perSecond
		}
		all[i].arrival = time.Duration(min(at, MaxDuration.Seconds()) * float64(time.Second))
	}
	drawWaves(a.Waves, random, all)
}

// drawWaves lets a share of those who come independently wait for the next full period, as jobs of a timetable do, within the jitter of
// their clocks. The load stays what it was.
func drawWaves(w Waves, random *rand.Rand, all []person) {
	if w.Part == 0 {
		return
	}
	at := make([]time.Duration, len(all))
	for i := range all {
		at[i] = all[i].arrival
	}
	for _, i := range choose(random, len(all), w.Part) {
		at[i] = (at[i]/w.Every+1)*w.Every + time.Duration(random.Float64()*float64(min(waveJitter, w.Every)))
	}
	slices.Sort(at)
	for i := range all {
		all[i].arrival = at[i]
	}
}

// waveJitter is how far the clients of one wave are spread.
const waveJitter = 10 * time.Second

func drawPlain(set *Settings, random *rand.Rand, all []person) {
	order, from := random.Perm(len(all)), 0
	for _, m := range set.Plain {
		profile, _ := FindProfile(m.Profile)
		to := min(len(all), from+int(math.Round(m.Part*float64(len(all)))))
		for _, i := range order[from:to] {
			all[i].protocol, all[i].profile = false, profile
		}
		from = to
	}
}

// drawLeavers lets some vanish: those who tire of waiting at a moment drawn evenly from the time in which the link carries all
// bytes, others after a part of their bytes.
func drawLeavers(set *Settings, random *rand.Rand, all []person) {
	var bytes float64
	for i := range all {
		bytes += float64(all[i].size)
	}
	drain := bytes / float64(set.LinkBytesPerSecond)
	for _, i := range choose(random, len(all), set.LeaveWaiting) {
		all[i].leaveAt = all[i].arrival + time.Duration(random.Float64()*min(drain, MaxDuration.Seconds())*float64(time.Second))
	}
	for _, i := range choose(random, len(all), set.LeaveMidway) {
		if all[i].leaveAt == never {
			all[i].leaveAfter = max(1, int64(random.Float64()*float64(all[i].size)))
		}
	}
}

// name gives principals and keys. Successive clients of a class share a principal; successive plain clients of a NAT group share its
// address, key and object.
func name(set *Settings, pop *population) {
	type crowd struct{ count, principal int32 }
	var crowds [queue.Classes]crowd
	nat, first := 0, -1
	for i := range pop.persons {
		p := &pop.persons[i]
		each := int32(set.ClientsPerPrincipal)
		if m := mixOf(set, p.class); m.ClientsPerPrincipal > 0 {
			each = int32(m.ClientsPerPrincipal)
		}
		c := &crowds[p.class]
		if c.count%each == 0 {
			c.principal = int32(len(pop.principals))
			pop.principals = append(pop.principals, "p"+strconv.Itoa(len(pop.principals)))
		}
		c.count++
		p.principal = c.principal
		p.key = queue.Key{Principal: pop.principals[p.principal], Object: "o" + strconv.Itoa(i), Client: "id:" + strconv.Itoa(i)}
		if p.protocol {
			continue
		}
		p.key.Client = "addr:" + strconv.Itoa(i)
		if set.NATClients < 2 {
			continue
		}
		if nat%set.NATClients == 0 {
			first = i
		} else {
			lead := &pop.persons[first]
			p.principal, p.class, p.size, p.key = lead.principal, lead.class, lead.size, lead.key
			p.leaveAfter = min(p.leaveAfter, p.size)
		}
		nat++
	}
}
