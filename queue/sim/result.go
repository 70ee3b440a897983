package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/arkvory/sidecar/queue"
)

// Result is what one strategy made of a fleet. Times are seconds of virtual time. "Mean" and "later" count all clients that the
// scenario lets stay. One that gave up is counted, too: as later, and as done when the whole run was over, or when it would have been
// under equal sharing if that is later still. A Measure is none where nothing was there to measure: the promises under shared.
type Result struct {
	Name             string  `json:"name"`
	MeanVsSharing    Measure `json:"meanVsSharing"`    // mean time from arrival to the last byte / the same under ideal equal sharing
	FirstDoneSeconds Measure `json:"firstDoneSeconds"` // when the first client was done
	LaterThanSharing int     `json:"laterThanSharing"` // clients done later than under equal sharing by more than 1 %
	MaxLaterRatio    Measure `json:"maxLaterRatio"`    // the largest of those ratios
	LinkBusy         Measure `json:"linkBusy"`         // bytes carried / bytes the link could carry, while anybody waited
	IdleSlots        Measure `json:"idleSlots"`        // slot-seconds free although somebody waited who could use them / all

	StartsWithinTolerance Measure `json:"startsWithinTolerance"` // promises whose start was within 10 % or a minute
	P90Holds              Measure `json:"p90Holds"`              // promises whose start was not later than the told p90
	FailedClients         int     `json:"failedClients"`         // clients that gave up

	DoneClients          int     `json:"doneClients"`
	LeftClients          int     `json:"leftClients"` // vanished, as the scenario says
	MeanSeconds          Measure `json:"meanSeconds"`
	MeanSharingSeconds   Measure `json:"meanSharingSeconds"`
	MakespanSeconds      Measure `json:"makespanSeconds"`      // when the last client was done
	IdealMakespanSeconds Measure `json:"idealMakespanSeconds"` // of those done: max of their bytes / link and the longest at its own rate
	DrainRatio           Measure `json:"drainRatio"`           // of the two
	DeliveredBytes       int64   `json:"deliveredBytes"`
	RepeatedBytes        int64   `json:"repeatedBytes"` // delivered, but of no use: lost in a break, or of a client that gave up

	Answers        uint64    `json:"answers"`        // waiting clients told their position
	UnknownAnswers uint64    `json:"unknownAnswers"` // of them without an estimate
	PromisesJudged uint64    `json:"promisesJudged"` // whose start came, or was due before its client gave up or left
	PromisesOpen   uint64    `json:"promisesOpen"`   // whose client gave up or left before anything was due
	StartsOutside  int       `json:"startsOutside"`  // outside the windows of their classes
	Refusals       uint64    `json:"refusals"`       // per-request refusals
	Horizons       []Horizon `json:"horizons"`       // promises by how far ahead
	Rises          Rises     `json:"rises"`          // positions that rose
	CoreJudged     uint64    `json:"coreJudged"`     // the core's own measure of one answer a session
	CoreWithin     Measure   `json:"coreWithin"`
	CoreHeld       Measure   `json:"coreHeld"`

	Preemptions        uint64  `json:"preemptions"`
	ElasticSlotSeconds float64 `json:"elasticSlotSeconds"` // beyond the policy's sessions
	MostSlots          int     `json:"mostSlots"`
	Waits              []Waits `json:"waits"` // by class

	// DoneAt are the times at which clients were done, ascending; FirstBytes the waits for the first byte, ascending. For pictures.
	// SharingDoneAt is DoneAt under ideal equal sharing.
	DoneAt        []float64 `json:"-"`
	FirstBytes    []float64 `json:"-"`
	SharingDoneAt []float64 `json:"-"`
}

// Horizon is the promises of one length.
type Horizon struct {
	Name     string  `json:"name"`
	Promises uint64  `json:"promises"`
	Within   Measure `json:"within"`
	P90Holds Measure `json:"p90Holds"`
}

// Waits are the times from arrival to the first byte of the clients of a class that got any.
type Waits struct {
	Class   string  `json:"class"`
	Clients int     `json:"clients"`
	Never   int     `json:"never"` // clients that got no byte: they are in none of the times
	Mean    Measure `json:"meanSeconds"`
	P50     Measure `json:"p50Seconds"`
	P90     Measure `json:"p90Seconds"`
	P99     Measure `json:"p99Seconds"`
	Max     Measure `json:"maxSeconds"`
}

// laterThan is what counts as later.
const laterThan = 1.01

