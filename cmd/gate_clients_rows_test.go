//go:build gate

package house_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stockClient is one row: a tool with the settings it comes with, and what it is told to fetch. Scripts run in the client's own empty folder with
// BASE (http://host:port of its wire), HP (host:port), ID (what it fetches), T (the folder, also HOME), TUNE (empty but in the third column) and, for
// Docker's, DOCKER and CONTAINERD.
type stockClient struct {
	name    string
	needs   []string // programs; the row is "not installed" without one of them
	version string   // prints the version
	store   string   // "files" or "registry"
	seed    func(t *testing.T, o *origins, id, address string) goods
	script  string
	tuned   string                                                   // settings with which it waits as long as it must even without X2, put where $TUNE stands; "" when none is known
	browse  func(ctx context.Context, address, id, dir string) error // instead of a script
}

// aptConfig keeps apt off the machine's own state. All else is its default, retries and time limits above all.
const aptConfig = `mkdir -p lists/partial cache/archives/partial etc/preferences.d etc/trusted.gpg.d state; : >state/status
echo "deb [trusted=yes] $BASE/$ID kit main" >etc/sources.list
cat >apt.conf <<X
Dir::State "$T/state"; Dir::State::lists "$T/lists"; Dir::State::status "$T/state/status"; Dir::Cache "$T/cache"; Dir::Etc "$T/etc";
Dir::Etc::sourcelist "$T/etc/sources.list"; Dir::Etc::sourceparts "-"; APT::Sandbox::User "root"; APT::Architecture "amd64";
X
export APT_CONFIG=$T/apt.conf; apt-get -qq update && apt-get -qq install $TUNE -y --download-only kit-deb`

const lfsPull = `export GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0; git lfs install --skip-repo >/dev/null
GIT_LFS_SKIP_SMUDGE=1 git clone -q "$REPO" copy && cd copy && git config lfs.url "$BASE/$ID/info/lfs" && git ${TUNE:+-c $TUNE} lfs pull`

const podmanPull = `echo '{"default":[{"type":"insecureAcceptAnything"}]}' >policy
P="podman --root $T/root --runroot $T/run --storage-driver vfs"; $P pull -q --tls-verify=false --signature-policy policy "$HP/kit/$ID:v1" >/dev/null &&
$P image inspect --format '{{range .RootFS.Layers}}{{println .}}{{end}}' "$HP/kit/$ID:v1" >layers`

const dockerPull = `D="docker -H unix://$DOCKER"; $D pull -q "$HP/kit/$ID:v1" >/dev/null &&
$D image inspect -f '{{range .RootFS.Layers}}{{println .}}{{end}}' "$HP/kit/$ID:v1" >layers`

// dockerTuned is a setting of the daemon, not of the client.
const dockerTuned = "--max-download-attempts=50"

// ctr's content store is asked for each layer's bytes, which are hashed here.
const ctrPull = `C="ctr -a $CONTAINERD -n $ID"; $C images pull --plain-http --snapshotter native "$HP/kit/$ID:v1" >said 2>&1 || { tail -3 said; exit 1; }
for d in $($C content ls -q); do [ "$($C content get $d | wc -c)" -gt 100000 ] && echo "sha256:$($C content get $d | sha256sum | cut -d' ' -f1)"; done >layers; true`

const requestsGet = `python3 -c 'import os, requests
from requests.adapters import HTTPAdapter, Retry
s, name, tune = requests.Session(), os.environ["ID"] + ".bin", os.environ["TUNE"]
if tune: s.mount("http://", HTTPAdapter(max_retries=eval(tune)))
r = s.get(os.environ["BASE"] + "/" + name); r.raise_for_status(); open("out/" + name, "wb").write(r.content)'`

