package profile

import (
	"bytes"
	"strings"

	"github.com/arkvory/sidecar/proxy/wire"
)

// Longest responses, in bytes, that a steering request keeps its freedom for; a file above is a download, whatever its name.
const (
	// SteeringMaxBytes holds for paths that only indexes and services have. The largest package indexes in use are below it.
	SteeringMaxBytes = 128 << 20
	// SteeringLooseMaxBytes holds where nothing but the client's word tells an index from a file: its User-Agent or Accept.
	SteeringLooseMaxBytes = 16 << 20
)

// steeringMaxBody is the longest request body of a steering request; manifests end at 4 MiB (OCI distribution specification).
const steeringMaxBody = 8 << 20

// Steering reports whether a request steers a client instead of fetching an artifact, so that it is never queued:
// HEAD and OPTIONS; of registries the base, tokens, manifests, tags, referrers and the catalogue; npm packuments and its service paths;
// git refs; the LFS batch and locks; indexes of apt, pip, yum, Alpine, Maven, Go and Helm. Blobs, tarballs, wheels and packages are
// none, and neither is a request with a body that is long or of unknown length, nor one whose path an origin could read in two ways. It decides
// by method, target, User-Agent and Accept and allocates nothing. How long the response may be, [SteeringLimit] says.
func Steering(h *wire.Head) bool { return SteeringLimit(h) > 0 }

// SteeringLimit returns how many bytes the response of a steering request may have before it counts as a download: [SteeringMaxBytes] when
// the path decides, [SteeringLooseMaxBytes] when only the client's User-Agent or Accept does, 0 for a request that steers nothing. It
// allocates nothing.
func SteeringLimit(h *wire.Head) int64 {
	switch string(h.Method) {
	case "HEAD", "OPTIONS":
		return SteeringMaxBytes
	case "GET", "POST", "PUT", "DELETE":
	default:
		return 0
	}
	if h.Chunked || h.ContentLength > steeringMaxBody {
		return 0
	}
	path := pathOf(h.Target)
	get := string(h.Method) == "GET"
	if !plain(path) {
		if get && scoped(path) {
			return SteeringLooseMaxBytes
		}
		return 0
	}
	switch {
	case registry(path), token(h, path), lfs(h, path):
		return SteeringMaxBytes
	case !get:
		if contains(path, "/-/npm/v1/security/") { // audits ask by POST
			return SteeringMaxBytes
		}
		return 0
	case hasSuffix(path, "/info/refs"), apt(path), pip(path), index(path):
		return SteeringMaxBytes
	case npm(h, path), containsFold(h.Get(wire.Accept), "application/vnd.pypi.simple") && packageName(bytes.TrimSuffix(path, slash)):
		return SteeringLooseMaxBytes
	}
	return 0
}

var slash = []byte("/")

// plain reports whether every origin reads a path in the same way: it has no dot segment, no path parameter, fragment or backslash, and no
// percent escape that hides one of these, a slash, another percent sign or a NUL. A path such as /files/v2/a/manifests/..%2f..%2fbig.iso
// has the look of a manifest and may name a file.
func plain(path []byte) bool {
	start := 0 // of the segment
	for i := 0; i <= len(path); i++ {
		c := byte('/')
		if i < len(path) {
			c = path[i]
		}
		switch c {
		case '/':
			if s := path[start:i]; len(s) == 1 && s[0] == '.' || len(s) == 2 && s[0] == '.' && s[1] == '.' {
				return false
			}
			start = i + 1
		case '\\', ';', '#':
			return false
		case '%':
			d, ok := escape(path[i:])
			if !ok {
				return false
			}
			switch d {
			case '/', '\\', '.', '%', ';', '#', '?', 0:
				return false
			}
		}
	}
	return true
}

// escape decodes the percent escape that b begins with.
func escape(b []byte) (byte, bool) {
	if len(b) < 3 {
		return 0, false
	}
	hi, lo := hexDigits[b[1]], hexDigits[b[2]]
	return (hi-1)<<4 | (lo - 1), hi > 0 && lo > 0
}

