//go:build gate

package house_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// image is one image of a registry. Layers are gzip of tar, of one file each.
type image struct {
	layers []string // digests of the layers as they travel, sha256:...
	diffs  []string // digests of the layers unpacked, as daemons name them
	sizes  []int64
}

// blob is a descriptor of the OCI image specification.
type blob struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// pushImage makes an image with layers of these sizes out of noise and pushes it to a registry as REPOSITORY:v1.
func pushImage(t *testing.T, registry, repository string, sizes ...int64) image {
	t.Helper()
	var made image
	type root struct {
		Type  string   `json:"type"`
		Diffs []string `json:"diff_ids"`
	}
	var config struct {
		Architecture string              `json:"architecture"`
		OS           string              `json:"os"`
		Config       map[string][]string `json:"config"`
		Root         root                `json:"rootfs"`
	}
	var manifest struct {
		Version   int    `json:"schemaVersion"`
		MediaType string `json:"mediaType"`
		Config    blob   `json:"config"`
		Layers    []blob `json:"layers"`
	}
	for i, size := range sizes {
		name := "layer" + strconv.Itoa(i)
		layer := packed(t, name, noise(repository+name, size))
		pushed := pushBlob(t, registry, repository, "application/vnd.oci.image.layer.v1.tar+gzip", layer)
		pushed.Annotations = map[string]string{"org.opencontainers.image.title": name} // what `oras pull` saves it as
		manifest.Layers = append(manifest.Layers, pushed)
		made.layers, made.sizes = append(made.layers, pushed.Digest), append(made.sizes, int64(len(layer)))
		made.diffs = append(made.diffs, "sha256:"+digest(unzipped(t, layer)))
	}
	config.Architecture, config.OS, config.Config = "amd64", "linux", map[string][]string{"Cmd": {"/layer0"}}
	config.Root = root{"layers", made.diffs}
	manifest.Version, manifest.MediaType = 2, "application/vnd.oci.image.manifest.v1+json"
	manifest.Config = pushBlob(t, registry, repository, "application/vnd.oci.image.config.v1+json", encoded(t, config))
	send(t, http.MethodPut, "http://"+registry+"/v2/"+repository+"/manifests/v1", manifest.MediaType, encoded(t, manifest))
	return made
}

func encoded(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pushBlob uploads one blob and returns its descriptor.
func pushBlob(t *testing.T, registry, repository, mediaType string, content []byte) blob {
	t.Helper()
	of := blob{MediaType: mediaType, Digest: "sha256:" + digest(content), Size: len(content)}
	where := send(t, http.MethodPost, "http://"+registry+"/v2/"+repository+"/blobs/uploads/", "", nil)
	joint := "?"
	if strings.Contains(where, "?") {
		joint = "&"
	}
	send(t, http.MethodPut, where+joint+"digest="+of.Digest, "application/octet-stream", content)
	return of
}

// send makes one request of a push and returns the Location of the answer.
func send(t *testing.T, method, url, mediaType string, body []byte) string {
	t.Helper()
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said, _ := io.ReadAll(response.Body)
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, url, response.StatusCode, said)
	}
	return response.Header.Get("Location")
}

// seedImage is an image of three layers, of which every one is a session. Its goods are named by each client's own way to keep it.
func seedImage(t *testing.T, o *origins, id, _ string) image {
	return pushImage(t, o.registry, "kit/"+id, stockBytes/2, stockBytes/4, stockBytes/4)
}

// layout is what tools leave behind that keep an image as an OCI layout in the folder out.
func layout(t *testing.T, o *origins, id, address string) goods {
	want := goods{files: map[string]string{}}
	for _, layer := range seedImage(t, o, id, address).layers {
		hash := strings.TrimPrefix(layer, "sha256:")
		want.files["out/blobs/sha256/"+hash] = hash
	}
	return want
}

// titled is what oras leaves behind: a file a layer.
func titled(t *testing.T, o *origins, id, address string) goods {
	want := goods{files: map[string]string{}}
	for i, layer := range seedImage(t, o, id, address).layers {
		want.files["out/layer"+strconv.Itoa(i)] = strings.TrimPrefix(layer, "sha256:")
	}
	return want
}

// unpacked is what daemons tell of an image that they hold.
func unpacked(t *testing.T, o *origins, id, address string) goods {
	return goods{layers: seedImage(t, o, id, address).diffs}
}

// stored is what containerd's content store tells.
func stored(t *testing.T, o *origins, id, address string) goods {
	return goods{layers: seedImage(t, o, id, address).layers}
}

// plantBlob puts a blob of zeros into a registry's folder that takes no room there, and returns its path for a GET. Its name is not its digest, which
// a registry does not check when it reads.
func (o *origins) plantBlob(t *testing.T, repository string, size int64) string {
	t.Helper()
	hash := digest([]byte(repository))
	root := filepath.Join(o.registryDir, "docker", "registry", "v2")
	sparse(t, filepath.Join(root, "blobs", "sha256", hash[:2], hash, "data"), size)
	link := filepath.Join(root, "repositories", repository, "_layers", "sha256", hash, "link")
	sparse(t, link, 0)
	write(t, link, []byte("sha256:"+hash))
	return fmt.Sprintf("/v2/%s/blobs/sha256:%s", repository, hash)
}
