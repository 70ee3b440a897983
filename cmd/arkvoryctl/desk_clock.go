package main

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// This is the clock file of the commands that speak with the admin listener: what times of day are read against, the pause between two looks, the wait
// that a server asks for.

// wallClock is the time of day here.
func wallClock() time.Time { return time.Now() }

// pause waits so long, or until the context ends; then its cause is returned.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// longestRetry is the longest wait that a server may ask for before it is asked again without being told to.
const longestRetry = time.Minute

// retryAfter is the wait that an answer asks for: seconds or a date (RFC 9110 10.2.3). ok is false when it names none, or one above longestRetry.
func retryAfter(header http.Header) (d time.Duration, ok bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if n, err := strconv.ParseInt(value, 10, 32); err == nil && n >= 0 {
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = max(0, at.Sub(wallClock()))
	} else {
		return 0, false
	}
	return d, d <= longestRetry
}
