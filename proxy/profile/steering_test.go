package profile

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/wire"
)

func TestX1_SteeringRequestsAreNeverQueued(t *testing.T) {
	const (
		npmAgent = "User-Agent: npm/11.0.0 node/v20"
		npmMime  = "Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"
		lfsMime  = "Accept: application/vnd.git-lfs+json"
		pipMime  = "Accept: application/vnd.pypi.simple.v1+json, text/html; q=0.1"
	)
	for _, c := range []struct {
		method, target string
		line           string
		want           bool
	}{
		{"HEAD", "/big.iso", "", true},
		{"OPTIONS", "*", "", true},
		{"GET", "/big.iso", "", false},
		{"GET", "/v2/", "", true},
		{"GET", "/v2", "", true},
		{"GET", "/v2/_catalog?n=10", "", true},
		{"GET", "/v2/token?service=a", "", true},
		{"GET", "/v2/lib/app/manifests/latest", "", true},
		{"PUT", "/v2/lib/app/manifests/latest", "Content-Length: 1000", true},
		{"PUT", "/v2/lib/app/manifests/latest", "Content-Length: 9000000", false},
		{"PUT", "/v2/lib/app/manifests/latest", "Transfer-Encoding: chunked", false},
		{"DELETE", "/v2/lib/app/manifests/latest", "", true},
		{"GET", "/api/docker/repo/v2/app/manifests/1", "", true},
		{"GET", "/v2/lib/app/tags/list?n=5", "", true},
		{"GET", "/v2/lib/app/referrers/sha256:0", "", true},
		{"GET", "/v2/lib/app/blobs/sha256:0", "", false},
		{"POST", "/v2/lib/app/blobs/uploads/", "", false},
		{"PATCH", "/v2/lib/app/blobs/uploads/1", "", false},
		{"GET", "/v2/manifests/blobs/sha256:0", "", false},
		{"GET", "/files/manifests/big.iso", "", false}, // no registry
		{"GET", "/token?service=registry&scope=repository:a:pull", "", true},
		{"GET", "/jwt/auth?service=registry", "", true},
		{"POST", "/oauth2/token", "Content-Length: 100", true},
		{"POST", "/oauth2/token", "Content-Length: 100000000", false},
		{"GET", "/files/token", "", false},
		{"GET", "/r.git/info/refs?service=git-upload-pack", "", true},
		{"POST", "/r.git/git-upload-pack", "Content-Length: 100", false},
		{"POST", "/r.git/info/lfs/objects/batch", "Content-Length: 100", true},
		{"POST", "/objects/batch", lfsMime, true},
		{"POST", "/objects/batch", "", false},
		{"GET", "/r.git/info/lfs/locks?limit=1", "", true},
		{"POST", "/r.git/info/lfs/locks/verify", "", true},
		{"POST", "/r.git/info/lfs/locks/7/unlock", "", true},
		{"GET", "/r.git/info/lfs/objects/0a", "", false},
		{"GET", "/name", npmAgent, true},
		{"GET", "/name", npmMime, true},
		{"GET", "/@scope%2fname", "", true},
		{"GET", "/api/packages/me/npm/@scope%2Fname", "", true},
		{"GET", "/-/package/@scope%2fname/dist-tags", npmAgent, true},
		{"POST", "/-/npm/v1/security/advisories/bulk", npmAgent, true},
		{"PUT", "/@scope%2fname", npmAgent, false},
		{"GET", "/name/-/name-1.0.0.tgz", npmAgent, false},
		{"GET", "/@scope%2fname/-/name-1.0.0.tgz", npmMime, false},
		{"GET", "/debian/dists/bookworm/InRelease", "", true},
		{"GET", "/debian/dists/bookworm/main/binary-amd64/Packages.xz", "", true},
		{"GET", "/debian/dists/bookworm/main/binary-amd64/by-hash/SHA256/0a", "", true},
		{"GET", "/debian/dists/bookworm/main/binary-amd64/Packages.diff/Index", "", true},
		{"GET", "/debian/dists/bookworm/main/i18n/Translation-en.bz2", "", true},
		{"GET", "/debian/dists/bookworm/main/Contents-amd64.gz", "", true},
		{"GET", "/flat/Packages.gz", "", true},
		{"GET", "/flat/Packages.iso", "", false},
		{"GET", "/debian/dists/bookworm/main/installer-amd64/current/images/netboot/mini.iso", "", false},
		{"GET", "/by-hash/SHA256/0a", "", false},
		{"GET", "/debian/pool/main/a/a_1_amd64.deb", "", false},
		{"GET", "/simple/", "", true},
		{"GET", "/pypi/simple/requests/", "", true},
		{"GET", "/simple/requests", "", true},
		{"GET", "/simple/requests/requests-1.whl", "", false},
		{"GET", "/simple/big.iso", "", false},
		{"GET", "/idx/requests", pipMime, true},
		{"GET", "/idx/requests.tar.gz", pipMime, false},
		{"GET", "/packages/requests-1.whl.metadata", "", true},
		{"GET", "/pypi/requests/json", "", true},
		{"GET", "/packages/requests-1.whl", "", false},
		{"GET", "/repo/repodata/repomd.xml", "", true},
		{"GET", "/alpine/main/x86_64/APKINDEX.tar.gz", "", true},
		{"GET", "/m/@v/list", "", true},
		{"GET", "/m/@v/v1.0.0.zip", "", false},
		{"GET", "/org/lib/maven-metadata.xml", "", true},
		{"GET", "/org/lib/1/lib-1.jar", "", false},
		{"GET", "/big.iso?x=/v2/a/manifests/b", "", false}, // the query names nothing
		{"TRACE", "/v2/", "", false},
	} {
		lines := []string{}
		if c.line != "" {
			lines = append(lines, c.line)
		}
		if got := Steering(request(t, c.method, c.target, lines...)); got != c.want {
			t.Errorf("%s %s %s: %v", c.method, c.target, c.line, got)
		}
	}
}

