//go:build gate

package house_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The bundles' gate: 20 clients pull one image of 8 layers of 6 MiB through 24 MiB/s and 4 slots, 40 s of the link.
const (
	bundleClients = 20
	bundleLayers  = 8
	bundleLayer   = 6 * mib
	bundleRate    = 24 * mib
	// bundleAtOnce is how many layers docker fetches at a time.
	bundleAtOnce = 3
	// bundleFlows is where a layer is said to come, not to wait: no drip of a waiting client (X2) brings that much in the time of this gate.
	bundleFlows = 256 * kib
	bundleWait  = 3 * time.Second
)

// puller is one client of the image and what it met.
type puller struct {
	name  string
	real  *attempt // a tool; nil: pull does what docker does
	n     int
	done  time.Duration
	waits []time.Duration // by layer, in the order of the manifest
	err   error
}

// pull fetches the manifest, then every layer, three at a time, and checks each against its digest.
func (p *puller) pull(ctx context.Context, address string, want image) {
	transport := transportFrom(p.n)
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	var manifest struct{ Layers []blob }
	body, err := fetch(ctx, c, "http://"+address+"/v2/kit/bundle/manifests/v1", nil)
	if err == nil {
		err = json.Unmarshal(body, &manifest)
	}
	if err == nil && len(manifest.Layers) != bundleLayers {
		err = fmt.Errorf("the manifest has %d layers", len(manifest.Layers))
	}
	if err != nil {
		p.err = err
		return
	}
	p.waits = make([]time.Duration, bundleLayers)
	var failed firstError
	var layers sync.WaitGroup
	places := make(chan struct{}, bundleAtOnce)
	for i, layer := range manifest.Layers {
		places <- struct{}{}
		layers.Go(func() {
			defer func() { <-places }()
			if layer.Digest != want.layers[i] {
				failed.set(fmt.Errorf("layer %d is %s", i, layer.Digest))
				return
			}
			if _, err := fetch(ctx, c, "http://"+address+"/v2/kit/bundle/blobs/"+layer.Digest, &p.waits[i]); err != nil {
				failed.set(fmt.Errorf("layer %d: %w", i, err))
			}
		})
	}
	layers.Wait()
	p.err = failed.err
}

// fetch gets a manifest or, when waited is given, a layer, whose digest is the last part of its address: then the body is hashed, not kept,
// and waited is the time until it really came.
func fetch(ctx context.Context, c *http.Client, url string, waited *time.Duration) ([]byte, error) {
	begun := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "docker/20.10.24 go/go1.19.8")
	request.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return nil, fmt.Errorf("status %d after %v: %s", response.StatusCode, time.Since(begun).Round(time.Millisecond), said)
	}
	if waited == nil {
		return io.ReadAll(response.Body)
	}
	hash := sha256.New()
	_, err = io.CopyN(hash, response.Body, bundleFlows)
	*waited = time.Since(begun)
	if err == nil {
		_, err = io.Copy(hash, response.Body)
	}
	if err != nil {
		return nil, err
	}
	if got := "sha256:" + hex.EncodeToString(hash.Sum(nil)); !strings.HasSuffix(url, got) {
		return nil, fmt.Errorf("the layer came as %s", got)
	}
	return nil, nil
}

// bundleRun is what one half of the gate found.
type bundleRun struct {
	pullers             []*puller
	first, median, last time.Duration
}

// pullAll lets all clients pull at once and returns them in the order of their ends.
func pullAll(t *testing.T, binary string, o *origins, want image, bundles bool) *bundleRun {
	s := startSidecar(t, binary, o.registry, false, map[string]string{
		"ARKVORY_MAX_DOWNLOAD_SESSIONS": strconv.Itoa(stockSlots), "ARKVORY_DOWNLOAD_RESERVE": "0", "ARKVORY_DOWNLOAD_BUNDLES": strconv.FormatBool(bundles),
		"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": strconv.FormatInt(stockSession, 10), "ARKVORY_DOWNLOAD_BYTES_PER_SECOND": strconv.FormatInt(bundleRate, 10)})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := &bundleRun{}
	for _, row := range stockClients() {
		if row.name != "skopeo copy" && row.name != "crane pull" || findTool(row.needs[0]) == "" {
			continue
		}
		for range 2 {
			p := &puller{name: row.name, n: len(r.pullers) + 1}
			p.real = &attempt{client: row, id: "bundle", dir: openDir(t, ""), want: goods{files: map[string]string{}}, wire: newWire(t, s.listen, source(p.n))}
			for _, layer := range want.layers {
				hash := strings.TrimPrefix(layer, "sha256:")
				p.real.want.files["out/blobs/sha256/"+hash] = hash
			}
			if err := os.Mkdir(filepath.Join(p.real.dir, "out"), 0o755); err != nil {
				t.Fatal(err)
			}
			r.pullers = append(r.pullers, p)
		}
	}
	for len(r.pullers) < bundleClients {
		r.pullers = append(r.pullers, &puller{name: "as docker", n: len(r.pullers) + 1})
	}
	begun := time.Now()
	var running sync.WaitGroup
	for _, p := range r.pullers {
		running.Go(func() {
			if p.real != nil {
				p.real.run(ctx, o)
				p.err = p.real.err
			} else {
				p.pull(ctx, s.listen, want)
			}
			p.done = time.Since(begun)
		})
	}
	running.Wait()
	slices.SortFunc(r.pullers, func(a, b *puller) int { return int(a.done - b.done) })
	r.first, r.median, r.last = r.pullers[0].done, r.pullers[bundleClients/2].done, r.pullers[bundleClients-1].done
	return r
}

