package config

import (
	"net/netip"
	"net/url"
	"time"
)

// Config is the whole configuration of one process, as Load returns it: every value inside its rule and every
// default filled in. It is a plain value and is never changed after Load, so any number of goroutines may read it.
//
// The env tag names the variable. The envDefault tag is the default as an operator would write it, in the unit of the
// variable's name; a field without one is empty by default or gets its default from other fields (see settle).
type Config struct {
	// Listeners.

	// Listen is the host:port of the proxy itself; an empty host means every address, port 0 a free port.
	Listen string `env:"ARKVORY_LISTEN" envDefault:":8080"`
	// AdminListen is the host:port of health, metrics and settings.
	AdminListen string `env:"ARKVORY_ADMIN_LISTEN" envDefault:"127.0.0.1:8081"`
	// AdminToken opens the full readiness answer to callers that are not on loopback; empty when unset.
	AdminToken Secret `env:"ARKVORY_ADMIN_TOKEN"`
	// TLSCertFile and TLSKeyFile are PEM paths; both are empty (plain HTTP) or both name a pair that loads.
	TLSCertFile string `env:"ARKVORY_TLS_CERT_FILE"`
	TLSKeyFile  string `env:"ARKVORY_TLS_KEY_FILE"`
	// TLSClientCAFile is the PEM path of the authorities whose client certificates are accepted; empty asks for none.
	TLSClientCAFile string `env:"ARKVORY_TLS_CLIENT_CA_FILE"`
	// MaxRequests bounds the requests in progress, MaxConnections the open client connections.
	MaxRequests    int `env:"ARKVORY_MAX_REQUESTS" envDefault:"1024"`
	MaxConnections int `env:"ARKVORY_MAX_CONNECTIONS" envDefault:"16384"`
	// MaxHeaderBytes bounds a request head, HeaderTimeout the time in which it must arrive.
	MaxHeaderBytes int           `env:"ARKVORY_MAX_HEADER_BYTES" envDefault:"65536"`
	HeaderTimeout  time.Duration `env:"ARKVORY_HEADER_TIMEOUT_MS" envDefault:"10000"`
	// ClientIdleTimeout closes a kept-alive client connection on which no request starts.
	ClientIdleTimeout time.Duration `env:"ARKVORY_CLIENT_IDLE_TIMEOUT_SECONDS" envDefault:"75"`
	// StallTimeout ends a direction of a running exchange that moves no byte that long.
	StallTimeout time.Duration `env:"ARKVORY_STALL_TIMEOUT_MS" envDefault:"300000"`
	// Drain bounds how long active transfers may go on after the first stop signal; 0 cuts them at once.
	Drain time.Duration `env:"ARKVORY_DRAIN_SECONDS" envDefault:"25"`

	// Upstream.

	// Upstream are the origins, all equal: scheme http or https and a host with an optional port, nothing else. It is empty when the
	// variable is unset, which asks for the built-in demo origin. Readers must not modify it.
	Upstream Origins `env:"ARKVORY_UPSTREAM"`
	// UpstreamHost replaces the Host of each request when not empty (host or host:port).
	UpstreamHost string `env:"ARKVORY_UPSTREAM_HOST"`
	// UpstreamCAFile is the PEM path of the authorities for an https origin; empty means those of the system.
	UpstreamCAFile string `env:"ARKVORY_UPSTREAM_CA_FILE"`
	// UpstreamFollowRedirects makes the proxy fetch the target of a 3xx itself.
	UpstreamFollowRedirects bool `env:"ARKVORY_UPSTREAM_FOLLOW_REDIRECTS" envDefault:"false"`
	// UpstreamDialTimeout bounds connecting (TCP and TLS), UpstreamResponseTimeout the wait for a response head,
	// UpstreamIdleTimeout the life of an unused kept-alive connection.
	UpstreamDialTimeout     time.Duration `env:"ARKVORY_UPSTREAM_DIAL_TIMEOUT_MS" envDefault:"5000"`
	UpstreamResponseTimeout time.Duration `env:"ARKVORY_UPSTREAM_RESPONSE_TIMEOUT_MS" envDefault:"300000"`
	UpstreamIdleTimeout     time.Duration `env:"ARKVORY_UPSTREAM_IDLE_TIMEOUT_SECONDS" envDefault:"45"`
	// UpstreamMaxIdle bounds the kept-alive connections (0 keeps none), UpstreamMaxConnections all of them.
	UpstreamMaxIdle        int `env:"ARKVORY_UPSTREAM_MAX_IDLE" envDefault:"256"`
	UpstreamMaxConnections int `env:"ARKVORY_UPSTREAM_MAX_CONNECTIONS" envDefault:"4096"`
	// UpstreamResolver is the ip:port of the name server for the origins, empty for the system's; UpstreamResolve how often names are resolved again.
	UpstreamResolver string        `env:"ARKVORY_UPSTREAM_RESOLVER"`
	UpstreamResolve  time.Duration `env:"ARKVORY_UPSTREAM_RESOLVE_SECONDS" envDefault:"30"`
	// UpstreamFloor is "adaptive", or the number of ready connections to each endpoint; the times are those of the adaptive floor.
	UpstreamFloor     string        `env:"ARKVORY_UPSTREAM_FLOOR" envDefault:"adaptive"`
	UpstreamFloorIdle time.Duration `env:"ARKVORY_UPSTREAM_FLOOR_IDLE_SECONDS" envDefault:"90"`
	UpstreamFloorHold time.Duration `env:"ARKVORY_UPSTREAM_FLOOR_HOLD_SECONDS" envDefault:"180"`
	// UpstreamShadow are reserve connections to the endpoint of an origin that has one only.
	UpstreamShadow int `env:"ARKVORY_UPSTREAM_SHADOW" envDefault:"1"`
	// UpstreamProbe is the silence after which an endpoint is asked by HEAD UpstreamProbePath, 0 for never.
	UpstreamProbe     time.Duration `env:"ARKVORY_UPSTREAM_PROBE_SECONDS" envDefault:"15"`
	UpstreamProbePath string        `env:"ARKVORY_UPSTREAM_PROBE_PATH" envDefault:"/"`
	// UpstreamQuarantine is the number of failures in a row that take an endpoint out of use while another lives, 0 for never; UpstreamSlowStart how long the share
	// of a new or recovered endpoint grows.
	UpstreamQuarantine int           `env:"ARKVORY_UPSTREAM_QUARANTINE_FAILURES" envDefault:"5"`
	UpstreamSlowStart  time.Duration `env:"ARKVORY_UPSTREAM_SLOW_START_SECONDS" envDefault:"30"`
	// UpstreamFallback is the second origin, nil for none; the policy is off, on-outage or always.
	UpstreamFallback       *url.URL      `env:"ARKVORY_UPSTREAM_FALLBACK"`
	UpstreamFallbackPolicy string        `env:"ARKVORY_UPSTREAM_FALLBACK_POLICY" envDefault:"off"`
	UpstreamFallbackAfter  time.Duration `env:"ARKVORY_UPSTREAM_FALLBACK_AFTER_SECONDS" envDefault:"10"`
	UpstreamFallbackBack   time.Duration `env:"ARKVORY_UPSTREAM_FALLBACK_BACK_SECONDS" envDefault:"30"`
	// UpstreamWait is how long a request waits for an origin while none can be reached.
	UpstreamWait time.Duration `env:"ARKVORY_UPSTREAM_WAIT_MS" envDefault:"3000"`
	// UpstreamStall is how long a body that can be resumed may stand still at the origin, 0 for as long as any transfer.
	UpstreamStall time.Duration `env:"ARKVORY_UPSTREAM_STALL_SECONDS" envDefault:"15"`
	// UpstreamResume goes on with a body that breaks at the origin, by Range and If-Range on another connection.
	UpstreamResume bool `env:"ARKVORY_UPSTREAM_RESUME" envDefault:"true"`
	// Via is the name the proxy adds to the Via header; empty adds none.
	Via string `env:"ARKVORY_VIA"`

	// Principals.

	// TrustedProxies are the masked networks whose forwarding headers and identity headers are believed; IPv4 networks
	// are in IPv4 form, so compare them with netip.Addr.Unmap.
	TrustedProxies []netip.Prefix `env:"ARKVORY_TRUSTED_PROXIES"`
	// PrincipalFrom is the ordered, non-empty list of places to look for an identity.
	PrincipalFrom PrincipalSources `env:"ARKVORY_PRINCIPAL_FROM" envDefault:"signature,authorization,address"`
	// PrincipalsFile and ClientsFile are paths of readable YAML files, or empty. Their contents are checked by their readers.
	PrincipalsFile string `env:"ARKVORY_PRINCIPALS_FILE"`
	ClientsFile    string `env:"ARKVORY_CLIENTS_FILE"`

	// Admission per request.

	// MaxUploads and MaxDownloads are the places of each direction; MaxUploadsPerPrincipal and MaxDownloadsPerPrincipal
	// what one principal may hold of them, the latter also its share of the slots while another heads the queue.
	MaxUploads               int `env:"ARKVORY_MAX_UPLOADS" envDefault:"8"`
	MaxDownloads             int `env:"ARKVORY_MAX_DOWNLOADS" envDefault:"16"`
	MaxUploadsPerPrincipal   int `env:"ARKVORY_MAX_UPLOADS_PER_PRINCIPAL"`
	MaxDownloadsPerPrincipal int `env:"ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL"`
	// TransferQueueLimit bounds the waiting requests of a direction (and the held ones), TransferQueuePerPrincipal those of
	// one principal, TransferQueueTimeout each wait.
	TransferQueueLimit        int           `env:"ARKVORY_TRANSFER_QUEUE_LIMIT" envDefault:"64"`
	TransferQueuePerPrincipal int           `env:"ARKVORY_TRANSFER_QUEUE_PER_PRINCIPAL" envDefault:"8"`
	TransferQueueTimeout      time.Duration `env:"ARKVORY_TRANSFER_QUEUE_TIMEOUT_MS" envDefault:"20000"`
	// DownloadAdmissionMinBytes: responses up to this size need no place.
	DownloadAdmissionMinBytes int64 `env:"ARKVORY_DOWNLOAD_ADMISSION_MIN_BYTES" envDefault:"1048576"`
	// UploadIdleTimeout bounds the silence of a sender, UploadDeadline a whole upload; idle <= deadline.
	UploadIdleTimeout time.Duration `env:"ARKVORY_UPLOAD_IDLE_TIMEOUT_MS" envDefault:"30000"`
	UploadDeadline    time.Duration `env:"ARKVORY_UPLOAD_DEADLINE_MS" envDefault:"1800000"`

	// Bandwidth, in bytes per second; 0 is unlimited.

	// The rates of each direction, and of one principal in each direction.
	UploadBytesPerSecond               int64 `env:"ARKVORY_UPLOAD_BYTES_PER_SECOND" envDefault:"0"`
	DownloadBytesPerSecond             int64 `env:"ARKVORY_DOWNLOAD_BYTES_PER_SECOND" envDefault:"0"`
	UploadBytesPerSecondPerPrincipal   int64 `env:"ARKVORY_UPLOAD_BYTES_PER_SECOND_PER_PRINCIPAL" envDefault:"0"`
	DownloadBytesPerSecondPerPrincipal int64 `env:"ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL" envDefault:"0"`

	// Sessions and their queue.

	// DownloadStrategy says how large downloads are admitted, MaxDownloadSessions how many slots there are.
	DownloadStrategy    Strategy `env:"ARKVORY_DOWNLOAD_STRATEGY" envDefault:"ordered"`
	MaxDownloadSessions int      `env:"ARKVORY_MAX_DOWNLOAD_SESSIONS"`
	// MaxDownloadSessionsElastic is how many slots there may be while the link is not full; MaxDownloadSessions switches
	// elastic slots off.
	MaxDownloadSessionsElastic int `env:"ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC"`
	// DownloadReserve is the number of slots only interactive sessions may take; below MaxDownloadSessions.
	DownloadReserve int `env:"ARKVORY_DOWNLOAD_RESERVE"`
	// DownloadWeights are the shares of the classes in the free slots.
	DownloadWeights Weights `env:"ARKVORY_DOWNLOAD_WEIGHTS" envDefault:"interactive=8,release=4,bulk=2,background=1"`
	// DownloadSessionMinBytes: an object above this size is a session; never below DownloadAdmissionMinBytes.
	DownloadSessionMinBytes int64 `env:"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES" envDefault:"16777216"`
	// DownloadIdle is the pause that frees a slot.
	DownloadIdle time.Duration `env:"ARKVORY_DOWNLOAD_IDLE_SECONDS" envDefault:"30"`
	// DownloadAging is the wait that lifts a session one class; 0 switches aging off.
	DownloadAging time.Duration `env:"ARKVORY_DOWNLOAD_AGING_MINUTES" envDefault:"15"`
	// DownloadPreempt lets a protocol client's session give its slot up between two ranges.
	DownloadPreempt bool `env:"ARKVORY_DOWNLOAD_PREEMPT" envDefault:"true"`
	// DownloadRangesPerSession bounds the responses of one session, DownloadQueueLimit all sessions, active and waiting,
	// DownloadQueuePerPrincipal those of one principal.
	DownloadRangesPerSession  int `env:"ARKVORY_DOWNLOAD_RANGES_PER_SESSION" envDefault:"4"`
	DownloadQueueLimit        int `env:"ARKVORY_DOWNLOAD_QUEUE_LIMIT" envDefault:"65536"`
	DownloadQueuePerPrincipal int `env:"ARKVORY_DOWNLOAD_QUEUE_PER_PRINCIPAL" envDefault:"4096"`
	// DownloadHold is how long a plain client's request may wait inside the proxy; 0 answers at once.
	DownloadHold time.Duration `env:"ARKVORY_DOWNLOAD_HOLD_SECONDS"`
	// DownloadBundles lets the layers of one image, or the objects of one git-lfs batch, share one place in the queue.
	DownloadBundles bool `env:"ARKVORY_DOWNLOAD_BUNDLES" envDefault:"true"`
	// DownloadDripLimit is how many plain clients may be fed a few bytes while they wait beyond the hold, 0 none;
	// DownloadDripBytesPerSecond is the most that one of them gets.
	DownloadDripLimit          int   `env:"ARKVORY_DOWNLOAD_DRIP_LIMIT" envDefault:"4096"`
	DownloadDripBytesPerSecond int64 `env:"ARKVORY_DOWNLOAD_DRIP_BYTES_PER_SECOND" envDefault:"1024"`
	// DatabaseURL is the connection string of the PostgreSQL database that several processes share, with its password; empty shares nothing.
	DatabaseURL Secret `env:"ARKVORY_DATABASE_URL"`
	// TicketKey signs the queue tickets: 32 bytes in hex or base64; empty takes the one in the database, the file in StateDir, else a random one.
	TicketKey Secret `env:"ARKVORY_TICKET_KEY"`
	// StateDir is the directory of what outlives the process; empty keeps nothing.
	StateDir string `env:"ARKVORY_STATE_DIR"`
	// RestartGrace is how long after a restart those with a ticket come before newcomers; 0 switches it off.
	RestartGrace time.Duration `env:"ARKVORY_RESTART_GRACE_SECONDS" envDefault:"30"`
	// ObjectCacheEntries and ObjectCacheLife bound the memory of sizes and validators.
	ObjectCacheEntries int           `env:"ARKVORY_OBJECT_CACHE_ENTRIES" envDefault:"65536"`
	ObjectCacheLife    time.Duration `env:"ARKVORY_OBJECT_CACHE_SECONDS" envDefault:"600"`

	// Logs.

	// DecisionLog is the path of the file that takes the queue's events and decisions; empty writes none. Its directory can be
	// written to; the file is made, or emptied, by whoever writes it.
	DecisionLog string `env:"ARKVORY_DECISION_LOG"`
	// LogLevel is debug, info, warn or error; LogFormat is auto, json or pretty.
	LogLevel  string `env:"ARKVORY_LOG_LEVEL" envDefault:"info"`
	LogFormat string `env:"ARKVORY_LOG_FORMAT" envDefault:"auto"`
}