func TestX1_APathOfTwoReadingsIsNoIndex(t *testing.T) {
	const npmAgent = "User-Agent: npm/11.0.0 node/v20"
	for _, target := range []string{
		"/v2/a/manifests/..%2f..%2f..%2fbig.iso", "/v2/a/manifests/%2e%2e/%2e%2e/%2E%2E/tags/list", "/v2/a/manifests/x/../../../../v2/manifests/y",
		"/files/big.iso%2fmanifests/v2/a/manifests/b", "/v2/a/manifests/..%5cbig", "/v2/a/manifests/..\\big", "/v2/../v2/a/manifests/b", "/v2/./a/manifests/b",
		"/simple/..%2fbig", "/simple/..", "/dists/by-hash/../../pool/big.deb", "/r/%2e./info/refs", "/big.iso%00/info/refs", "/big.iso%3f/v2/a/manifests/b",
		"/big.iso%23/repodata/x", "/big.iso#/repodata/x", "/big.iso;/repodata/x", "/v2/a/manifests/..;", "/%252e%252e/repodata/x", "/repodata/%zz", "/repodata/%2",
		"/@scope%2f..", "/@%2fname", "/@scope%2f", "/@scope%2f..%2fbig", "/@scope%2fa%2fb", "/@..%2fname", "/@scope%5cname", "/../@scope%2fname", "/@a%2fb/c",
		"/@scope%2fbig.iso", "/@scope%2fname-1.0.0.tgz", "/scope%2fname", "/-/package/@a%2f..%2fb/dist-tags", "/big.iso/@a%2fb/dist-tags",
	} {
		if n := SteeringLimit(request(t, "GET", target, npmAgent)); n != 0 {
			t.Errorf("%s steers, up to %d bytes", target, n)
		}
	}
	if n := SteeringLimit(request(t, "POST", "/@scope%2fname")); n != 0 {
		t.Errorf("a POST to a packument steers, up to %d bytes", n)
	}
}

