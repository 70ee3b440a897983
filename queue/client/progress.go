package client

import "time"

// meterSpan is over how long a rate is measured.
const meterSpan = 10 * time.Second

// meter measures the rate of the last seconds from samples of (time, bytes).
type meter struct {
	samples []sample
}

type sample struct {
	at    time.Time
	bytes int64
}

// restart forgets: what lies before a pause says nothing about the rate after it.
func (m *meter) restart(now time.Time, bytes int64) {
	m.samples = append(m.samples[:0], sample{now, bytes})
}

// add takes a sample and returns bytes a second, 0 while they cannot be told.
func (m *meter) add(now time.Time, bytes int64) float64 {
	for len(m.samples) > 1 && now.Sub(m.samples[1].at) >= meterSpan {
		m.samples = m.samples[1:]
	}
	m.samples = append(m.samples, sample{now, bytes})
	first := m.samples[0]
	elapsed := now.Sub(first.at).Seconds()
	if elapsed <= 0 || bytes < first.bytes {
		return 0
	}
	return float64(bytes-first.bytes) / elapsed
}

// timeLeft is how long the rest takes, 0 when that cannot be told.
func timeLeft(bytes, total int64, rate float64) time.Duration {
	if total < 0 || rate <= 0 {
		return 0
	}
	seconds := float64(total-bytes) / rate
	if seconds > (100 * 365 * 24 * time.Hour).Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// progress tells how far it is.
func (op *operation) progress() {
	bytes := op.bytes()
	rate := op.meter.add(op.Clock.Now(), bytes)
	op.emit(Event{Kind: Downloading, BytesPerSecond: rate, Left: timeLeft(bytes, op.total(), rate)})
}
