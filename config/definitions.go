package config

import "strconv"

// definition is what the package knows about one variable besides its default, which is the tag of its field.
type definition struct {
	name string
	// rule words what check accepts, together with the rules that settle adds.
	rule string
	// example is the right side of an assignment that is accepted.
	example string
	meaning string
	// derived words a default that depends on other variables; empty where the tag holds the default.
	derived string
	check   check
	// margin holds the characters that are cut off both ends of a text before anything is judged; empty cuts nothing.
	margin string
	// hidden forbids showing the value: secret ones always, opaque ones in faults where they may carry credentials.
	secret bool
	opaque bool
}

// whole defines a whole number low..high; more is added to the rule.
func whole(name string, low, high int64, example, more, meaning string) definition {
	rule := "whole number " + strconv.FormatInt(low, 10) + ".." + strconv.FormatInt(high, 10)
	if more != "" {
		rule += ", " + more
	}
	return definition{name: name, rule: rule, example: example, meaning: meaning, check: number(name, low, high, false)}
}

// rate defines bytes per second.
func rate(name, example, meaning string) definition {
	return definition{
		name: name, rule: "0 (no limit) or whole number 65536..1099511627776", example: example, meaning: meaning,
		check: number(name, 65536, 1<<40, true),
	}
}

// words defines a choice.
func words(name, example, meaning string, accepted ...string) definition {
	return definition{name: name, rule: oneOf(accepted...), example: example, meaning: meaning, check: choice(accepted...)}
}

// from sets the wording of a default that settle computes.
func (d definition) from(derived string) definition {
	d.derived = derived
	return d
}

const hour = 3600 * 1000

// definitions lists every variable in the order of the fields of Config, which is the order of every output.
var definitions = concat(listenerDefinitions, upstreamDefinitions, principalDefinitions, transferDefinitions, sessionDefinitions)

func concat(groups ...[]definition) []definition {
	var all []definition
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}

var listenerDefinitions = []definition{
	{name: "ARKVORY_LISTEN", rule: "host:port, port 0..65535 (0 = any free one), host may be empty", example: ":8080",
		meaning: "Address of the proxy.", check: checkListen},
	{name: "ARKVORY_ADMIN_LISTEN", rule: "host:port, port 0..65535, not the address of ARKVORY_LISTEN", example: "127.0.0.1:8081",
		meaning: "Address of health, metrics and settings.", check: checkListen},
	{name: "ARKVORY_ADMIN_TOKEN", rule: "16..4096 visible ASCII characters without spaces", example: "paste-32-random-characters-here",
		meaning: "Bearer token that opens full readiness and settings beyond loopback. Secret.", check: checkToken, secret: true},
	{name: "ARKVORY_TLS_CERT_FILE", rule: "readable PEM file, together with ARKVORY_TLS_KEY_FILE", example: "/etc/arkvory/tls.crt",
		meaning: "Certificate chain of the proxy; re-read when it changes. Unset: plain HTTP.", check: checkCertificates},
	{name: "ARKVORY_TLS_KEY_FILE", rule: "readable PEM file, together with ARKVORY_TLS_CERT_FILE", example: "/etc/arkvory/tls.key",
		meaning: "Private key of that certificate.", check: checkFile},
	{name: "ARKVORY_TLS_CLIENT_CA_FILE", rule: "readable PEM file, needs ARKVORY_TLS_CERT_FILE", example: "/etc/arkvory/clients.crt",
		meaning: "Authorities whose client certificates are believed.", check: checkCertificates},
	whole("ARKVORY_MAX_REQUESTS", 1, 65536, "1024", "", "Requests in progress at once; above it 503 with Retry-After."),
	whole("ARKVORY_MAX_CONNECTIONS", 1, 1048576, "16384", "", "Open client connections."),
	whole("ARKVORY_MAX_HEADER_BYTES", 8192, 1048576, "65536", "", "Largest request head."),
	whole("ARKVORY_HEADER_TIMEOUT_MS", 1, hour, "10000", "", "Time in which a request head must arrive."),
	whole("ARKVORY_CLIENT_IDLE_TIMEOUT_SECONDS", 1, 86400, "75", "", "Life of a kept-alive client connection without a request."),
	whole("ARKVORY_STALL_TIMEOUT_MS", 1, 24*hour, "300000", "", "A direction of an exchange that moves no byte that long is ended."),
	whole("ARKVORY_DRAIN_SECONDS", 0, 86400, "25", "", "How long active transfers may go on after SIGTERM; keep it below the grace period of the platform."),
}

