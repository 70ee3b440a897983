// Package telemetry holds the words in which the proxy tells what happened, and the counters behind /metrics.
//
// # Purpose
//
// One closed enum, [Reason], is the JSON body's "reason", the metric's label and the log line's field, so that an operator who
// reads one of them finds the others by searching for the same word. [Metrics] counts with these words; what other rooms already
// count is read from their [Snapshots] when the page is written and never counted a second time here.
//
// # Model
//
// A family is a metric name with a closed set of label values. The catalog (families.go) declares each family once: name, type,
// labels with all their values, help. Registration, the HELP and TYPE lines of the page, the table in the README and the tests
// derive from it. Every series exists from the first scrape on, at zero: a rate() over a counter that appears late misses its first
// increment, and an alert on an absent series never fires.
//
// Units: bytes, seconds, events. Counters begin at zero with the process. Wait times and estimate errors are histograms with
// cumulative le buckets (plain Prometheus reads them; vmrange buckets it does not).
//
// # Invariants
//
//	I1  The number of series is fixed at New: no request, host, path, principal or object becomes a label value.
//	I2  The hot path is an array index and an atomic addition: no lock, no map, no allocation.
//	I3  Each Metrics has its own set. Two of them in one process share nothing; the library's global set is not used.
//	I4  A page is consistent: each snapshot function is called once a page, whatever number of gauges it feeds.
//	I5  An enum value out of range counts as unknown or other where the family has such a value, else not at all; it never panics.
//
// # Callers
//
// The composition root builds one Metrics; proxy, relay and upstream count; the admin listener calls WriteTo. Snapshot functions run on
// the goroutine of the scrape, one page at a time, and may take their room's lock but must not call WriteTo.
//
// # Failure
//
// A nil snapshot function reads as zero, so a room that is not wired yet costs nothing. A writer that fails ends WriteTo with its
// error. A panic in a snapshot function goes to the caller of WriteTo and leaves the lock free.
//
// # Decisions
//
// HELP and TYPE lines are written here, not by the library's ExposeMetadata: that switch is global to the process and its help texts
// are empty. Labels were rejected for status codes as free numbers (a list of those the proxy itself answers, and "other"), for
// upstream endpoints (an operator's DNS can make hundreds) and for principals (personal data, unbounded).
package telemetry
