package config

import (
	"cmp"
	"crypto/tls"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// maxHoldSeconds is the longest silence that every common client bears with a margin: the least patient give up at 30 s.
const maxHoldSeconds = 25

// settle fills in the defaults that depend on other variables and checks the rules between variables. The order matters:
// a bound is settled before what it bounds.
func (l *load) settle() {
	c := &l.config
	setUnless(l, "ARKVORY_MAX_UPLOADS_PER_PRINCIPAL", &c.MaxUploadsPerPrincipal, min(4, c.MaxUploads), "ARKVORY_MAX_UPLOADS")
	setUnless(l, "ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL", &c.MaxDownloadsPerPrincipal, min(4, c.MaxDownloads), "ARKVORY_MAX_DOWNLOADS")
	setUnless(l, "ARKVORY_MAX_DOWNLOAD_SESSIONS", &c.MaxDownloadSessions, c.MaxDownloads, "ARKVORY_MAX_DOWNLOADS")
	setUnless(l, "ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC", &c.MaxDownloadSessionsElastic, c.MaxDownloadSessions, "ARKVORY_MAX_DOWNLOAD_SESSIONS")
	reserve := 0
	if c.MaxDownloadSessions >= 4 {
		reserve = 1
	}
	setUnless(l, "ARKVORY_DOWNLOAD_RESERVE", &c.DownloadReserve, reserve, "ARKVORY_MAX_DOWNLOAD_SESSIONS")
	seconds := (c.TransferQueueTimeout + time.Second - 1).Truncate(time.Second)
	setUnless(l, "ARKVORY_DOWNLOAD_HOLD_SECONDS", &c.DownloadHold, min(seconds, maxHoldSeconds*time.Second), "ARKVORY_TRANSFER_QUEUE_TIMEOUT_MS")

	atMost(l, "ARKVORY_MAX_UPLOADS_PER_PRINCIPAL", &c.MaxUploadsPerPrincipal, "ARKVORY_MAX_UPLOADS", c.MaxUploads)
	atMost(l, "ARKVORY_MAX_DOWNLOADS_PER_PRINCIPAL", &c.MaxDownloadsPerPrincipal, "ARKVORY_MAX_DOWNLOADS", c.MaxDownloads)
	atMost(l, "ARKVORY_TRANSFER_QUEUE_PER_PRINCIPAL", &c.TransferQueuePerPrincipal, "ARKVORY_TRANSFER_QUEUE_LIMIT", c.TransferQueueLimit)
	atMost(l, "ARKVORY_DOWNLOAD_QUEUE_PER_PRINCIPAL", &c.DownloadQueuePerPrincipal, "ARKVORY_DOWNLOAD_QUEUE_LIMIT", c.DownloadQueueLimit)
	atMost(l, "ARKVORY_UPLOAD_IDLE_TIMEOUT_MS", &c.UploadIdleTimeout, "ARKVORY_UPLOAD_DEADLINE_MS", c.UploadDeadline)
	atMost(l, "ARKVORY_DOWNLOAD_ADMISSION_MIN_BYTES", &c.DownloadAdmissionMinBytes, "ARKVORY_DOWNLOAD_SESSION_MIN_BYTES", c.DownloadSessionMinBytes)
	atMost(l, "ARKVORY_UPSTREAM_MAX_IDLE", &c.UpstreamMaxIdle, "ARKVORY_UPSTREAM_MAX_CONNECTIONS", c.UpstreamMaxConnections)
	if l.sound("ARKVORY_DOWNLOAD_RESERVE", "ARKVORY_MAX_DOWNLOAD_SESSIONS") && c.DownloadReserve >= c.MaxDownloadSessions {
		l.fault("ARKVORY_DOWNLOAD_RESERVE", "is not below ARKVORY_MAX_DOWNLOAD_SESSIONS, which is "+strconv.Itoa(c.MaxDownloadSessions))
	}
	if l.sound("ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC", "ARKVORY_MAX_DOWNLOAD_SESSIONS") && c.MaxDownloadSessionsElastic < c.MaxDownloadSessions {
		l.fault("ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC", "is below ARKVORY_MAX_DOWNLOAD_SESSIONS, which is "+strconv.Itoa(c.MaxDownloadSessions)+
			": elastic slots come on top; raise the one or lower the other")
	}
	if l.sound("ARKVORY_DOWNLOAD_QUEUE_LIMIT", "ARKVORY_MAX_DOWNLOAD_SESSIONS") && c.DownloadQueueLimit < c.MaxDownloadSessions {
		l.fault("ARKVORY_DOWNLOAD_QUEUE_LIMIT", "is below ARKVORY_MAX_DOWNLOAD_SESSIONS, which is "+strconv.Itoa(c.MaxDownloadSessions)+
			": it counts the active sessions too; raise the one or lower the other")
	}
	l.settleFallback()
	l.settleDrips()
	l.settleListeners()
	l.settleDecisions()
	l.settlePrincipals()
	l.settleRates()
}

// settleFallback looks at the second origin beside the first ones.
func (l *load) settleFallback() {
	c := &l.config
	if c.UpstreamFallback == nil {
		if c.UpstreamFallbackPolicy != "off" && l.sound("ARKVORY_UPSTREAM_FALLBACK", "ARKVORY_UPSTREAM_FALLBACK_POLICY") {
			l.fault("ARKVORY_UPSTREAM_FALLBACK_POLICY", "is "+c.UpstreamFallbackPolicy+" while ARKVORY_UPSTREAM_FALLBACK is unset")
		}
		return
	}
	for _, one := range c.Upstream {
		if l.sound("ARKVORY_UPSTREAM_FALLBACK", "ARKVORY_UPSTREAM") && strings.EqualFold(one.String(), c.UpstreamFallback.String()) {
			l.fault("ARKVORY_UPSTREAM_FALLBACK", "is one of ARKVORY_UPSTREAM")
		}
	}
}

// setUnless gives a field its computed default unless the variable was given. A default computed from a faulty variable
// is as good as faulty: it must not raise a second complaint.
func setUnless[T any](l *load, name string, field *T, value T, source string) {
	if l.given[name] != "" && !l.faulty[name] {
		return
	}
	*field = value
	if l.faulty[source] {
		l.faulty[name] = true
	}
}

// atMost keeps a field within a bound: an own default is lowered, a given value above the bound is a fault.
func atMost[T cmp.Ordered](l *load, name string, field *T, boundName string, bound T) {
	switch {
	case *field <= bound:
	case l.given[name] == "":
		*field = bound
	case l.sound(name, boundName):
		l.fault(name, "is above "+boundName+", which is "+l.effective(boundName)+"; lower the one or raise the other")
	}
}

// sound reports whether none of the variables has a fault.
func (l *load) sound(names ...string) bool {
	for _, name := range names {
		if l.faulty[name] {
			return false
		}
	}
	return true
}

// effective returns the present value of a variable as an operator would write it.
func (l *load) effective(name string) string { return l.config.text(name) }

// settleListeners checks the addresses and the TLS files.
func (l *load) settleListeners() {
	c := &l.config
	if l.sound("ARKVORY_LISTEN", "ARKVORY_ADMIN_LISTEN") && collide(c.Listen, c.AdminListen) {
		l.fault("ARKVORY_ADMIN_LISTEN", "cannot be bound next to ARKVORY_LISTEN, which is "+c.Listen+"; give it another port")
	}
	certGiven, keyGiven := l.given["ARKVORY_TLS_CERT_FILE"] != "", l.given["ARKVORY_TLS_KEY_FILE"] != ""
	switch {
	case certGiven && !keyGiven:
		l.fault("ARKVORY_TLS_KEY_FILE", "is missing while ARKVORY_TLS_CERT_FILE is set")
	case keyGiven && !certGiven:
		l.fault("ARKVORY_TLS_CERT_FILE", "is missing while ARKVORY_TLS_KEY_FILE is set")
	case certGiven && l.sound("ARKVORY_TLS_CERT_FILE", "ARKVORY_TLS_KEY_FILE"):
		if _, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile); err != nil {
			l.fault("ARKVORY_TLS_CERT_FILE", "does not form a pair with ARKVORY_TLS_KEY_FILE: "+plainReason(err))
		}
	}
	if l.given["ARKVORY_TLS_CLIENT_CA_FILE"] != "" && !certGiven {
		l.fault("ARKVORY_TLS_CLIENT_CA_FILE", "is set without ARKVORY_TLS_CERT_FILE: plain HTTP has no client certificates")
	}
}