var upstreamDefinitions = []definition{
	{name: "ARKVORY_UPSTREAM", rule: "http or https URL of a host and an optional port, without user, path, query; a comma-separated list for equal origins", example: "https://registry.internal:5000",
		meaning: "The origin, or origins with the same objects: a request may go to any. Each name is resolved again and again, and each address is an endpoint. Unset: a built-in demo origin.", check: checkOrigins, opaque: true},
	{name: "ARKVORY_UPSTREAM_HOST", rule: "host or host:port", example: "registry.internal",
		meaning: "Replaces the Host of requests to the origin. Unset: Host passes unchanged.", check: checkHostHeader},
	{name: "ARKVORY_UPSTREAM_CA_FILE", rule: "readable PEM file", example: "/etc/arkvory/origin-ca.crt",
		meaning: "Authorities for an https origin. Unset: those of the system.", check: checkCertificates},
	words("ARKVORY_UPSTREAM_FOLLOW_REDIRECTS", "true", "Fetch the target of a redirect in the proxy, so that its bytes are queued and paced too.", "true", "false"),
	whole("ARKVORY_UPSTREAM_DIAL_TIMEOUT_MS", 1, hour, "5000", "", "Time to connect to the origin, TLS included."),
	whole("ARKVORY_UPSTREAM_RESPONSE_TIMEOUT_MS", 1, 24*hour, "300000", "", "Wait for the response head of the origin."),
	whole("ARKVORY_UPSTREAM_IDLE_TIMEOUT_SECONDS", 1, 3600, "45", "", "Life of an unused connection to the origin; keep it below the origin's own."),
	whole("ARKVORY_UPSTREAM_MAX_IDLE", 0, 1048576, "256", "at most ARKVORY_UPSTREAM_MAX_CONNECTIONS", "Unused connections kept to the origin; 0 keeps none."),
	whole("ARKVORY_UPSTREAM_MAX_CONNECTIONS", 1, 1048576, "4096", "", "All connections to the origin."),
	{name: "ARKVORY_UPSTREAM_RESOLVER", rule: "address:port of a name server", example: "127.0.0.1:53",
		meaning: "Name server for the origins' names. Unset: those of the system.", check: checkResolver},
	whole("ARKVORY_UPSTREAM_RESOLVE_SECONDS", 1, 3600, "30", "", "How often the names of the origins are resolved again."),
	{name: "ARKVORY_UPSTREAM_FLOOR", rule: "adaptive, or a whole number 1..4096", example: "8",
		meaning: "Ready connections to each endpoint: as many as the load of the last minutes asks for, or a fixed number.", check: checkFloor},
	whole("ARKVORY_UPSTREAM_FLOOR_IDLE_SECONDS", 1, 86400, "90", "", "Time without requests after which an endpoint keeps one ready connection only."),
	whole("ARKVORY_UPSTREAM_FLOOR_HOLD_SECONDS", 1, 86400, "180", "", "Time for which ready connections are kept after requests came back."),
	whole("ARKVORY_UPSTREAM_SHADOW", 0, 16, "1", "", "Reserve connections to an origin that has one address only, exchanged every 15 minutes; 0 for none."),
	whole("ARKVORY_UPSTREAM_PROBE_SECONDS", 0, 3600, "15", "", "Silence after which an endpoint is asked by a HEAD request of the proxy's own; 0 for never."),
	{name: "ARKVORY_UPSTREAM_PROBE_PATH", rule: "a path that begins with /, of visible ASCII characters", example: "/v2/",
		meaning: "What that request asks for; any answer will do.", check: checkProbePath},
	whole("ARKVORY_UPSTREAM_QUARANTINE_FAILURES", 0, 1024, "5", "", "Failures in a row after which an endpoint gets no requests until it answers a probe, as long as another endpoint lives; 0 for never."),
	whole("ARKVORY_UPSTREAM_SLOW_START_SECONDS", 0, 3600, "30", "", "Time in which the share of a new or recovered endpoint grows from a tenth to the whole; 0 for at once."),
	{name: "ARKVORY_UPSTREAM_FALLBACK", rule: "http or https URL like that of an origin, and none of ARKVORY_UPSTREAM", example: "https://mirror.internal:5000",
		meaning: "Second origin with the same objects, used as ARKVORY_UPSTREAM_FALLBACK_POLICY says.", check: checkOrigin, opaque: true},
	words("ARKVORY_UPSTREAM_FALLBACK_POLICY", "on-outage", "When the fallback serves: never, while no origin can be reached, or instead of them.", "off", "on-outage", "always"),
	whole("ARKVORY_UPSTREAM_FALLBACK_AFTER_SECONDS", 1, 86400, "10", "", "Outage after which on-outage goes to the fallback."),
	whole("ARKVORY_UPSTREAM_FALLBACK_BACK_SECONDS", 1, 86400, "30", "", "Time for which an origin must be reachable again before on-outage goes back."),
	whole("ARKVORY_UPSTREAM_WAIT_MS", 0, 60000, "3000", "", "How long a request waits while no origin can be reached, before it is answered with 502; an attempt to connect that began after it came is always awaited."),
	whole("ARKVORY_UPSTREAM_STALL_SECONDS", 0, 3600, "15", "", "A download that could be resumed and gets no byte from its origin for so long goes on from another connection; 0 for never."),
	words("ARKVORY_UPSTREAM_RESUME", "false", "Whether a large download that breaks at the origin goes on from the missing byte, on another connection, where the origin gives a strong validator.", "true", "false"),
	{name: "ARKVORY_VIA", rule: "a word of header token characters, or host:port", example: "arkvory",
		meaning: "Name added to Via. Unset: no Via, since nginx origins stop compressing when they see one.", check: checkVia},
}

