package sim

import (
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/arkvory/sidecar/queue"
)

// Run simulates one strategy. trace, when not nil, gets one line a decision and event: equal settings give equal bytes. The
// error of invalid settings joins *FieldError and *queue.PolicyError; ErrTooLong is wrapped when Settings.Limit is reached. It blocks
// until the last client is done; concurrent calls do not touch each other.
func Run(set Settings, strategy queue.Strategy, trace io.Writer) (Result, error) {
	if err := set.Validate(); err != nil {
		return Result{}, err
	}
	pop := populate(&set)
	if err := feasible(&set, pop); err != nil {
		return Result{}, err
	}
	return simulate(&set, strategy, pop, sharing(pop.persons, float64(set.LinkBytesPerSecond)), trace)
}

// Compare simulates several strategies over the same fleet, as many at once as there are processors, and returns the results in the
// order asked for. trace returns where a strategy's trace goes (nil = nowhere) and may itself be nil. The first error is returned.
func Compare(set Settings, strategies []queue.Strategy, trace func(queue.Strategy) io.Writer) ([]Result, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	pop := populate(&set)
	if err := feasible(&set, pop); err != nil {
		return nil, err
	}
	reference := sharing(pop.persons, float64(set.LinkBytesPerSecond))
	results, errs := make([]Result, len(strategies)), make([]error, len(strategies))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, strategy := range strategies {
		var to io.Writer
		if trace != nil {
			to = trace(strategy)
		}
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			results[i], errs[i] = simulate(&set, strategy, pop, reference, to)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// feasible refuses at once what cannot be over at the limit: whoever comes too late, or more bytes than the link carries until then.
// Clients that may vanish or give up count for nothing here.
func feasible(set *Settings, pop *population) error {
	var bytes float64
	for i := range pop.persons {
		p := &pop.persons[i]
		if p.stays() && p.protocol && set.BreaksPerGiB == 0 {
			bytes += float64(p.size)
		}
	}
	last, limit := pop.persons[len(pop.persons)-1].arrival.Seconds(), set.Limit.Seconds()
	if need := max(last, bytes/float64(set.LinkBytesPerSecond)); need > limit {
		return fmt.Errorf("cannot simulate: %w: the last client comes after %.0f h and the link needs %.0f h for all bytes, the limit is %.0f h: raise it or lower the load",
			ErrTooLong, last/3600, bytes/float64(set.LinkBytesPerSecond)/3600, limit/3600)
	}
	return nil
}

func simulate(set *Settings, strategy queue.Strategy, pop *population, reference []float64, trace io.Writer) (Result, error) {
	r, err := newRun(set, strategy, pop, trace)
	if err != nil {
		return Result{}, err
	}
	if err := r.loop(); err != nil {
		return Result{}, err
	}
	if err := r.trace.flush(); err != nil {
		return Result{}, fmt.Errorf("cannot write the trace of %s: %w", strategy, err)
	}
	return r.result(pop, reference), nil
}
