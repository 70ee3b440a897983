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
	used     float64    // of the peak, while anybody waits; 0 = not known
}

// busyOver is the time over which the use of the link is averaged.
const busyOver = 30 * time.Minute

// note takes the last sample into the use of the link; it is called on ticks while anybody waits.
func (m *rateMeter) note(now time.Duration, peak float64) {
	if m.latest.at != now || peak <= 0 {
		return
	}
	used := min(float64(m.latest.bytesPerSecond)/peak, 1)
	if m.used == 0 {
		m.used = 1
	}
	m.used += (used - m.used) / busyOver.Seconds()
}

// busy is the share of the peak that flows on the average while anybody waits, 0.5..1: the peak alone would promise too early.
func (m *rateMeter) busy() float64 {
	if m.used == 0 {
		return 1
	}
	return max(m.used, 0.5)
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