var principalDefinitions = []definition{
	{name: "ARKVORY_TRUSTED_PROXIES", rule: "comma list of addresses and CIDR networks", example: "10.0.0.0/8,2001:db8::1",
		meaning: "Peers whose forwarding and identity headers are believed.", check: checkNetworks},
	{name: "ARKVORY_PRINCIPAL_FROM", example: "signature,authorization,address",
		rule:    "ordered comma list of header:NAME (needs ARKVORY_TRUSTED_PROXIES), client-cert, cookie:NAME, signature, authorization, address",
		meaning: "Where the identity of a request is looked for; the first hit wins.", check: checkPrincipalSources},
	{name: "ARKVORY_PRINCIPALS_FILE", rule: "readable YAML file, format below", example: "/etc/arkvory/principals.yaml",
		meaning: "YAML map from keys, users, subjects, networks to principals and classes; re-read when it changes.", check: checkFile},
	{name: "ARKVORY_CLIENTS_FILE", rule: "readable YAML file, format below", example: "/etc/arkvory/clients.yaml",
		meaning: "YAML additions to the built-in table of client behaviour; re-read when it changes.", check: checkFile},
}

var transferDefinitions = []definition{
	whole("ARKVORY_MAX_UPLOADS", 1, 32, "8", "", "Active upload operations."),
	whole("ARKVORY_MAX_DOWNLOADS", 1, 256, "16", "", "Active downloads that are admitted per request."),
	whole("ARKVORY_MAX_UPLOADS_PER_PRINCIPAL", 1, 32, "4", "at most ARKVORY_MAX_UPLOADS", "Active upload operations of one principal.").
		from("min(4, ARKVORY_MAX_UPLOADS)"),
	whole("ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL", 1, 256, "4", "at most ARKVORY_MAX_DOWNLOADS",
		"Active downloads of one principal; for sessions its share while another principal heads the queue.").
		from("min(4, ARKVORY_MAX_DOWNLOADS)"),
	whole("ARKVORY_TRANSFER_QUEUE_LIMIT", 1, 65536, "64", "", "Requests that wait in one direction, and requests held for a session."),
	whole("ARKVORY_TRANSFER_QUEUE_PER_PRINCIPAL", 1, 65536, "8", "at most ARKVORY_TRANSFER_QUEUE_LIMIT", "Requests of one principal that wait in one direction."),
	whole("ARKVORY_TRANSFER_QUEUE_TIMEOUT_MS", 1, hour, "20000", "", "Longest wait for a place."),
	whole("ARKVORY_DOWNLOAD_ADMISSION_MIN_BYTES", 0, 1<<40, "1048576", "at most ARKVORY_DOWNLOAD_SESSION_MIN_BYTES", "Responses up to this size need no place."),
	whole("ARKVORY_UPLOAD_IDLE_TIMEOUT_MS", 1, 1800000, "30000", "at most ARKVORY_UPLOAD_DEADLINE_MS", "Silence of a sender that ends its upload; pauses of the proxy do not count."),
	whole("ARKVORY_UPLOAD_DEADLINE_MS", 1, 1800000, "1800000", "", "Longest upload operation after its admission."),
	rate("ARKVORY_UPLOAD_BYTES_PER_SECOND", "67108864", "Rate of all uploads."),
	rate("ARKVORY_DOWNLOAD_BYTES_PER_SECOND", "67108864", "Rate of all downloads."),
	rate("ARKVORY_UPLOAD_BYTES_PER_SECOND_PER_PRINCIPAL", "16777216", "Rate of all uploads of one principal."),
	rate("ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL", "16777216", "Rate of all downloads of one principal."),
}

