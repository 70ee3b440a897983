package object

import (
	"testing"

	"github.com/arkvory/sidecar/proxy/wire"
)

func TestX5_RepositoryOfAnObject(t *testing.T) {
	const lfs, apt = "git-lfs/3.8.1 (GitHub; linux amd64)", "Debian APT-HTTP/1.3 (2.6.1)"
	for _, c := range []struct{ target, userAgent, want string }{
		{"/v2/team/app/blobs/sha256:00", "docker/20.10", "r.example/v2/team/app"},
		{"/v2/app/blobs/sha256:00", "", "r.example/v2/app"},
		{"/v2/a/blobs/uploads/blobs/sha256:00", "", "r.example/v2/a"},
		{"/v2/team/app/manifests/latest", "", ""},
		{"/v2/blobs", "", ""},
		{"/team/app.git/info/lfs/objects/00", "curl/8", "r.example/team/app.git"},
		{"/team/app.git/info/lfs/objects/00?token=1", lfs, "r.example/team/app.git"},
		{"/store/objects/aabb", lfs, "r.example/store/objects"},
		{"/store/objects/aa/bb/aabb", lfs, "r.example/store/objects"},
		{"/aa/bb/cc/aabb", lfs, "r.example/aa"},
		{"/aabb", lfs, "r.example"},
		{"/debian/pool/main/a/a_1.deb", apt, "r.example/debian"},
		{"/pool/main/a/a_1.deb", apt, "r.example"},
		{"/debian/dists/stable/Contents-amd64.gz", apt, ""},
		{"/debian/pool/main/a/a_1.deb", "curl/8", ""},
		{"/file?x=/v2/a/blobs/b", "", ""},
	} {
		var h wire.Head
		text := "GET " + c.target + " HTTP/1.1\r\nHost: r.example\r\n"
		if c.userAgent != "" {
			text += "User-Agent: " + c.userAgent + "\r\n"
		}
		if _, err := h.ParseRequest([]byte(text+"\r\n"), 0); err != nil {
			t.Fatalf("%s: %v", c.target, err)
		}
		name := Name(&h, nil)
		if got := string(Repository(&h, name)); got != c.want {
			t.Errorf("%s by %q: repository %q, want %q", c.target, c.userAgent, got, c.want)
		}
		if n := testing.AllocsPerRun(10, func() { Repository(&h, name) }); n != 0 {
			t.Errorf("%s: %v allocations", c.target, n)
		}
	}
}