// stockClients are the rows in the table's order. --retry-times of skopeo stands in no row: skopeo does not count a refusal among what it repeats.
func stockClients() []*stockClient {
	file := func(name, tool, script, tuned string) *stockClient {
		return &stockClient{name: name, needs: []string{tool}, version: tool + " --version", store: "files", seed: seedFile, script: script, tuned: tuned}
	}
	pull := func(name, tool, version string, seed func(*testing.T, *origins, string, string) goods, script, tuned string) *stockClient {
		return &stockClient{name: name, needs: []string{tool}, version: version, store: "registry", seed: seed, script: script, tuned: tuned}
	}
	browser := func(name string, browse func(context.Context, string, string, string) error) *stockClient {
		return &stockClient{name: name, needs: []string{chromium}, version: chromium + " --version", store: "files", seed: seedFile, browse: browse}
	}
	return []*stockClient{
		file("curl", "curl", `curl -q -sS -f $TUNE -o out/$ID.bin "$BASE/$ID.bin"`, "--retry 100"),
		file("wget", "wget", `wget --no-config -nv $TUNE -P out "$BASE/$ID.bin"`, "--tries=0 --retry-on-http-error=503"),
		file("aria2c", "aria2c", `aria2c --no-conf -q $TUNE -d out "$BASE/$ID.bin"`, "--max-tries=0 --retry-wait=10"),
		file("aria2c -x16", "aria2c", `aria2c --no-conf -q -x16 -s16 -k1M $TUNE -d out "$BASE/$ID.bin"`, "--max-tries=0 --retry-wait=10"),
		{name: "apt-get install", needs: []string{"apt-get", "dpkg-deb"}, version: "apt-get --version", store: "files", seed: seedDeb, script: aptConfig,
			tuned: "-o Acquire::Retries=50"},
		{name: "npm install", needs: []string{"npm"}, version: "npm --version", store: "files", seed: seedNPM,
			script: `echo '{}' >package.json; npm install kit-npm --registry "$BASE/$ID/" --no-audit --no-fund --loglevel error $TUNE`, tuned: "--fetch-retries=30 --fetch-retry-maxtimeout=30000"},
		{name: "git-lfs pull", needs: []string{"git", "git-lfs"}, version: "git-lfs --version", store: "files", seed: seedLFS, script: lfsPull,
			tuned: "lfs.transfer.maxretries=50"},
		{name: "python requests", needs: []string{"python3"}, version: "python3 -c 'import requests; print(requests.__version__)'", store: "files", seed: seedFile,
			script: requestsGet, tuned: "Retry(100, status_forcelist=[503])"},
		{name: "pip download", needs: []string{"python3"}, version: "python3 -m pip --version", store: "files", seed: seedWheel,
			script: `python3 -m pip download -q $TUNE --no-deps --index-url "$BASE/$ID/simple/" -d out kitpkg`, tuned: "--retries 50"},
		browser("Chromium, a saved link", saveLink),
		browser("Chromium, a navigation", navigate),
		pull("skopeo copy", "skopeo", "skopeo --version", layout, `skopeo --insecure-policy copy -q --src-tls-verify=false "docker://$HP/kit/$ID:v1" oci:out:v1`, ""),
		pull("crane pull", "crane", "crane version", layout, `rmdir out; crane --insecure pull --format oci "$HP/kit/$ID:v1" out`, ""),
		pull("oras pull", "oras", "oras version", titled, `oras pull --plain-http -o out "$HP/kit/$ID:v1" >/dev/null`, ""),
		pull("podman pull", "podman", "podman --version", unpacked, podmanPull, ""),
		pull("docker pull", "docker", "docker --version", unpacked, dockerPull, dockerTuned),
		pull("containerd: ctr pull", "ctr", "ctr --version", stored, ctrPull, ""),
	}
}

// attempt is one client in one mode.
type attempt struct {
	client *stockClient
	id     string
	dir    string
	tune   string
	docker dockerSockets
	wire   *wire
	want   goods
	lacks  string // why it cannot run here
	err    error
	took   time.Duration
	asked  int // requests it sent
}

// run lets the client fetch and looks at what it has got. It ends with the context at the latest.
func (a *attempt) run(ctx context.Context, o *origins) {
	begun := time.Now()
	if a.client.browse != nil {
		a.err = a.client.browse(ctx, a.wire.address, a.id, filepath.Join(a.dir, "out"))
	} else {
		a.err = a.script(ctx, o)
	}
	a.took, a.asked = time.Since(begun), a.wire.count()
	if ctx.Err() != nil {
		a.err = errors.Join(errors.New("no end in time"), a.err)
	}
	if a.err == nil {
		a.err = a.want.check(a.dir)
	}
}

// script runs the row's commands in a process group, which ends as a whole when the time is over.
func (a *attempt) script(ctx context.Context, o *origins) error {
	command := exec.CommandContext(ctx, "bash", "-c", a.client.script)
	command.Dir = a.dir
	command.Env = []string{"PATH=" + toolPath(), "HOME=" + a.dir, "T=" + a.dir, "TMPDIR=" + a.dir, "LC_ALL=C.UTF-8", "BASE=http://" + a.wire.address,
		"HP=" + a.wire.address, "ID=" + a.id, "REPO=" + filepath.Join(o.dir, a.id, "repository.git"), "TUNE=" + a.tune, "DOCKER=" + a.docker.docker, "CONTAINERD=" + a.docker.containerd}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 10 * time.Second
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, shortened(string(out)))
	}
	return nil
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// shortened is the end of what a tool said, on one line.
func shortened(text string) string {
	text = strings.Join(strings.Fields(escapes.ReplaceAllString(text, "")), " ")
	return text[max(0, len(text)-200):]
}

// check compares what a client has with what the origin gave it.
func (g goods) check(dir string) error {
	for name, sum := range g.files {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if got := digest(content); got != sum {
			return fmt.Errorf("%s has %d bytes with SHA-256 %.12s, want %.12s", filepath.Base(name), len(content), got, sum)
		}
	}
	if g.layers == nil {
		return nil
	}
	said, err := os.ReadFile(filepath.Join(dir, "layers"))
	if err != nil {
		return err
	}
	got := strings.Fields(string(said))
	for _, layer := range g.layers {
		if !strings.Contains(string(said), layer) || len(got) != len(g.layers) {
			return fmt.Errorf("the image has the layers %v, want %v", got, g.layers)
		}
	}
	return nil
}

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+`)

// lack returns why a row cannot run here, "" when it can, and its version.
func (c *stockClient) lack(o *origins) (why, version string) {
	for _, tool := range c.needs {
		if findTool(tool) == "" {
			return "not installed: " + tool, "-"
		}
	}
	if len(o.docker) == 0 && (c.needs[0] == "docker" || c.needs[0] == "ctr") {
		return "not installed: its dockerd does not start here", "-"
	}
	command := exec.Command("bash", "-c", c.version)
	command.Env = []string{"PATH=" + toolPath(), "HOME=" + o.dir}
	out, err := command.CombinedOutput()
	version = versionNumber.FindString(string(out))
	if err != nil || version == "" {
		return "not installed: " + shortened(string(out)), "-"
	}
	return "", version
}
