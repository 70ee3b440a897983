package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy"
	"github.com/arkvory/sidecar/proxy/identity"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/admission"
)

// settings translates the configuration. The returned function starts what re-reads files and returns what stops it.
func settings(cfg config.Config, log zerolog.Logger) (proxy.Settings, func() func(), error) {
	strategy, err := queue.ParseStrategy(string(cfg.DownloadStrategy))
	if err != nil {
		return proxy.Settings{}, nil, err
	}
	w := cfg.DownloadWeights
	limit := func(n int64) bucket.Limit { return bucket.Limit{BytesPerSecond: n} }
	set := proxy.Settings{
		Upstreams: cfg.Upstream, Fallback: cfg.UpstreamFallback, Resolver: cfg.UpstreamResolver, Pool: poolSettings(cfg), ProbePath: cfg.UpstreamProbePath,
		UpstreamStall: cfg.UpstreamStall, UpstreamWait: cfg.UpstreamWait, UpstreamHost: cfg.UpstreamHost, UpstreamCAFile: cfg.UpstreamCAFile, FollowRedirects: cfg.UpstreamFollowRedirects,
		DialTimeout: cfg.UpstreamDialTimeout, ResponseTimeout: cfg.UpstreamResponseTimeout, UpstreamIdle: cfg.UpstreamIdleTimeout,
		UpstreamMaxIdle: cfg.UpstreamMaxIdle, UpstreamMaxOpen: cfg.UpstreamMaxConnections, Via: cfg.Via,
		MaxRequests: cfg.MaxRequests, MaxConnections: cfg.MaxConnections, MaxHeaderBytes: cfg.MaxHeaderBytes, HeaderTimeout: cfg.HeaderTimeout,
		ClientIdle: cfg.ClientIdleTimeout, StallTimeout: cfg.StallTimeout,
		Identity:    identitySettings(cfg),
		ClientsFile: cfg.ClientsFile,
		Uploads: admission.Settings{Capacity: cfg.MaxUploads, PerPrincipal: cfg.MaxUploadsPerPrincipal, WaitLimit: cfg.TransferQueueLimit,
			WaitPerPrincipal: cfg.TransferQueuePerPrincipal, Timeout: cfg.TransferQueueTimeout},
		Downloads: admission.Settings{Capacity: cfg.MaxDownloads, PerPrincipal: cfg.MaxDownloadsPerPrincipal, WaitLimit: cfg.TransferQueueLimit,
			WaitPerPrincipal: cfg.TransferQueuePerPrincipal, Timeout: cfg.TransferQueueTimeout},
		UploadIdleTimeout: cfg.UploadIdleTimeout, UploadDeadline: cfg.UploadDeadline, AdmissionMinBytes: cfg.DownloadAdmissionMinBytes,
		UploadTotal: limit(cfg.UploadBytesPerSecond), UploadEach: limit(cfg.UploadBytesPerSecondPerPrincipal),
		DownloadTotal: limit(cfg.DownloadBytesPerSecond), DownloadEach: limit(cfg.DownloadBytesPerSecondPerPrincipal),
		Policy: queue.Policy{
			Strategy: strategy, Sessions: cfg.MaxDownloadSessions, Reserve: cfg.DownloadReserve,
			PerPrincipal: min(cfg.MaxDownloadsPerPrincipal, cfg.MaxDownloadSessions),
			Weights:      [queue.Classes]int{w.Interactive, w.Release, w.Bulk, w.Background}, SessionMinBytes: cfg.DownloadSessionMinBytes,
			IdleFor: cfg.DownloadIdle, AgingEvery: cfg.DownloadAging, RangesPerSession: cfg.DownloadRangesPerSession,
			QueueLimit: cfg.DownloadQueueLimit, QueuePerPrincipal: cfg.DownloadQueuePerPrincipal,
			Preempt: cfg.DownloadPreempt, SessionsElastic: cfg.MaxDownloadSessionsElastic, BandBytesPerSecond: cfg.DownloadBytesPerSecond,
		},
		Hold: cfg.DownloadHold, HoldLimit: cfg.TransferQueueLimit, HoldPerPrincipal: max(cfg.TransferQueuePerPrincipal, cfg.TransferQueueLimit/2),
		Resume: cfg.UpstreamResume, Bundles: cfg.DownloadBundles, DripLimit: cfg.DownloadDripLimit, DripBytesPerSecond: cfg.DownloadDripBytesPerSecond,
		StateDir: cfg.StateDir, Grace: cfg.RestartGrace, Gather: queue.GatherFor,
		CacheEntries: cfg.ObjectCacheEntries, CacheLife: cfg.ObjectCacheLife, Log: log,
	}
	kept, err := openRecords(cfg)
	if err != nil {
		return set, nil, err
	}
	set.Records = kept
	if cfg.TLSCertFile == "" {
		return set, func() func() { return kept.begin(log) }, nil
	}
	certs := &keyPair{cert: cfg.TLSCertFile, key: cfg.TLSKeyFile}
	if err := certs.load(); err != nil {
		return set, nil, err
	}
	set.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certs.get}
	if cfg.TLSClientCAFile != "" {
		pem, err := os.ReadFile(cfg.TLSClientCAFile)
		if err != nil {
			return set, nil, fmt.Errorf("cannot read ARKVORY_TLS_CLIENT_CA_FILE: %w", err)
		}
		set.TLS.ClientCAs = x509.NewCertPool()
		if !set.TLS.ClientCAs.AppendCertsFromPEM(pem) {
			return set, nil, fmt.Errorf("cannot use ARKVORY_TLS_CLIENT_CA_FILE %s: no PEM certificate in it", cfg.TLSClientCAFile)
		}
		set.TLS.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return set, func() func() {
		stopCerts, stopStore := certs.watch(log), kept.begin(log)
		return func() { stopCerts(); stopStore() }
	}, nil
}

func identitySettings(cfg config.Config) identity.Settings {
	return identity.Settings{From: sources(cfg.PrincipalFrom), TrustedProxies: cfg.TrustedProxies, PrincipalsFile: cfg.PrincipalsFile}
}

func sources(list config.PrincipalSources) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.String()
	}
	return out
}

// keyPair is the listener's certificate, read again when its files change.
type keyPair struct {
	cert, key string
	pair      atomic.Pointer[tls.Certificate]
	seen      [2]stamp
}

type stamp struct {
	size int64
	time time.Time
}

func stampOf(path string) stamp {
	st, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{st.Size(), st.ModTime()}
}

func (k *keyPair) load() error {
	seen := [2]stamp{stampOf(k.cert), stampOf(k.key)}
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	if err != nil {
		return fmt.Errorf("cannot use ARKVORY_TLS_CERT_FILE with ARKVORY_TLS_KEY_FILE: %w", err)
	}
	k.seen = seen
	k.pair.Store(&pair)
	return nil
}

func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.pair.Load(), nil }

// reloadEvery is how often the files are looked at.
const reloadEvery = 5 * time.Second

// watch re-reads changed files; a pair that does not fit is reported and the last good one stays.
func (k *keyPair) watch(log zerolog.Logger) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(reloadEvery)
		defer t.Stop()
		bad := [2]stamp{}
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			now := [2]stamp{stampOf(k.cert), stampOf(k.key)}
			if now == k.seen || now == bad {
				continue
			}
			if err := k.load(); err != nil {
				bad = now
				log.Warn().Err(err).Msg("the changed certificate is not used, the last good one stays")
				continue
			}
			log.Info().Msg("certificate re-read")
		}
	}()
	return func() { close(done); <-ended }
}
