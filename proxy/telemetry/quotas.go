package telemetry

import "github.com/arkvory/sidecar/proxy/quota"

// Quotas is the state of the principals' quotas at one moment (X9).
type Quotas struct {
	quota.Snapshot
	// Faulty: the counts cannot be kept in the state directory.
	Faulty bool
}

// registerQuotas registers what a page reads about quotas.
func (m *Metrics) registerQuotas() {
	q := &m.page.quotas
	for p, word := range quota.Words() {
		m.set.NewGauge(series(nameQuotaRefusals, "period", word), func() float64 { return float64(q.Refused[p]) })
	}
	m.set.NewGauge(nameQuotaOver, func() float64 { return float64(q.Over) })
	m.set.NewGauge(nameQuotaPrincipals, func() float64 { return float64(q.Principals) })
	m.set.NewGauge(nameQuotaForgotten, func() float64 { return float64(q.Forgotten) })
	m.set.NewGauge(nameQuotaUncounted, func() float64 { return float64(q.Uncounted) })
	m.set.NewGauge(nameQuotaFaulty, func() float64 {
		if q.Faulty {
			return 1
		}
		return 0
	})
}
