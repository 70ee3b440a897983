// Package live is the desk of the settings that change while the process runs: it judges a change, keeps it and puts it in force.
//
// # Model
//
//	effective = environment policy + overrides
//
// The overrides are a JSON object of the fields that an operator changed; {} is the environment again. A change replaces the whole object,
// so that what is in force never depends on the order of earlier changes. The fields:
//
//	strategy          ordered, smallest-first, fair-sojourn, shared
//	sessions          slots, 1..1024, at most ARKVORY_DOWNLOAD_QUEUE_LIMIT
//	reserve           slots for class interactive only, 0..sessions-1
//	perPrincipal      a principal's share while another heads the queue, 1..sessions
//	weights           {interactive, release, bulk, background}, all four together, 1..1000 each
//	sessionMinBytes   objects above it are sessions, 0..2^40
//	idleSeconds       pause that frees a slot, 1..3600
//	agingMinutes      wait that lifts a class, 0 (off)..10080
//	preempt           true or false
//	rangesPerSession  responses of a session at once, 1..64
//	sessionsElastic   slots that may open while the link is not full, sessions..1024
//
//	mode              normal, queue-all, pass-through, reject-new, dry-run
//	windows           {<class>: {zone, outsideShare, open: [{days, from, to}]}}, see queue/window; a class that is absent is always open
//	principals        {<principal id>: {class, bytesPerDay, bytesPerWeek}}, at most 1024; what is absent is the principals file's and quotas'
//	quotas            {bytesPerDay, bytesPerWeek, zone} of every principal without its own, see proxy/quota; 0 = none, 0..2^53-1
//
// All numbers but outsideShare are whole. Limits of the queue, holds and budgets are the environment's only; so are the principals file's keys, which may be
// secrets, while the record names principals by the ids that identification gives them.
//
// Three fields are bounded by sessions. Where sessions is changed and they are not, they follow: reserve and perPrincipal are lowered to fit
// and never raised above the environment's; sessionsElastic stays off where the environment has it off, else it is raised to sessions where it
// is below. A field that stands in the overrides is never bent: what does not fit together is refused. A day's quota may not be above the week's that stands
// beside it; one that a principal inherits is not judged, for a change of quotas must not be in conflict with a thousand rules: there the smaller one counts.
//
// # Faults
//
// A change is told every fault at once, each by the path of its field: sessions, weights.bulk, windows.bulk.open[0].from, principals.user:ci.bytesPerDay. What has
// the wrong type is replaced by something harmless for the judgement of the rest. A stored record is read with fields of newer versions skipped on every
// level, and its faults name principals by their place, as principals[3].class: they go to the log and the readiness page, which name nobody.
//
// # Invariants
//
//	I1  The policy in force is the environment's, or it was judged by queue.Policy.Validate with the record's overrides.
//	I2  Problem is empty exactly when the record that the store was last known to hold is in force and the store answered the last look. A record that does not fit leaves the
//	    environment in force, one that the queue did not take what was before, a store that does not answer what was in force.
//	I3  Revisions in force only grow: a late answer of an old read undoes nothing, and where the store itself went back what is in force stays until somebody changes the store. Compare, swap and application are one step, in the desk's turn.
//
// # Who calls it
//
// The admin listener, through [admin.LiveSettings]; the proxy's readiness page reads Current. Apply is queue.Configure in the end: it acts from
// the queue's next decision and touches no active session. The turn is held while the store is asked: readers take an immutable document
// from an atomic pointer instead, and a change waits for its turn no longer than for the store.
//
// # Failure
//
// A store that does not answer at the start, or holds a record that does not fit this server, stops nothing: problem says why and the environment
// rules. Fields that a newer version saved are skipped. A change that the store does not take changes nothing. Where another process was faster,
// its record is put in force here too.
//
// [Desk.Follow] reads the record when the store calls and every five seconds, three seconds at most, without the turn: what another process saved is in force here within
// eight. A store that does not answer is told in problem, in words that name no host or account, until it answers again; then all goes on by itself. When the stored revision
// is lower than the one in force (a restored database), problem says so and the next change expects the stored one.
//
// # Decisions
//
// Fields equal to the environment are kept when an operator sent them: he may have meant to pin them, and other processes may have other environments.
// Rejected: merging a change into the record (a retried request would mean something else the second time), accepting 1.0 or 1e3 for whole numbers,
// null for "not changed" (leaving the field out says that), the last of two fields with one name.
package live
