//go:build gate

package house_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stockBytes is what each client fetches in all.
const stockBytes = 24 * mib

// goods is what a client must end up with: in its folder, files by name and hash, or one file that names the layers of an image.
type goods struct {
	files  map[string]string // path below the client's folder -> SHA-256
	layers []string          // for daemons: what the client's file "layers" must say, one digest a layer
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// noise returns size incompressible bytes that depend on the name only.
func noise(name string, size int64) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(name))).Read(content)
	return content
}

// put writes a file of the origin, below its root.
func (o *origins) put(t *testing.T, name string, content []byte) {
	t.Helper()
	write(t, filepath.Join(o.dir, name), content)
}

// write makes a file and the folders above it.
func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// sparse makes a file of size zero bytes that takes no room.
func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	write(t, path, nil)
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// seedFile is one file at /ID.bin, and a page that links to it.
func seedFile(t *testing.T, o *origins, id, _ string) goods {
	content := noise(id, stockBytes)
	o.put(t, id+".bin", content)
	o.put(t, id+".html", []byte(`<!doctype html><title>files</title><a id="get" download href="`+id+`.bin">get</a>`))
	return goods{files: map[string]string{"out/" + id + ".bin": digest(content)}}
}

// seedWheel is a Python package index with one wheel.
func seedWheel(t *testing.T, o *origins, id, _ string) goods {
	data, name := noise(id, stockBytes), "kitpkg-1.0-py3-none-any.whl"
	members := []struct{ name, text string }{
		{"kitpkg/__init__.py", ""}, {"kitpkg/data", string(data)},
		{"kitpkg-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: kitpkg\nVersion: 1.0\n"},
		{"kitpkg-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: gate\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}
	var out bytes.Buffer
	archive, record := zip.NewWriter(&out), ""
	add := func(name, text string) {
		member, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(member, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(text))
		record += name + ",sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]) + "," + fmt.Sprint(len(text)) + "\n"
	}
	for _, member := range members {
		add(member.name, member.text)
	}
	add("kitpkg-1.0.dist-info/RECORD", record+"kitpkg-1.0.dist-info/RECORD,,\n")
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	sum := digest(out.Bytes())
	o.put(t, id+"/"+name, out.Bytes())
	o.put(t, id+"/simple/kitpkg/index.html", []byte("<!doctype html><a href=\"../../"+name+"#sha256="+sum+"\">"+name+"</a>"))
	return goods{files: map[string]string{"out/" + name: sum}}
}

// seedNPM is a registry of one package, whose links name the client's address as registries make them from Host.
func seedNPM(t *testing.T, o *origins, id, address string) goods {
	data := noise(id, stockBytes)
	tarball := packed(t, "package/package.json", []byte(`{"name":"kit-npm","version":"1.0.0"}`), "package/data", data)
	sum := sha1.Sum(tarball)
	o.put(t, id+"/kit-npm/-/kit-npm-1.0.0.tgz", tarball)
	o.put(t, id+"/kit-npm.json", fmt.Appendf(nil, `{"name":"kit-npm","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"kit-npm","version":"1.0.0",`+
		`"dist":{"shasum":"%x","tarball":"http://%s/%s/kit-npm/-/kit-npm-1.0.0.tgz"}}}}`, sum, address, id))
	return goods{files: map[string]string{"node_modules/kit-npm/data": digest(data)}}
}

// packed returns a gzip of a tar of two-by-two names and contents. Nothing is compressed: the contents are noise.
func packed(t *testing.T, members ...any) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(zipped)
	for i := 0; i < len(members); i += 2 {
		content := members[i+1].([]byte)
		err = errors.Join(err, archive.WriteHeader(&tar.Header{Name: members[i].(string), Mode: 0o644, Size: int64(len(content))}))
		_, failed := archive.Write(content)
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// seedDeb is an apt repository of one package.
func seedDeb(t *testing.T, o *origins, id, _ string) goods {
	tree := openDir(t, "")
	for name, content := range map[string][]byte{
		"DEBIAN/control":     []byte("Package: kit-deb\nVersion: 1\nArchitecture: all\nMaintainer: kit <kit@localhost>\nDescription: gate\n"),
		"usr/share/kit/data": noise(id, stockBytes),
	} {
		write(t, filepath.Join(tree, name), content)
	}
	made := filepath.Join(openDir(t, ""), "kit.deb")
	if out, err := exec.Command(needTool(t, "dpkg-deb"), "-Znone", "-b", tree, made).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	deb, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	packages := fmt.Appendf(nil, "Package: kit-deb\nVersion: 1\nArchitecture: all\nMaintainer: kit <kit@localhost>\nDescription: gate\n"+
		"Filename: pool/kit-deb_1_all.deb\nSize: %d\nSHA256: %s\n", len(deb), digest(deb))
	release := fmt.Appendf(nil, "Suite: kit\nCodename: kit\nArchitectures: amd64\nComponents: main\nDate: Mon, 01 Jan 2024 00:00:00 UTC\n"+
		"SHA256:\n %s %d main/binary-amd64/Packages\n", digest(packages), len(packages))
	o.put(t, id+"/pool/kit-deb_1_all.deb", deb)
	o.put(t, id+"/dists/kit/main/binary-amd64/Packages", packages)
	o.put(t, id+"/dists/kit/Release", release)
	return goods{files: map[string]string{"cache/archives/kit-deb_1_all.deb": digest(deb)}}
}

// lfsBatch answers git-lfs batch requests: the objects are files of the origin at /ID/objects/, linked under the Host that the client used,
// as servers behind a proxy do.
type lfsBatch struct{}

func (lfsBatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var asked struct {
		Operation string
		Objects   []struct {
			OID  string `json:"oid"`
			Size int64  `json:"size"`
		}
	}
	if rest != "info/lfs/objects/batch" || json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Operation != "download" {
		http.Error(w, `{"message":"downloads only"}`, http.StatusNotFound)
		return
	}
	type link struct {
		Href string `json:"href"`
	}
	type object struct {
		OID     string          `json:"oid"`
		Size    int64           `json:"size"`
		Actions map[string]link `json:"actions"`
	}
	var answer struct {
		Transfer string   `json:"transfer"`
		Objects  []object `json:"objects"`
	}
	answer.Transfer = "basic"
	for _, one := range asked.Objects {
		answer.Objects = append(answer.Objects, object{one.OID, one.Size, map[string]link{"download": {"http://" + r.Host + "/" + id + "/objects/" + one.OID}}})
	}
	w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
	_ = json.NewEncoder(w).Encode(answer)
}

// seedLFS is a repository beside the client's folder with pointers to two objects.
func seedLFS(t *testing.T, o *origins, id, _ string) goods {
	want := goods{files: map[string]string{}}
	tree := openDir(t, "")
	write(t, filepath.Join(tree, ".gitattributes"), []byte("*.bin filter=lfs diff=lfs merge=lfs -text\n"))
	for _, name := range []string{"one.bin", "two.bin"} {
		content := noise(id+name, stockBytes/2)
		write(t, filepath.Join(tree, name), fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", digest(content), len(content)))
		o.put(t, id+"/objects/"+digest(content), content)
		want.files["copy/"+name] = digest(content)
	}
	bare := filepath.Join(o.dir, id, "repository.git")
	script := `git -c filter.lfs.clean= -c filter.lfs.process= -c filter.lfs.required=false init -q -b main . && git -c filter.lfs.clean= -c filter.lfs.process= ` +
		`-c filter.lfs.required=false add . && git -c user.name=kit -c user.email=kit@localhost commit -q -m objects && git clone -q --bare . "$0"`
	command := exec.Command("bash", "-c", script, bare)
	command.Dir = tree
	command.Env = []string{"PATH=" + toolPath(), "HOME=" + tree, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git: %v: %s", err, out)
	}
	return want
}

// unzipped is the content of a gzip.
func unzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
