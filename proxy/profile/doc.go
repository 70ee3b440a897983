// Package profile knows how the clients of the world behave when a proxy makes them wait or refuses them (rule X1), and words refusals
// in the form each of them reads.
//
// # What was measured
//
// Some fifty stock clients were held, refused, stalled and cut. Half of them end at a single 503; few honour Retry-After; nobody gives up in
// under 30 s of silence, but tools with a read timeout of 15 s (pip and its kin). Some retry a 429 where a 503 ends them, others the
// other way round. So the table says of each client:
//
//	HoldLimit     how long one of its requests may be held in silence: 25 s, for the 15 s tools 12 s
//	RefuseStatus  503, or 429 for those that a 503 ends and a 429 makes wait
//	Body          the form of a refusal: plain JSON, an OCI error list, git-lfs JSON
//	Browser       whether the request is a navigation of a browser, which gets a page
//
// The hold in force is the smaller of HoldLimit and the configured hold. Clients are told apart by the product at the start of
// User-Agent, without regard to case. A wrong match costs comfort, never correctness, so a client that lies harms itself only. A
// request with Arkvory-Download-Id is a protocol client, whatever its User-Agent: it gets 503 with our JSON.
//
// # Steering requests
//
// [Steering] names the requests that clients make before the download: manifests, tokens, indexes, packuments, refs, HEAD. They are small, many
// clients do not survive a refusal of them, and holding them holds everything behind. They are never queued. The rule looks at names,
// which a publisher of files can choose; so a response above [SteeringLimit] is a download whatever its name, and the caller
// admits it as such: 128 MiB where the path is that of an index, 16 MiB where only User-Agent or Accept makes it one and the name does not look like
// a file. A path that an origin may read in another way than this package (dot segments, escaped slashes, path parameters) steers nothing, but for npm's
// /@scope%2fname.
//
// # The file
//
// ARKVORY_CLIENTS_FILE adds rows, which come before the built-in ones in the order written:
//
//	clients:
//	  - name: corp-fetch        # 1..32 of a-z 0-9 . _ -; a metric label
//	    userAgent: CorpFetch/   # start of User-Agent, 1..128 bytes, any case
//	    holdSeconds: 10         # 0..25, default 25
//	    refuseStatus: 503       # 503 or 429, default 503
//	    body: plain             # plain, oci or lfs; default by the path, see Match
//	    browser: false          # default: when it navigates like a browser
//
// It is strict: every fault is listed with its line, and a faulty edit leaves the last good table in force. Names are a closed
// set of at most [maxRows] beside the built-in ones, so they fit metric labels.
//
// # Concurrency, failure, cost
//
// A Table is safe for any number of goroutines; Poll is called from a tick. Match and Steering allocate nothing. Nothing here blocks but Poll and
// Reload, which read a file.
//
// # Decisions
//
// Regular expressions over User-Agent were rejected: a prefix of the product token tells all measured clients apart, costs some
// nanoseconds and cannot be written wrongly. One table for all origins, not one per origin type: the client decides how a client behaves,
// not what it talks to.
package profile
