package queue

import (
	"math"
	"time"
)

// rateSamples is how many one-second samples make the measured minute.
const rateSamples = 60

// capacityHalf is the time in which the remembered capacity of the link halves unless it is reached again.
const capacityHalf = time.Hour

// rateMeter measures delivered bytes per second. A sample is closed by the first tick at least a second after its start and
// divided by its real length, so a late tick makes no false peak. Only ticks close samples: the bytes of all responses are
// collected just before, so that each sample holds what was delivered in its time and nothing of its neighbours.
type rateMeter struct {
	since    time.Duration // start of the open sample
	bytes    int64
	samples  [rateSamples]rateSample
	next     int
	latest   rateSample // the last closed sample, with or without bytes
	capacity float64    // slowly forgotten peak, bytes per second
}

type rateSample struct {
	at             time.Duration // end of the sample
	bytesPerSecond int64
}

func (m *rateMeter) add(bytes int64) { m.bytes += bytes }

func (m *rateMeter) roll(now time.Duration) {
	length := now - m.since
	if length < time.Second {
		return
	}
	sample := rateSample{now, int64(float64(m.bytes) / length.Seconds())}
	if m.bytes > 0 {
		m.samples[m.next] = sample
		m.next = (m.next + 1) % rateSamples
	}
	m.latest = sample
	m.capacity = max(m.capacity*math.Exp2(-length.Seconds()/capacityHalf.Seconds()), float64(sample.bytesPerSecond))
	m.since, m.bytes = now, 0
}

// last returns the rate of the last whole second.
func (m *rateMeter) last(now time.Duration) float64 {
	if now-m.latest.at > 2*time.Second {
		return 0
	}
	return float64(m.latest.bytesPerSecond)
}

// measured returns the peak and the mean of the samples with bytes in the last minute; 0 without any.
func (m *rateMeter) measured(now time.Duration) (peak, mean float64) {
	var sum, count float64
	for _, sample := range m.samples {
		if sample.bytesPerSecond == 0 || now-sample.at > time.Minute {
			continue
		}
		rate := float64(sample.bytesPerSecond)
		peak, sum, count = max(peak, rate), sum+rate, count+1
	}
	if count == 0 {
		return 0, 0
	}
	return peak, sum / count
}