// settleDrips leaves half of the connections to those who do not wait: a fed client keeps its own for hours.
func (l *load) settleDrips() {
	const name, bound = "ARKVORY_DOWNLOAD_DRIP_LIMIT", "ARKVORY_MAX_CONNECTIONS"
	c := &l.config
	switch most := c.MaxConnections / 2; {
	case !l.sound(name, bound) || c.DownloadDripLimit <= most:
	case l.given[name] == "":
		c.DownloadDripLimit = most
	default:
		l.warn(name, "is above half of "+bound+", which is "+strconv.Itoa(c.MaxConnections)+": waiting clients may take the connections that running downloads need")
	}
}

// stateFiles begin the names of what the process keeps in ARKVORY_STATE_DIR.
var stateFiles = [...]string{"ticket.key", "queue.state", "settings.json", "settings.lock"}

// settleDecisions keeps the decision log from being a file with another purpose: it is emptied at the start, and the ticket key with it.
func (l *load) settleDecisions() {
	const name = "ARKVORY_DECISION_LOG"
	c := &l.config
	if c.DecisionLog == "" || !l.sound(name) {
		return
	}
	for _, other := range [...]struct{ name, path string }{
		{"ARKVORY_TLS_CERT_FILE", c.TLSCertFile}, {"ARKVORY_TLS_KEY_FILE", c.TLSKeyFile}, {"ARKVORY_TLS_CLIENT_CA_FILE", c.TLSClientCAFile},
		{"ARKVORY_UPSTREAM_CA_FILE", c.UpstreamCAFile}, {"ARKVORY_PRINCIPALS_FILE", c.PrincipalsFile}, {"ARKVORY_CLIENTS_FILE", c.ClientsFile},
	} {
		if other.path != "" && sameFile(c.DecisionLog, other.path) {
			l.fault(name, "is the file of "+other.name+", which would be emptied")
			return
		}
	}
	if c.StateDir == "" || !l.sound("ARKVORY_STATE_DIR") {
		return
	}
	within := sameFile(filepath.Dir(c.DecisionLog), c.StateDir)
	for _, kept := range stateFiles {
		if within && strings.HasPrefix(filepath.Base(c.DecisionLog), kept) || sameFile(c.DecisionLog, filepath.Join(c.StateDir, kept)) {
			l.fault(name, "is what this process keeps in ARKVORY_STATE_DIR as "+kept+"; give it another name")
			return
		}
	}
}