func (r *run) result(pop *population, reference []float64) Result {
	m := &r.meter
	out := Result{
		Name: r.strategy.String(), FirstDoneSeconds: none, MakespanSeconds: none, IdealMakespanSeconds: none,
		LinkBusy: ratio(min(m.waitBytes, m.waitSeconds*r.link.capacity), m.waitSeconds*r.link.capacity), IdleSlots: ratio(m.idleSeconds, m.slotSeconds),
		DeliveredBytes: m.delivered, RepeatedBytes: m.repeated, Refusals: m.refused, Preemptions: r.judge.yields,
		ElasticSlotSeconds: m.extraSeconds, MostSlots: m.mostSlots,
	}
	r.times(&out, reference)
	for _, at := range reference {
		if !math.IsNaN(at) {
			out.SharingDoneAt = append(out.SharingDoneAt, at)
		}
	}
	slices.Sort(out.SharingDoneAt)
	r.promised(&out)
	r.waits(&out)
	return out
}

// times fills in who was done when, and compares with equal sharing.
func (r *run) times(out *Result, reference []float64) {
	var (
		sum, sumSharing, latest float64
		counted                 int
		served                  []*person
	)
	for i := range r.clients {
		c := &r.clients[i]
		at := c.finished.Seconds()
		switch c.phase {
		case failed:
			out.FailedClients++
			out.RepeatedBytes += c.have
			at = max(r.lastEnd.Seconds(), reference[i])
		case left:
			out.LeftClients++
		case done:
			out.DoneClients++
			out.DoneAt = append(out.DoneAt, at)
			served = append(served, c.person)
		}
		if !c.stays() {
			continue
		}
		counted++
		mine, shared := at-c.arrival.Seconds(), reference[i]-c.arrival.Seconds()
		sum, sumSharing = sum+mine, sumSharing+shared
		latest = max(latest, mine/shared)
		if c.phase == failed || mine > shared*laterThan {
			out.LaterThanSharing++
		}
	}
	slices.Sort(out.DoneAt)
	if n := len(out.DoneAt); n > 0 {
		out.FirstDoneSeconds, out.MakespanSeconds = Measure(out.DoneAt[0]), Measure(out.DoneAt[n-1])
		out.IdealMakespanSeconds = Measure(idealMakespan(served, r.link.capacity))
	}
	out.DrainRatio = out.MakespanSeconds / out.IdealMakespanSeconds
	out.MeanSeconds, out.MeanSharingSeconds = ratio(sum, float64(counted)), ratio(sumSharing, float64(counted))
	out.MeanVsSharing, out.MaxLaterRatio = ratio(sum, sumSharing), none
	if counted > 0 {
		out.MaxLaterRatio = Measure(latest)
	}
}

func (r *run) promised(out *Result) {
	j, v := &r.judge, &r.judge.verdicts
	out.StartsOutside = j.outside
	out.Answers, out.UnknownAnswers, out.Rises, out.PromisesOpen = j.told, j.unknown, j.rises, v.open
	var starts, within, ends, held uint64
	for h, name := range horizonNames {
		starts, within, ends, held = starts+v.starts[h], within+v.within[h], ends+v.ends[h], held+v.held[h]
		if v.starts[h]+v.ends[h] > 0 {
			out.Horizons = append(out.Horizons, Horizon{
				name, v.starts[h], ratio(float64(v.within[h]), float64(v.starts[h])), ratio(float64(v.held[h]), float64(v.ends[h])),
			})
		}
	}
	out.PromisesJudged = starts
	out.StartsWithinTolerance, out.P90Holds = ratio(float64(within), float64(starts)), ratio(float64(held), float64(ends))
	out.CoreJudged = j.promises.Judged
	out.CoreWithin = ratio(float64(j.promises.Within), float64(j.promises.Judged))
	out.CoreHeld = ratio(float64(j.promises.Held), float64(j.promises.Judged))
}

func (r *run) waits(out *Result) {
	var (
		by    [queue.Classes][]float64
		never [queue.Classes]int
	)
	for i := range r.clients {
		if c := &r.clients[i]; c.started >= 0 {
			by[c.class] = append(by[c.class], (c.started - c.arrival).Seconds())
		} else {
			never[c.class]++
		}
	}
	for class, all := range by {
		if len(all) == 0 {
			if never[class] > 0 {
				out.Waits = append(out.Waits, Waits{queue.Class(class).String(), 0, never[class], none, none, none, none, none})
			}
			continue
		}
		slices.SortFunc(all, cmp.Compare[float64])
		var sum float64
		for _, w := range all {
			sum += w
		}
		at := func(q float64) Measure { return Measure(all[min(len(all)-1, int(q*float64(len(all))))]) }
		out.Waits = append(out.Waits, Waits{
			queue.Class(class).String(), len(all), never[class], ratio(sum, float64(len(all))), at(0.5), at(0.9), at(0.99), at(1),
		})
		out.FirstBytes = append(out.FirstBytes, all...)
	}
	slices.Sort(out.FirstBytes)
}
