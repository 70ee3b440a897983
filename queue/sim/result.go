package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/arkvory/sidecar/queue"
)

// Result is what one strategy made of a fleet. Times are seconds of virtual time. "Mean" and "later" count the clients that the
// scenario lets stay and that finished. The promise fields are nil where nobody was promised anything, as always under shared.
type Result struct {
	Name             string  `json:"name"`
	MeanVsSharing    float64 `json:"meanVsSharing"`    // mean time from arrival to the last byte / the same under ideal equal sharing
	FirstDoneSeconds float64 `json:"firstDoneSeconds"` // when the first client was done
	LaterThanSharing int     `json:"laterThanSharing"` // clients done later than under equal sharing by more than 1 %
	MaxLaterRatio    float64 `json:"maxLaterRatio"`    // the largest of those ratios
	LinkBusy         float64 `json:"linkBusy"`         // bytes carried / bytes the link could carry, while anybody waited
	IdleSlots        float64 `json:"idleSlots"`        // slot-seconds free although somebody waited who could use them / all, from 5 s on

	StartsWithinTolerance *float64 `json:"startsWithinTolerance"` // promises whose start was within 10 % or a minute
	P90Holds              *float64 `json:"p90Holds"`              // promises whose start was not later than the told p90
	FailedClients         int      `json:"failedClients"`         // clients that gave up

	DoneClients          int     `json:"doneClients"`
	LeftClients          int     `json:"leftClients"` // vanished, as the scenario says
	MeanSeconds          float64 `json:"meanSeconds"`
	MeanSharingSeconds   float64 `json:"meanSharingSeconds"`
	MakespanSeconds      float64 `json:"makespanSeconds"`      // when the last client was done
	IdealMakespanSeconds float64 `json:"idealMakespanSeconds"` // max of all bytes / link and the longest client at its own rate
	DrainRatio           float64 `json:"drainRatio"`           // of the two
	DeliveredBytes       int64   `json:"deliveredBytes"`
	RepeatedBytes        int64   `json:"repeatedBytes"` // delivered, but of no use

	Answers        uint64    `json:"answers"`        // waiting clients told their position
	UnknownAnswers uint64    `json:"unknownAnswers"` // of them without an estimate
	Refusals       uint64    `json:"refusals"`       // per-request refusals
	Horizons       []Horizon `json:"horizons"`       // promises by how far ahead
	Rises          Rises     `json:"rises"`          // positions that rose
	CoreJudged     uint64    `json:"coreJudged"`     // the core's own measure of one answer a session
	CoreWithin     float64   `json:"coreWithin"`
	CoreHeld       float64   `json:"coreHeld"`

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
	Within   float64 `json:"within"`
	P90Holds float64 `json:"p90Holds"`
}

// Waits are the times from arrival to the first byte of the clients of a class that got any.
type Waits struct {
	Class   string  `json:"class"`
	Clients int     `json:"clients"`
	Mean    float64 `json:"meanSeconds"`
	P50     float64 `json:"p50Seconds"`
	P90     float64 `json:"p90Seconds"`
	P99     float64 `json:"p99Seconds"`
	Max     float64 `json:"maxSeconds"`
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// laterThan is what counts as later.
const laterThan = 1.01

func (r *run) result(pop *population, reference []float64) Result {
	ideal := idealMakespan(pop.persons, float64(r.set.LinkBytesPerSecond)).Seconds()
	m := &r.meter
	out := Result{
		Name: r.strategy.String(), FirstDoneSeconds: math.Inf(1), LinkBusy: ratio(m.waitBytes, m.waitSeconds*r.link.capacity),
		IdleSlots: ratio(m.idleSeconds, m.slotSeconds), IdealMakespanSeconds: ideal, DeliveredBytes: m.delivered, RepeatedBytes: m.repeated,
		Refusals: m.refused, Preemptions: r.judge.yields, ElasticSlotSeconds: m.extraSeconds, MostSlots: m.mostSlots,
	}
	var sum, sumSharing float64
	counted := 0
	for i := range r.clients {
		c := &r.clients[i]
		switch c.phase {
		case failed:
			out.FailedClients++
		case left:
			out.LeftClients++
		case done:
			out.DoneClients++
			at := c.finished.Seconds()
			out.DoneAt = append(out.DoneAt, at)
			if !c.stays() {
				continue
			}
			counted++
			mine, shared := at-c.arrival.Seconds(), reference[i]-c.arrival.Seconds()
			sum, sumSharing = sum+mine, sumSharing+shared
			out.MaxLaterRatio = max(out.MaxLaterRatio, mine/shared)
			if mine > shared*laterThan {
				out.LaterThanSharing++
			}
		}
	}
	slices.Sort(out.DoneAt)
	if len(out.DoneAt) > 0 {
		out.FirstDoneSeconds, out.MakespanSeconds = out.DoneAt[0], out.DoneAt[len(out.DoneAt)-1]
	} else {
		out.FirstDoneSeconds = 0
	}
	for _, at := range reference {
		if !math.IsNaN(at) {
			out.SharingDoneAt = append(out.SharingDoneAt, at)
		}
	}
	slices.Sort(out.SharingDoneAt)
	out.DrainRatio = ratio(out.MakespanSeconds, ideal)
	out.MeanSeconds, out.MeanSharingSeconds = ratio(sum, float64(counted)), ratio(sumSharing, float64(counted))
	out.MeanVsSharing = ratio(sum, sumSharing)
	r.promised(&out)
	r.waits(&out)
	return out
}

func (r *run) promised(out *Result) {
	j := &r.judge
	out.Answers, out.UnknownAnswers, out.Rises = j.told, j.unknown, j.rises
	var made, within, bound uint64
	for h, name := range horizonNames {
		made, within, bound = made+j.made[h], within+j.within[h], bound+j.bound[h]
		if n := float64(j.made[h]); n > 0 {
			out.Horizons = append(out.Horizons, Horizon{name, j.made[h], float64(j.within[h]) / n, float64(j.bound[h]) / n})
		}
	}
	if made > 0 {
		w, b := float64(within)/float64(made), float64(bound)/float64(made)
		out.StartsWithinTolerance, out.P90Holds = &w, &b
	}
	out.CoreJudged = j.promises.Judged
	out.CoreWithin = ratio(float64(j.promises.Within), float64(j.promises.Judged))
	out.CoreHeld = ratio(float64(j.promises.Held), float64(j.promises.Judged))
}

func (r *run) waits(out *Result) {
	var by [queue.Classes][]float64
	for i := range r.clients {
		if c := &r.clients[i]; c.started >= 0 {
			by[c.class] = append(by[c.class], (c.started - c.arrival).Seconds())
		}
	}
	for class, all := range by {
		if len(all) == 0 {
			continue
		}
		slices.SortFunc(all, cmp.Compare[float64])
		var sum float64
		for _, w := range all {
			sum += w
		}
		at := func(q float64) float64 { return all[min(len(all)-1, int(q*float64(len(all))))] }
		out.Waits = append(out.Waits, Waits{
			queue.Class(class).String(), len(all), sum / float64(len(all)), at(0.5), at(0.9), at(0.99), all[len(all)-1],
		})
		out.FirstBytes = append(out.FirstBytes, all...)
	}
	slices.Sort(out.FirstBytes)
}
