package profile

import (
	"bytes"

	"github.com/arkvory/sidecar/proxy/wire"
)

// SteeringMaxBytes is the longest response that a steering request keeps its freedom for. The largest package indexes in use are
// below it; a file above it is a download, whatever name its publisher gave it.
const SteeringMaxBytes = 128 << 20

// steeringMaxBody is the longest request body of a steering request; manifests end at 4 MiB (OCI distribution specification).
const steeringMaxBody = 8 << 20

// Steering reports whether a request steers a client instead of fetching an artifact, so that it is never queued:
// HEAD and OPTIONS; of registries the base, tokens, manifests, tags, referrers and the catalogue; npm packuments and its service paths;
// git refs; the LFS batch and locks; indexes of apt, pip, yum, Alpine, Maven, Go and Helm. Blobs, tarballs, wheels and packages are
// none, and neither is a request with a body that is long or of unknown length. It decides by method, target, User-Agent and Accept and
// allocates nothing.
func Steering(h *wire.Head) bool {
	switch string(h.Method) {
	case "HEAD", "OPTIONS":
		return true
	case "GET", "POST", "PUT", "DELETE":
	default:
		return false
	}
	if h.Chunked || h.ContentLength > steeringMaxBody {
		return false
	}
	path := pathOf(h.Target)
	get := string(h.Method) == "GET"
	switch {
	case registry(path), token(h, path), lfs(h, path):
		return true
	case !get:
		return contains(path, "/-/npm/v1/security/") // audits ask by POST
	case hasSuffix(path, "/info/refs"):
		return true
	}
	return apt(path) || npm(h, path) || pip(h, path) || index(path)
}

// registry knows the paths of the OCI distribution specification below any /v2/.
func registry(path []byte) bool {
	i := bytes.Index(path, []byte("/v2/"))
	if i < 0 {
		return hasSuffix(path, "/v2")
	}
	rest := path[i+len("/v2/"):]
	if len(rest) == 0 || string(rest) == "_catalog" || string(rest) == "token" {
		return true
	}
	if hasSuffix(rest, "/tags/list") {
		return true
	}
	dir, last := lastSegment(rest)
	return len(last) > 0 && (hasSuffix(dir, "/manifests") || hasSuffix(dir, "/referrers"))
}

// token knows the endpoints that mint tokens of registries by their query, and the bare path for clients that ask by POST.
func token(h *wire.Head, path []byte) bool {
	_, last := lastSegment(path)
	switch {
	case string(last) == "token", string(last) == "auth":
		query := h.Target[len(path):]
		return string(h.Method) == "POST" || contains(query, "service=") || contains(query, "scope=")
	}
	return false
}

func lfs(h *wire.Head, path []byte) bool {
	if contains(path, "/info/lfs/") {
		return hasSuffix(path, "/objects/batch") || hasSuffix(path, "/locks") || hasSuffix(path, "/locks/verify") || hasSuffix(path, "/unlock")
	}
	return hasSuffix(path, "/objects/batch") && containsFold(h.Get(wire.Accept), "application/vnd.git-lfs+json")
}

// apt knows the indexes of Debian repositories; installer images also live below dists/ and are none.
func apt(path []byte) bool {
	dir, last := lastSegment(path)
	switch string(last) {
	case "InRelease", "Release", "Release.gpg":
		return true
	}
	for _, n := range [...]string{"Packages", "Sources"} { // flat repositories have them anywhere
		if indexName(last, n) {
			return true
		}
	}
	if !contains(path, "/dists/") {
		return false
	}
	if contains(dir, "/by-hash/") || hasSuffix(dir, "/Packages.diff") || hasSuffix(dir, "/Sources.diff") {
		return true
	}
	for _, n := range [...]string{"Contents-", "Translation-", "Components-", "Commands-", "icons-"} {
		if hasPrefix(last, n) {
			return true
		}
	}
	return false
}

// indexName reports whether last is an index name, alone or with one of the compressions that apt knows.
func indexName(last []byte, name string) bool {
	if !hasPrefix(last, name) {
		return false
	}
	switch string(last[len(name):]) {
	case "", ".gz", ".xz", ".bz2", ".lzma", ".lz4", ".zst":
		return true
	}
	return false
}

// npm knows packuments: by the media type that asks for one, by the User-Agent of npm and its kin, and by the escaped slash of a scope.
func npm(h *wire.Head, path []byte) bool {
	if hasSuffix(path, ".tgz") || hasSuffix(path, ".tar.gz") {
		return false
	}
	if containsFold(h.Get(wire.Accept), "application/vnd.npm.install-v1+json") {
		return true
	}
	userAgent := h.Get(wire.UserAgent)
	for _, n := range [...]string{"npm/", "yarn/", "pnpm/", "bun/"} {
		if hasFold(userAgent, n) {
			return true
		}
	}
	_, last := lastSegment(path)
	return len(last) > 1 && last[0] == '@' && containsFold(last, "%2f")
}

// pip knows the simple index (PEP 503, PEP 691), core metadata beside a wheel (PEP 658) and the JSON of the warehouse.
func pip(h *wire.Head, path []byte) bool {
	if hasSuffix(path, ".whl.metadata") || hasSuffix(path, ".tar.gz.metadata") {
		return true
	}
	i := bytes.Index(path, []byte("/simple/"))
	if i >= 0 {
		project := path[i+len("/simple/"):]
		project = bytes.TrimSuffix(project, []byte("/"))
		return bytes.IndexByte(project, '/') < 0 && !archive(project)
	}
	if contains(path, "/pypi/") && hasSuffix(path, "/json") || hasSuffix(path, "/simple") {
		return true
	}
	return containsFold(h.Get(wire.Accept), "application/vnd.pypi.simple") && !archive(path)
}

func archive(name []byte) bool {
	for _, s := range [...]string{".whl", ".gz", ".zip", ".bz2", ".xz", ".egg", ".tgz", ".exe", ".tar", ".iso", ".zst"} {
		if hasSuffix(name, s) {
			return true
		}
	}
	return false
}

// index knows the indexes of further package formats.
func index(path []byte) bool {
	if contains(path, "/repodata/") {
		return true
	}
	_, last := lastSegment(path)
	switch string(last) {
	case "maven-metadata.xml", "APKINDEX.tar.gz", "@latest", "index.yaml":
		return true
	}
	return hasSuffix(path, "/@v/list") || contains(path, "/@v/") && (hasSuffix(path, ".info") || hasSuffix(path, ".mod"))
}

func pathOf(target []byte) []byte {
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		return target[:i]
	}
	return target
}

// lastSegment splits a path at its last slash; dir has none at its end.
func lastSegment(path []byte) (dir, last []byte) {
	if i := bytes.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return nil, path
}

func hasPrefix(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

func hasSuffix(b []byte, s string) bool { return len(b) >= len(s) && string(b[len(b)-len(s):]) == s }

func contains(b []byte, s string) bool {
	for i := 0; i+len(s) <= len(b); i++ {
		k := bytes.IndexByte(b[i:], s[0])
		if k < 0 {
			return false
		}
		if i += k; i+len(s) <= len(b) && string(b[i:i+len(s)]) == s {
			return true
		}
	}
	return false
}

func hasFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && wire.EqualFold(b[:len(prefix)], prefix)
}

func containsFold(b []byte, s string) bool {
	for i := 0; i+len(s) <= len(b); i++ {
		if wire.EqualFold(b[i:i+len(s)], s) {
			return true
		}
	}
	return false
}
