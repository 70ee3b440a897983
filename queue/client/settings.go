package client

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"time"
)

// Defaults and bounds of Options.
const (
	defaultParallel = 4
	maxParallel     = 16
	defaultRange    = 8 << 20
	minRange        = 64 << 10 // below it a range costs more in questions than in bytes
	maxRange        = 1 << 30
	defaultRetries  = 20
	defaultAttempts = 5
	defaultSilence  = 60 * time.Second
)

// settings are Options that were checked and completed.
type settings struct {
	Options
	address *url.URL
	part    string
	lock    string
	bad     string
	// random returns a number in [0, 1): the source of all jitter.
	random func() float64
}

// settle checks options and completes them. All faults are told at once, each with its field.
func settle(o Options) (*settings, error) {
	s := &settings{Options: o, random: rand.Float64}
	var faults []error
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	address, err := url.Parse(o.URL)
	switch {
	case err != nil: // the parser's error repeats the address, secrets included
		wrong("URL cannot be read; want http://host/path or https://host/path")
	case address.Scheme != "http" && address.Scheme != "https" || address.Host == "":
		wrong("URL must be http://host/path or https://host/path, not scheme %q with host %q", shorten(address.Scheme, 16), shorten(address.Host, 64))
	}
	s.address = address
	if o.Output == "" {
		wrong("Output must be the path of the file to make")
	}
	if s.Checkpoint == "" {
		s.Checkpoint = o.Output + ".arkvory"
	}
	s.part, s.bad, s.lock = o.Output+".part", o.Output+".bad", s.Checkpoint+".lock"
	if one, clash := s.clash(); clash {
		wrong("Checkpoint %s and what lies beside it must not be the file of the download, %s", filepath.Clean(s.Checkpoint), one)
	}
	if o.ID != "" && !validID(o.ID) {
		wrong("ID must be 1..128 characters of A-Z a-z 0-9 . _ ~ -")
	}
	switch o.Class {
	case "", "interactive", "release", "bulk", "background":
	default:
		wrong("Class must be interactive, release, bulk or background, not %q", shorten(o.Class, 32))
	}
	s.Parallel = int(bounded(int64(o.Parallel), defaultParallel, 1, maxParallel, "Parallel", wrong))
	s.RangeBytes = bounded(o.RangeBytes, defaultRange, minRange, maxRange, "RangeBytes", wrong)
	s.Retries = int(bounded(int64(o.Retries), defaultRetries, 1, 1<<30, "Retries", wrong))
	s.Attempts = int(bounded(int64(o.Attempts), defaultAttempts, 1, 1<<30, "Attempts", wrong))
	s.AttemptTimeout = time.Duration(bounded(int64(o.AttemptTimeout), int64(defaultSilence), int64(time.Millisecond), int64(24*time.Hour), "AttemptTimeout in nanoseconds", wrong))
	if o.WaitLimit < 0 {
		wrong("WaitLimit must not be negative, it is %v", o.WaitLimit)
	}
	if o.Size < -1 {
		wrong("Size must be the length in bytes, or 0 or -1 when unknown, not %d", o.Size)
	}
	if s.Size == 0 {
		s.Size = -1
	}
	if !o.NotBefore.IsZero() && !o.NotAfter.IsZero() && o.NotAfter.Before(o.NotBefore) {
		wrong("NotAfter %s is before NotBefore %s", stamp(o.NotAfter), stamp(o.NotBefore))
	}
	if s.Clock == nil {
		s.Clock = systemClock{}
	}
	if s.Observe == nil {
		s.Observe = func(Event) {}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrOptions, errors.Join(faults...))
	}
	return s, nil
}

// clash returns a file of the download whose name one of the checkpoint's files has too; those are removed in the end.
func (s *settings) clash() (string, bool) {
	for _, path := range []string{s.Output, s.part, s.bad} {
		for _, own := range []string{s.Checkpoint, s.lock, s.trailPath(), s.newPath()} {
			if clean := filepath.Clean(path); clean == filepath.Clean(own) {
				return clean, true
			}
		}
	}
	return "", false
}

// bounded returns value, or the default for 0, and complains about one out of its bounds.
func bounded(value, byDefault, least, most int64, name string, wrong func(string, ...any)) int64 {
	if value == 0 {
		return byDefault
	}
	if value < least || value > most {
		wrong("%s must be %d..%d or 0 for %d, not %d", name, least, most, byDefault, value)
	}
	return value
}

// stamp is a time as errors show it.
func stamp(t time.Time) string { return t.Format(time.RFC3339) }
