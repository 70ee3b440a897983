package profile

import (
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

func FuzzSteering(f *testing.F) {
	f.Add("GET", "/v2/a/manifests/b?c")
	f.Add("POST", "//@%2f/simple/")
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
	})
}