var sessionDefinitions = []definition{
	words("ARKVORY_DOWNLOAD_STRATEGY", "smallest-first", "The order in which whole downloads get slots; shared has none and admits each request on its own.",
		string(StrategyOrdered), string(StrategySmallestFirst), string(StrategyFairSojourn), string(StrategyShared)),
	whole("ARKVORY_MAX_DOWNLOAD_SESSIONS", 1, 1024, "16", "", "Slots: download sessions at once.").from("ARKVORY_MAX_DOWNLOADS"),
	whole("ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC", 1, 1024, "64", "at least ARKVORY_MAX_DOWNLOAD_SESSIONS",
		"Slots up to which more open, one at a time, while somebody waits and the link is not full; equal to ARKVORY_MAX_DOWNLOAD_SESSIONS: none.").
		from("ARKVORY_MAX_DOWNLOAD_SESSIONS"),
	whole("ARKVORY_DOWNLOAD_RESERVE", 0, 1023, "1", "below ARKVORY_MAX_DOWNLOAD_SESSIONS", "Slots only for class interactive.").
		from("1 from four slots on, else 0"),
	{name: "ARKVORY_DOWNLOAD_WEIGHTS", rule: "comma list of class=weight, classes interactive, release, bulk, background, each weight 1..1000",
		example: "interactive=8,bulk=2", meaning: "Shares of the classes in the free slots; classes left out keep their default.", check: checkWeights},
	whole("ARKVORY_DOWNLOAD_SESSION_MIN_BYTES", 0, 1<<40, "16777216", "", "Objects above this size are sessions."),
	whole("ARKVORY_DOWNLOAD_IDLE_SECONDS", 1, 3600, "30", "", "Pause that frees a slot; the arrival is kept for 10 minutes more."),
	whole("ARKVORY_DOWNLOAD_AGING_MINUTES", 0, 10080, "15", "", "Wait that lifts a session one class, never above release; 0 switches it off."),
	words("ARKVORY_DOWNLOAD_PREEMPT", "false", "Whether a protocol client's download makes way between two ranges for one of a higher class or of a principal below its share.",
		"true", "false"),
	whole("ARKVORY_DOWNLOAD_RANGES_PER_SESSION", 1, 64, "4", "", "Responses of one session at once."),
	whole("ARKVORY_DOWNLOAD_QUEUE_LIMIT", 1, 1048576, "65536", "at least ARKVORY_MAX_DOWNLOAD_SESSIONS", "Sessions known at once, active and waiting."),
	whole("ARKVORY_DOWNLOAD_QUEUE_PER_PRINCIPAL", 1, 1048576, "4096", "at most ARKVORY_DOWNLOAD_QUEUE_LIMIT", "Sessions of one principal."),
	whole("ARKVORY_DOWNLOAD_HOLD_SECONDS", 0, maxHoldSeconds, "20", "", "How long a plain client's request is held for its turn; 0 answers at once.").
		from("ARKVORY_TRANSFER_QUEUE_TIMEOUT_MS in seconds, at most 25"),
	words("ARKVORY_DOWNLOAD_BUNDLES", "false", "Whether the layers of one image, and the objects of one git-lfs batch, that a plain client fetches share one place in the queue.",
		"true", "false"),
	whole("ARKVORY_DOWNLOAD_DRIP_LIMIT", 0, 65536, "4096", "",
		"Plain clients that get the head and a few real bytes of their object while they wait beyond the hold; 0 refuses them instead."),
	whole("ARKVORY_DOWNLOAD_DRIP_BYTES_PER_SECOND", 1, 65536, "1024", "", "The most that each of them gets; all together get at most 1 % of the band."),
	{name: "ARKVORY_DATABASE_URL", rule: "postgres://user:password@host:port/database with libpq parameters, in particular sslmode; special characters of the password percent-encoded",
		example: "postgres://arkvory:PASSWORD@db.internal:5432/arkvory?sslmode=verify-full",
		meaning: "PostgreSQL database that processes share: live settings and the ticket key. It may be down at the start. Unset: ARKVORY_STATE_DIR keeps them. Secret.",
		check:   checkDatabase, margin: whiteSpace, secret: true},
	{name: "ARKVORY_TICKET_KEY", rule: "32 random bytes as 64 hex digits or in base64; `openssl rand -hex 32` makes them",
		example: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		meaning: "Key that signs queue tickets. Unset: the one in ARKVORY_DATABASE_URL, else the file ticket.key in ARKVORY_STATE_DIR, else a random one that no restart survives. Secret.",
		check:   checkKey, margin: whiteSpace, secret: true},
	{name: "ARKVORY_STATE_DIR", rule: "existing directory, or a link to one, that can be read and written to", example: "/var/lib/arkvory",
		meaning: "Directory of what outlives the process: the ticket key and the live settings where no database has them, and whether a queue stood when it ended. Unset: nothing does.", check: checkFolder},
	whole("ARKVORY_RESTART_GRACE_SECONDS", 0, 600, "30", "",
		"How long after a restart clients with a ticket come before newcomers; 0 switches it off."),
	whole("ARKVORY_OBJECT_CACHE_ENTRIES", 1, 1048576, "65536", "", "Objects whose size and validator are remembered."),
	whole("ARKVORY_OBJECT_CACHE_SECONDS", 1, 86400, "600", "", "How long they are remembered."),
	{name: "ARKVORY_DECISION_LOG", rule: "path of a file, no link, in a directory that can be written to; emptied at the start", example: "/var/lib/arkvory/decisions.log",
		meaning: "File of all events and decisions of the queue, for a replay. Names are hashed, without a key: as confidential as an access log. Unset: none.", check: checkWritable},
	words("ARKVORY_LOG_LEVEL", "info", "Least level that is logged.", "debug", "info", "warn", "error"),
	words("ARKVORY_LOG_FORMAT", "json", "auto is pretty on a terminal and json elsewhere.", "auto", "json", "pretty"),
}
