// Package demo is the origin that stands behind the proxy when ARKVORY_UPSTREAM is unset, so that the product can be tried with
// one command and nothing else installed.
//
// # Objects
//
//	/             a page that says what to try
//	/hello.txt    a few bytes: passes without admission
//	/release.tar  64 MiB, a tar archive that unpacks: a download session by the default threshold
//	/image.bin    256 MiB
//	/SHA256SUMS   true digests, in the format of sha256sum -c
//
// # Model
//
// The byte at offset x of an object is a pure function of the object's seed and x: word i of eight bytes (little endian) is
// mix(seed + (i+1)*g), where g is an odd constant and mix the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Any range is
// generated where it is asked for: no file, no memory beyond a reader per response. An archive is a stored head, generated
// bytes and zeros at the end. The entity tag is strong, a digest over what defines the content, and stays the same from run to
// run and on every machine, so that a download resumes after a restart.
//
// # Invariants
//
//	I1  The same path gives the same bytes, validators and length, in every process of one build.
//	I2  The listener is on loopback, on a free port.
//	I3  After Close no goroutine of the origin runs.
//
// # Callers
//
// The composition root calls Start before the pool resolves its endpoints and Close after the drain. Nothing else imports it.
//
// # Failure
//
// Start fails only when no loopback port can be had. SHA256SUMS reads all objects at its first request (some seconds) and
// answers 503 when the origin is closed meanwhile.
//
// # Decisions
//
// net/http, not fasthttp: its ServeContent is the reference for Range, If-Range and preconditions, and an origin written by
// others than the proxy's codec shows faults that the same codec on both sides would hide. Rejected: embedded files (the binary would
// grow by the object), zeros (compressible, and a range served from a wrong offset would go unnoticed).
package demo
