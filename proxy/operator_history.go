package proxy

import (
	"sync"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// Samples of the past: one each sampleEvery, of the last six hours.
const (
	sampleEvery = 5 * time.Second
	sampleSpan  = 6 * time.Hour
	samplesKept = int(sampleSpan / sampleEvery)
)

// sample is what one step looked like.
type sample struct {
	step               int64 // its number + 1; another one: there is no sample of that step
	download, upload   int64 // bytes per second
	active, slots      int32
	waiting            [queue.Classes]int32
	started, completed int32
}

// history is the samples, in memory of a fixed size. It is safe for concurrent use.
type history struct {
	mu      sync.Mutex
	samples [samplesKept]sample
	newest  int64 // number of the last step that is over
	begun   bool
	last    time.Duration // when the totals below were read
	totals  historyTotals
}

type historyTotals struct{ download, upload, started, completed uint64 }

// Sample takes a sample when a step is over; it is called on the proxy's tick with the queue's time. Steps in which no tick came have none.
func (o *operator) Sample(now time.Duration) {
	h := &o.past
	h.mu.Lock()
	defer h.mu.Unlock()
	step := int64(now/sampleEvery) - 1 // the last one that is over
	if h.begun && step <= h.newest {
		return
	}
	s := o.queue.Snapshot()
	var t historyTotals
	t.download, t.upload = o.moved()
	t.started, t.completed = s.Counts.Started, s.Counts.Ended[queue.ReasonCompleted]
	if h.begun {
		h.samples[step%int64(samplesKept)] = h.sampleLocked(step, now, t, &s)
	}
	h.begun, h.newest, h.last, h.totals = true, step, now, t
}

// sampleLocked makes the sample of what happened since the last one.
func (h *history) sampleLocked(step int64, now time.Duration, t historyTotals, s *queue.Snapshot) sample {
	seconds := max(now-h.last, time.Millisecond).Seconds()
	out := sample{step: step + 1, active: int32(s.ActiveTotal()), slots: int32(s.Slots),
		download: int64(float64(t.download-h.totals.download) / seconds), upload: int64(float64(t.upload-h.totals.upload) / seconds),
		started: int32(t.started - h.totals.started), completed: int32(t.completed - h.totals.completed)}
	for c, n := range s.Waiting {
		out.waiting[c] = int32(n)
	}
	return out
}

// History returns the samples of the last minutes, thinned to at most admin.MaxSamples: rates are means, counts sums over what is put together, the
// others are as of its end.
func (o *operator) History(minutes int) admin.HistoryDocument {
	_, now := o.follow()
	wanted := min(max(minutes, 1), admin.MaxMinutes) * int(time.Minute/sampleEvery)
	each := (wanted + admin.MaxSamples - 1) / admin.MaxSamples
	n := wanted / each
	h := &o.past
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.newest + 1 // behind the last step shown
	if !h.begun {
		end = int64(now / sampleEvery)
	}
	end -= end % int64(each) // so that the same steps are put together on every page
	doc := admin.HistoryDocument{StepSeconds: int(sampleEvery/time.Second) * each, Until: o.moment(time.Duration(end) * sampleEvery)}
	rows := [...]*admin.Series{&doc.BytesPerSecond, &doc.UploadBytesPerSecond, &doc.Active, &doc.Slots, &doc.Started, &doc.Completed,
		&doc.Waiting.Interactive, &doc.Waiting.Release, &doc.Waiting.Bulk, &doc.Waiting.Background}
	for i := range rows {
		*rows[i] = make(admin.Series, n)
	}
	for i := range n {
		from := end - int64((n-i)*each)
		point := h.pointLocked(from, from+int64(each))
		for row := range rows {
			(*rows[row])[i] = point[row]
		}
	}
	return doc
}

// pointLocked puts the samples of the steps [from, to) together, in the order of History's rows.
func (h *history) pointLocked(from, to int64) (point [10]int64) {
	count := int64(0)
	for step := max(from, 0); step < to; step++ {
		s := &h.samples[step%int64(samplesKept)]
		if s.step != step+1 {
			continue
		}
		count++
		point[0] += s.download
		point[1] += s.upload
		point[2], point[3] = int64(s.active), int64(s.slots)
		point[4] += int64(s.started)
		point[5] += int64(s.completed)
		for c := range s.waiting {
			point[6+c] = int64(s.waiting[c])
		}
	}
	if count == 0 {
		for i := range point {
			point[i] = admin.NoSample
		}
		return point
	}
	point[0], point[1] = point[0]/count, point[1]/count
	return point
}