func TestX1_TheClientsWordCountsForLessThanThePath(t *testing.T) {
	const (
		npmAgent = "User-Agent: pnpm/9.0.0"
		pipMime  = "Accept: application/vnd.pypi.simple.v1+json"
		npmMime  = "Accept: application/vnd.npm.install-v1+json"
	)
	for _, c := range []struct {
		target, line string
		want         int64
	}{
		{"/v2/a/manifests/b", "", SteeringMaxBytes},
		{"/v2/a/manifests/sha256:0%3A1", "", SteeringMaxBytes}, // an escape that names nothing else
		{"/dists/stable/main/Contents-amd64.gz", npmAgent, SteeringMaxBytes},
		{"/simple/requests/", pipMime, SteeringMaxBytes},
		{"/socket.io", npmAgent, SteeringLooseMaxBytes},
		{"/@scope/name/1.0.0-rc.1+b", npmAgent, SteeringLooseMaxBytes},
		{"/name", npmMime, SteeringLooseMaxBytes},
		{"/@scope%2fname", "", SteeringLooseMaxBytes},
		{"/-/package/@scope%2Fname/dist-tags", "", SteeringLooseMaxBytes},
		{"/idx/requests/", pipMime, SteeringLooseMaxBytes},
		{"/big.iso", npmAgent, 0}, {"/big.ISO", npmMime, 0}, {"/a/model.safetensors", npmAgent, 0}, {"/disk.qcow2", pipMime, 0}, {"/a.deb", pipMime, 0},
		{"/big%20file", npmAgent, 0}, {"/", npmAgent, 0}, {"/.hidden", npmAgent, 0}, {"/dir/", npmAgent, 0},
		{"/download/@org/name/1.0.0/0a1b", npmAgent, 0}, {"/" + strings.Repeat("a", 215), npmAgent, 0}, {"/a:b", npmAgent, 0},
		{"/name", "", 0}, {"/name", "User-Agent: curl/8", 0}, {"/name", "User-Agent: my npm/1", 0},
	} {
		lines := []string{}
		if c.line != "" {
			lines = append(lines, c.line)
		}
		h := request(t, "GET", c.target, lines...)
		if got := SteeringLimit(h); got != c.want || Steering(h) != (c.want > 0) {
			t.Errorf("%s %s: %d bytes, want %d", c.target, c.line, got, c.want)
		}
	}
	if n := SteeringLimit(request(t, "HEAD", "/big.iso")); n != SteeringMaxBytes {
		t.Errorf("HEAD: %d", n)
	}
}

func TestB4_SteeringAllocatesNothing(t *testing.T) {
	heads := []*wire.Head{
		request(t, "GET", "/@scope%2fname"), request(t, "GET", "/a/b.tar.ZST", "User-Agent: npm/1"), request(t, "GET", "/a/%41/name", "User-Agent: npm/1"),
		request(t, "GET", "/idx/x/", "Accept: application/vnd.pypi.simple.v1+json"), request(t, "GET", "/dists/x/by-hash/y"),
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, h := range heads {
			SteeringLimit(h)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzSteering(f *testing.F) {
	f.Add("GET", "/v2/a/manifests/b?c")
	f.Add("POST", "//@%2f/simple/")
	f.Add("GET", "/@a%2fb/dist-tags")
	f.Add("GET", "/v2/%2e%2e/manifests/..;x")
	table, err := New(Settings{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		h := &wire.Head{}
		if _, err := h.ParseRequest([]byte(method+" "+target+" HTTP/1.1\r\nHost: h\r\n\r\n"), 0); err != nil {
			return
		}
		p := table.Match(h)
		if got := Steering(h); method == "HEAD" && !got || p.Name != "other" {
			t.Fatalf("%s %s: %v %+v", method, target, got, p)
		}
		if method != "GET" || !Steering(h) {
			return
		}
		// an oracle for paths of one reading: decoding and cleaning leaves the segments as they are
		path := string(pathOf(h.Target))
		if once, err := url.PathUnescape(path); err != nil {
			t.Fatalf("%s steers with a broken escape", target)
		} else if at := strings.Count(once, "/") - strings.Count(path, "/"); at > 1 || at == 1 && !strings.Contains(path, "/@") || strings.ContainsAny(once, "\\;#%\x00") {
			t.Fatalf("%s steers and decodes to %q", target, once)
		} else if slices.ContainsFunc(strings.Split(once, "/"), func(s string) bool { return s == "." || s == ".." }) {
			t.Fatalf("%s steers with a dot segment in %q", target, once)
		}
	})
}
