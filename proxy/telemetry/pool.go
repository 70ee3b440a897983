package telemetry

// registerPool registers what a page says of the upstream pool.
func (m *Metrics) registerPool() {
	one := func(name string, f func(u *Upstream) float64) {
		m.set.NewGauge(name, func() float64 { return f(&m.page.upstream) })
	}
	each := func(name, label string, values []string, f func(u *Upstream, i int) float64) {
		for i, value := range values {
			one(series(name, label, value), func(u *Upstream) float64 { return f(u, i) })
		}
	}
	each(nameWriters, "state", writerNames, func(u *Upstream, i int) float64 { return float64(u.Writers[i]) })
	one(nameFloor, func(u *Upstream) float64 { return float64(u.Floor) })
	one(nameWanted, func(u *Upstream) float64 { return float64(u.Waiting) })
	one(nameCoverage, func(u *Upstream) float64 { return lit(u.Covered) })
	each(nameEndpoints, "state", healthNames, func(u *Upstream, i int) float64 { return float64(u.Endpoints[i]) })
	one(nameGeneration, func(u *Upstream) float64 { return float64(u.Generation) })
	each(nameGenerations, "event", lifeNames, func(u *Upstream, i int) float64 { return float64(u.Generations[i]) })
	one(nameFallback, func(u *Upstream) float64 { return lit(u.Fallback) })
	each(nameFallbacks, "direction", turnNames, func(u *Upstream, i int) float64 { return float64(u.Fallbacks[i]) })
	each(nameProbes, "result", probeNames, func(u *Upstream, i int) float64 { return float64(u.Probes[i]) })
	each(nameResolves, "result", probeNames, func(u *Upstream, i int) float64 { return float64(u.Resolves[i]) })
}

func lit(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