// judge fails for every client that failed, and returns how many layers had to wait, of each client that tells, least first.
func (r *bundleRun) judge(t *testing.T, half string) []int {
	t.Helper()
	var long []int
	for _, p := range r.pullers {
		if p.err != nil {
			story := ""
			if p.real != nil {
				story = "\n" + p.real.wire.story()
			}
			t.Errorf("%s bundles client %d (%s) failed after %v: %v%s", half, p.n, p.name, p.done.Round(time.Millisecond), p.err, story)
		}
		if p.real == nil && p.err == nil {
			n := 0
			for _, wait := range p.waits {
				if wait > bundleWait {
					n++
				}
			}
			long = append(long, n)
		}
	}
	slices.Sort(long)
	return long
}

// TestGateImageBundles pulls one image of 8 layers with 20 clients, two of them skopeo and two crane, over 4 slots: once with one place an image, once with one place
// a layer (X5). With bundles the first client is done in a quarter of the time at most, and nobody waits again once its first layer came.
func TestGateImageBundles(t *testing.T) {
	raiseFiles(t)
	binary := buildSidecar(t)
	o := &origins{registry: freeAddress(t), registryDir: openDir(t, "")}
	startRegistry(t, o.registry, o.registryDir)
	for _, tool := range []string{"skopeo", "crane"} {
		if findTool(tool) == "" && !mayLack(tool) {
			t.Fatalf("%s is not installed; ARKVORY_GATE_MAY_LACK=%s lets the gate pass without it", tool, tool)
		}
	}
	want := pushImage(t, o.registry, "kit/bundle", slices.Repeat([]int64{bundleLayer}, bundleLayers)...)
	var table strings.Builder
	table.WriteString("| 20 clients, 8 layers of 6 MiB, 4 slots, 24 MiB/s | first | median | last | failed | layers of a client that waited over 3 s: least, median, most |\n|---|---|---|---|---|---|\n")
	halves := map[bool]*bundleRun{}
	for _, bundles := range []bool{true, false} {
		half := map[bool]string{true: "with", false: "without"}[bundles]
		r := pullAll(t, binary, o, want, bundles)
		halves[bundles] = r
		long, failed := r.judge(t, half), 0
		for _, p := range r.pullers {
			if p.err != nil {
				failed++
			}
			t.Logf("%s bundles: %-11s client %2d done at %5.1f s, its layers waited %v", half, p.name, p.n, p.done.Seconds(), rounded(p.waits))
		}
		if len(long) == 0 {
			t.Fatalf("%s bundles no client tells how long its layers waited", half)
		}
		fmt.Fprintf(&table, "| %s bundles | %.1f s | %.1f s | %.1f s | %d | %d, %d, %d |\n", half, r.first.Seconds(), r.median.Seconds(), r.last.Seconds(), failed, long[0], long[len(long)/2], long[len(long)-1])
		if most := long[len(long)-1]; bundles && most > bundleAtOnce {
			t.Errorf("with bundles a client waited for %d layers, of which it asks for %d before it has its place", most, bundleAtOnce)
		}
	}
	t.Logf("\n%s", table.String())
	if path := os.Getenv("ARKVORY_GATE_BUNDLE_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	if with, without := halves[true].first, halves[false].first; with*4 > without {
		t.Errorf("the first client was done after %v with bundles and %v without, want at most a quarter", with, without)
	}
}

func rounded(waits []time.Duration) []string {
	out := make([]string, len(waits))
	for i, wait := range waits {
		out[i] = fmt.Sprintf("%.1f", wait.Seconds())
	}
	return out
}