// sameFile reports whether two paths lead to one file that exists.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// settlePrincipals checks that each source of identity can be believed, and warns of those that never hit.
func (l *load) settlePrincipals() {
	const name = "ARKVORY_PRINCIPAL_FROM"
	list := l.config.PrincipalFrom
	if l.sound(name, "ARKVORY_TRUSTED_PROXIES") && list.Uses(KindHeader) && len(l.config.TrustedProxies) == 0 {
		l.fault(name, "believes a header while ARKVORY_TRUSTED_PROXIES is unset: any client could send it")
	}
	if list.Uses(KindClientCert) && l.given["ARKVORY_TLS_CLIENT_CA_FILE"] == "" {
		l.warn(name, "client-cert never hits while ARKVORY_TLS_CLIENT_CA_FILE is unset")
	}
	for i, one := range list {
		if one.Kind == KindAddress && i < len(list)-1 {
			l.warn(name, "entries after address are never reached: every request has an address")
		}
	}
}

// settleRates warns of limits that limit nothing or that others make unreachable.
func (l *load) settleRates() {
	c := &l.config
	if c.UploadBytesPerSecond > 0 && c.UploadBytesPerSecondPerPrincipal > c.UploadBytesPerSecond {
		l.warn("ARKVORY_UPLOAD_BYTES_PER_SECOND_PER_PRINCIPAL", "is above ARKVORY_UPLOAD_BYTES_PER_SECOND and so limits nothing")
	}
	if c.DownloadBytesPerSecond > 0 && c.DownloadBytesPerSecondPerPrincipal > c.DownloadBytesPerSecond {
		l.warn("ARKVORY_DOWNLOAD_BYTES_PER_SECOND_PER_PRINCIPAL", "is above ARKVORY_DOWNLOAD_BYTES_PER_SECOND and so limits nothing")
	}
	slots := "ARKVORY_MAX_DOWNLOAD_SESSIONS"
	if c.MaxDownloadSessionsElastic > c.MaxDownloadSessions {
		slots = "ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC"
	}
	most := max(c.MaxDownloadSessions, c.MaxDownloadSessionsElastic)
	if wanted := most*c.DownloadRangesPerSession + c.MaxDownloads + c.MaxUploads + c.TransferQueueLimit; c.MaxRequests < wanted {
		l.warn("ARKVORY_MAX_REQUESTS", "is below the "+strconv.Itoa(wanted)+" requests that "+slots+" times "+
			"ARKVORY_DOWNLOAD_RANGES_PER_SESSION, ARKVORY_MAX_DOWNLOADS, ARKVORY_MAX_UPLOADS and ARKVORY_TRANSFER_QUEUE_LIMIT allow together")
	}
}
