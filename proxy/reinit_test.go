package proxy

import (
	"crypto/tls"
	"os"
	"sync/atomic"
	"testing"
)

// TestP8_ASignalReadsTheAuthoritiesOfRedirectsToo: the host of redirects gets another certificate, and the operator puts its authority into the file and sends SIGHUP.
func TestP8_ASignalReadsTheAuthoritiesOfRedirectsToo(t *testing.T) {
	t.Parallel()
	first, _, firstFile, _ := authority(t)
	second, _, secondFile, _ := authority(t)
	var now atomic.Pointer[tls.Certificate]
	now.Store(&first)
	bucket := newTLSOrigin(t, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return now.Load(), nil }},
		func(k *call) { k.reply(200, "", "from the bucket") })
	o := newOrigin(t, func(k *call) { k.reply(302, "Location: "+bucket.url()+"/b\r\n", "") })
	b := start(t, o.url(), func(s *Settings) { s.FollowRedirects, s.UpstreamCAFile = true, firstFile })
	if a := b.once("GET", "/x"); a.body != "from the bucket" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	now.Store(&second)
	text, err := os.ReadFile(secondFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(firstFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.p.Reinit(); err != nil {
		t.Fatal(err)
	}
	before := bucket.accepted()
	if a := b.once("GET", "/x"); a.body != "from the bucket" || bucket.accepted() != before+1 {
		t.Errorf("%d %s, %d new connections", a.StatusCode, a.body, bucket.accepted()-before)
	}
}
