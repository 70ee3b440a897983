// Package config turns the environment of a process into one checked value.
//
// # Model
//
// A variable is one row of the definitions: its name, its rule, an accepted example and its meaning; its default is the
// envDefault tag of its field in Config. Everything that speaks about a variable (Load, the fault texts, Print, Table,
// Known) reads that row, so none of them can drift from the others.
//
// Load goes in three steps:
//
//	check   each given text against its own rule; a text that passes becomes canonical (a duration gets its unit, an
//	        address becomes a network), one that fails becomes a Fault and its default stands in for it
//	bind    caarlos0/env puts the canonical texts into the fields of Config
//	settle  defaults that depend on other variables are filled in, and the rules between variables are checked
//
// Units: the name says the unit of the text (_MS milliseconds, _SECONDS, _MINUTES, _BYTES, _BYTES_PER_SECOND); in Config
// every time is a time.Duration. Numbers are plain decimal digits.
//
// # Rules that hold for every variable
//
//   - Empty is unset. A variable that is set to the empty text gets its default, whatever its type, because compose
//     files and unit files write NAME= for "not mine to set". So an empty number is never 0, an empty switch never
//     false, and no variable can be switched off by emptying it: the rules name the value that does (mostly 0).
//   - All faults at once. A start that fails lists each wrong variable with its value, problem, rule and example.
//     A rule between two variables is checked only when both passed their own, so one mistake is one fault.
//   - A default never conflicts where lowering it suffices. min(4, ARKVORY_MAX_UPLOADS) and its kind follow an explicit
//     smaller limit; only two values that an operator wrote can contradict each other, except that an explicit value
//     above a larger default is a fault too: raising a limit that nobody raised would be a surprise.
//   - A secret is never shown. The text of a secret variable, and of one that may carry credentials by mistake (an
//     origin with a user in it), appears in no fault, warning or print; Secret hides itself from fmt and from encoders.
//   - An unknown ARKVORY_ name is a warning with the nearest known name, since a newer deployment file must be able to
//     start an older binary. Names of later versions get a warning of their own. The names that Kubernetes injects
//     for a Service called arkvory (ARKVORY_PORT=tcp://...) are passed over.
//
// # Invariants of a returned Config
//
//	1 <= MaxUploadsPerPrincipal <= MaxUploads             1 <= MaxDownloadsPerPrincipal <= MaxDownloads
//	TransferQueuePerPrincipal <= TransferQueueLimit       DownloadQueuePerPrincipal <= DownloadQueueLimit
//	MaxDownloadSessions <= DownloadQueueLimit             MaxDownloadSessions <= MaxDownloadSessionsElastic <= 1024
//	0 <= DownloadReserve < MaxDownloadSessions            UploadIdleTimeout <= UploadDeadline
//	DownloadAdmissionMinBytes <= DownloadSessionMinBytes  UpstreamMaxIdle <= UpstreamMaxConnections
//	each rate of a direction, and of a principal in it, is 0 or 65536..1099511627776
//	DownloadHold <= 25 s                                  RestartGrace <= 600 s
//	DownloadDripLimit <= 65536                            1 <= DownloadDripBytesPerSecond <= 65536
//	TicketKey is empty or 32 bytes in hex or base64, without white space around it
//	TLSCertFile and TLSKeyFile are both empty or a pair that loaded
//
// # Who calls it, and failure
//
// cmd/arkvory-sidecar calls Load once, with os.Environ, before anything else starts. The files that variables name are
// opened to see that they can be read, and closed again; the place of a file to write and the state directory are looked at; nothing is
// kept, made, written or watched. A file may of course change
// afterwards: its reader reports that. Load keeps no state and may be called from any goroutine. On faults it returns
// the zero Config.
//
// # The record of live settings
//
// A [RecordStore] keeps what an operator changed while the process ran, as one revisioned [Record] that is compared and swapped. It judges
// nothing: what the fields mean is said where they are applied (proxy/live). [MemoryRecords] is the store of a process that has no other; package store
// keeps it in PostgreSQL or in a file. Stores say what failed in a [StoreError], which may be shown.
//
// # Decisions
//
//   - caarlos0/env binds, it does not judge: its errors name a Go field and a strconv message, and it silently replaces
//     an empty value by the default. Rejected: required and notEmpty tags, which cannot name a rule or an example.
//   - ARKVORY_DOWNLOAD_HOLD_SECONDS ends at 25: the least patient of common clients give up after 30 s of silence. A
//     default derived from a longer waiting term is cut to 25, from a part of a second rounded up.
//   - ARKVORY_DRAIN_SECONDS is 25 by default, below the 30 s that Kubernetes grants between the signal and the kill.
//   - ARKVORY_UPSTREAM_IDLE_TIMEOUT_SECONDS is 45, below the 60 to 75 s of common origins, so that the proxy closes an
//     unused connection before the origin does and does not send a request into a closing one.
//   - ARKVORY_DECISION_LOG is emptied at the start: a replay begins with an empty queue, as a process does. Two runs in one file
//     would be no history.
//   - ARKVORY_TICKET_KEY is judged here by the rule of package ticket, so that a wrong key is one of all faults and not a second failure after
//     them. Neither the text nor the decoded key is shown, even when it is faulty: a key with a slip is still most of a key. White space around it
//     is cut off, a line's end included: a file that became a variable has one. The published example is accepted like any key, hence the rule names the command that makes one.
//   - ARKVORY_STATE_DIR must exist. Rejected: making it, which hides a volume that is not mounted. It must be readable too, because the key's
//     file is opened through it. A link to a directory is followed, unlike the link of a file that is emptied: systemd and Kubernetes put
//     such directories behind links, and nothing in it is emptied. A relative path is taken as it is, from the working directory, which
//     this process never changes; an absolute one does not depend on who starts it. Whether the file system has hard links, and who else may
//     enter, is not judged: package ticket reports the one where it matters, and an emptyDir of Kubernetes is open to everybody by design.
//   - ARKVORY_DOWNLOAD_DRIP_BYTES_PER_SECOND never is 0, unlike the rates of bandwidth: no limit is no drip. The limit of their number switches
//     drips off.
//   - Listeners that cannot both be bound are a fault, which includes a wildcard host with the same port.
//   - A rate per principal above the rate of its direction is a warning: it limits nothing but breaks nothing.
package config