// hexDigits has the value of each hexadecimal digit and one, 0 for all other bytes.
var hexDigits = func() (t [256]byte) {
	for i, c := range "0123456789abcdef" {
		t[c] = byte(i + 1)
		if c >= 'a' {
			t[c-'a'+'A'] = byte(i + 1)
		}
	}
	return
}()

// scoped knows the one escaped slash that a client's protocol asks for: npm writes the packument of a scoped package as /@scope%2fname, and its tags
// as /-/package/@scope%2fname/dist-tags.
func scoped(path []byte) bool {
	if i := len(path) - len("/dist-tags"); i > 0 && hasSuffix(path, "/dist-tags") && contains(path, "/-/package/@") {
		path = path[:i]
	}
	dir, last := lastSegment(path)
	if len(last) < 2 || last[0] != '@' || !plain(dir) {
		return false
	}
	i := bytes.IndexByte(last, '%')
	if i < 0 {
		return false
	}
	c, ok := escape(last[i:])
	return ok && c == '/' && packageName(last[1:i]) && packageName(last[i+3:])
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

// npm knows packuments by the media type that asks for one and by the User-Agent of npm and its kin. Both are the client's word, so that what has
// the look of a file is none; some registries serve tarballs without a suffix below download/.
func npm(h *wire.Head, path []byte) bool {
	if !packageName(path) || contains(path, "/download/") {
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
	return false
}

// packageName reports whether the last segment of a path looks like the name or the version of a package and not like that of a file to
// download. The names of npm end at 214 bytes, those of the Python index are shorter.
func packageName(path []byte) bool {
	_, last := lastSegment(path)
	if len(last) == 0 || len(last) > 214 || last[0] == '.' {
		return false
	}
	for _, c := range last {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' || c == '~' || c == '@' || c == '+') {
			return false
		}
	}
	return !archive(last)
}

// pip knows the simple index (PEP 503, PEP 691), core metadata beside a wheel (PEP 658) and the JSON of the warehouse.
func pip(path []byte) bool {
	if hasSuffix(path, ".whl.metadata") || hasSuffix(path, ".tar.gz.metadata") {
		return true
	}
	i := bytes.Index(path, []byte("/simple/"))
	if i >= 0 {
		project := path[i+len("/simple/"):]
		project = bytes.TrimSuffix(project, []byte("/"))
		return bytes.IndexByte(project, '/') < 0 && !archive(project)
	}
	return contains(path, "/pypi/") && hasSuffix(path, "/json") || hasSuffix(path, "/simple")
}

// archive reports whether a name ends like that of an archive, an image or another file to download.
func archive(name []byte) bool {
	i := bytes.LastIndexByte(name, '.')
	if i < 0 || len(name)-i > maxSuffix {
		return false
	}
	var b [maxSuffix]byte
	n := 0
	for _, c := range name[i+1:] {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		b[n] = c
		n++
	}
	return archives[string(b[:n])]
}

const maxSuffix = 12

// archives are the suffixes of files that no client takes for an index. Suffixes that packages use in their names (.js, .io, .net) are not
// among them; what is not listed is bounded by SteeringLooseMaxBytes.
var archives = func() map[string]bool {
	t := map[string]bool{}
	for _, s := range strings.Fields("whl gz zip bz2 bz xz egg tgz tbz tbz2 txz exe tar iso zst lz lz4 lzma br z 7z rar cab arj cpio squashfs " +
		"deb udeb rpm drpm apk jar war ear aar nupkg snupkg gem crate conda phar snap flatpak appimage msi msix pkg dmg vsix crx xpi " +
		"img qcow qcow2 vmdk vdi vhd vhdx ova ovf wim raw bin rom dump bak mp4 mkv mov avi mp3 flac wav pdf psd " +
		"gguf safetensors onnx pt pth ckpt npz npy h5 parquet arrow avro orc tfrecord sqlite db mdb") {
		t[s] = true
	}
	return t
}()

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
