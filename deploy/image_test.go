package deploy_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// instruction is one line of a Dockerfile and the stage it belongs to.
type instruction struct {
	stage    int
	verb     string
	operands []string
	text     string
}

// dockerfile splits the file into instructions; continuation lines are joined, comments dropped.
func dockerfile(t *testing.T) []instruction {
	t.Helper()
	var list []instruction
	stage := -1
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if words[0] == "FROM" {
			stage++
		}
		list = append(list, instruction{stage, words[0], words[1:], line})
	}
	return list
}

// TestV5_ImageSourcesExist holds every COPY from the checkout to a file of the checkout, and every COPY between
// stages to a stage that stands above.
func TestV5_ImageSourcesExist(t *testing.T) {
	stages := map[string]bool{}
	for _, one := range dockerfile(t) {
		switch one.verb {
		case "FROM":
			if len(one.operands) == 3 && strings.EqualFold(one.operands[1], "AS") {
				stages[one.operands[2]] = true
			}
		case "COPY":
			sources := one.operands[:len(one.operands)-1]
			if from, ok := strings.CutPrefix(sources[0], "--from="); ok {
				if !stages[from] {
					t.Errorf("%s: no stage %q above it", one.text, from)
				}
				continue
			}
			for _, source := range sources {
				if _, err := os.Stat(filepath.Join("..", source)); err != nil {
					t.Errorf("%s: %v", one.text, err)
				}
			}
		}
	}
	if len(stages) == 0 {
		t.Error("the Dockerfile has no named build stage")
	}
}

// TestV5_ImageRunsUnprivileged looks at the last stage: empty base, numeric user other than root (Kubernetes can check
// only a number), started without a shell.
func TestV5_ImageRunsUnprivileged(t *testing.T) {
	list := dockerfile(t)
	last := list[len(list)-1].stage
	found := map[string]string{}
	for _, one := range list {
		if one.stage == last {
			found[one.verb] = strings.Join(one.operands, " ")
		}
	}
	if found["FROM"] != "scratch" {
		t.Errorf("the image stands on %q, not on scratch", found["FROM"])
	}
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(found["USER"]) {
		t.Errorf("USER %q is not a number other than root", found["USER"])
	}
	if found["ENTRYPOINT"] != `["/arkvory-sidecar"]` {
		t.Errorf("ENTRYPOINT %q", found["ENTRYPOINT"])
	}
	if found["STOPSIGNAL"] != "SIGTERM" {
		t.Errorf("STOPSIGNAL %q does not drain", found["STOPSIGNAL"])
	}
}

// TestV5_ImageBuildLineBuilds runs the RUN line that builds, with the output put into a temporary folder, and looks
// whether the binary needs a loader: an empty image has none. The Go version of the base image must serve go.mod.
func TestV5_ImageBuildLineBuilds(t *testing.T) {
	var build, base string
	for _, one := range dockerfile(t) {
		if one.verb == "RUN" && strings.Contains(one.text, "go build") {
			build = strings.TrimPrefix(one.text, "RUN ")
		}
		if one.verb == "FROM" && base == "" {
			base = one.operands[0]
		}
	}
	const output = "/out/"
	if !strings.Contains(build, "-o "+output) {
		t.Fatalf("the build line %q does not write %s", build, output)
	}
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	if goVersion == nil || base != "golang:"+goVersion[1] {
		t.Errorf("the image builds with %s, go.mod asks for %v", base, goVersion)
	}
	folder := t.TempDir() + "/"
	command := exec.Command("sh", "-c", strings.ReplaceAll(build, output, folder))
	command.Dir = ".."
	command.Env = append(os.Environ(), "VERSION=test")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	for _, binary := range copied(t, output) {
		file, err := elf.Open(filepath.Join(folder, binary))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for _, segment := range file.Progs {
			if segment.Type == elf.PT_INTERP {
				t.Errorf("%s is linked dynamically", binary)
			}
		}
	}
}

// copied returns the names of what the image takes out of the folder of the build stage: the program it starts among them.
func copied(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	for _, one := range dockerfile(t) {
		if one.verb != "COPY" {
			continue
		}
		for _, source := range one.operands[1 : len(one.operands)-1] {
			if name, ok := strings.CutPrefix(source, folder); ok {
				names = append(names, name)
			}
		}
	}
	if !slices.Contains(names, "arkvory-sidecar") || !slices.Contains(names, "arkvoryctl") {
		t.Fatalf("the image takes %v", names)
	}
	return names
}

// compose is what compose.yaml uses of the Compose format.
type compose struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Context, Dockerfile string }
		DependsOn   []string `yaml:"depends_on"`
		Environment map[string]string
		User        string
		StopSignal  string        `yaml:"stop_signal"`
		StopGrace   time.Duration `yaml:"stop_grace_period"`
		Restart     string
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
		MemLimit    string   `yaml:"mem_limit"`
		Ulimits     map[string]int
		Tmpfs       []string
		Ports       []string
		Volumes     []string
		Networks    []string
	}
	Networks map[string]struct{ Internal bool }
	Volumes  map[string]struct{ External bool }
}

// composeEnvironment returns the sidecar's variables; references to the caller's environment become empty and are left out.
func composeEnvironment(t *testing.T) []string {
	t.Helper()
	var file compose
	decode(t, "compose.yaml", read(t, "compose.yaml"), &file)
	var environ []string
	for name, value := range file.Services["sidecar"].Environment {
		if !strings.HasPrefix(value, "${") {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}

// TestV5_Compose checks that the store is reachable only through the sidecar, that both are locked down, that the
// addresses agree, and that a stop waits for the drain.
func TestV5_Compose(t *testing.T) {
	var file compose
	decode(t, "compose.yaml", read(t, "compose.yaml"), &file)
	for name, service := range file.Services {
		if !service.ReadOnly || len(service.CapDrop) != 1 || service.CapDrop[0] != "ALL" ||
			len(service.SecurityOpt) != 1 || service.SecurityOpt[0] != "no-new-privileges:true" {
			t.Errorf("%s is not locked down: read_only %v, cap_drop %v, security_opt %v", name, service.ReadOnly, service.CapDrop, service.SecurityOpt)
		}
		for _, network := range service.Networks {
			if _, ok := file.Networks[network]; !ok {
				t.Errorf("%s: network %q is not declared", name, network)
			}
		}
	}
	store, sidecar := file.Services["store"], file.Services["sidecar"]
	if len(store.Ports) != 0 || len(store.Networks) != 1 || !file.Networks[store.Networks[0]].Internal {
		t.Errorf("the store can be reached around the sidecar: ports %v, networks %v", store.Ports, store.Networks)
	}
	if sidecar.User != "65532:65532" {
		t.Errorf("the sidecar runs as %q", sidecar.User)
	}
	if _, err := os.Stat(filepath.Join(sidecar.Build.Context, sidecar.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	if len(sidecar.DependsOn) != 1 || sidecar.DependsOn[0] != "store" {
		t.Errorf("depends_on %v: the store would stop before the drain ends", sidecar.DependsOn)
	}
	loaded := load(t, composeEnvironment(t))
	if loaded.Upstream == nil || loaded.Upstream[0].Hostname() != "store" {
		t.Errorf("the upstream is %v, not the store", loaded.Upstream)
	}
	covers(t, "compose stop_grace_period", sidecar.StopGrace, loaded.Drain)
	if want := []string{"8080" + loaded.Listen, "127.0.0.1:8081" + loaded.AdminListen}; strings.Join(sidecar.Ports, " ") != strings.Join(want, " ") {
		t.Errorf("ports %v, want %v: the proxy for all, the admin listener for this machine", sidecar.Ports, want)
	}
	for _, mount := range store.Volumes {
		source, _, _ := strings.Cut(mount, ":")
		if _, err := os.Stat(source); err != nil || !strings.HasSuffix(mount, ":ro") {
			t.Errorf("volume %q: %v; it must exist and be read-only", mount, err)
		}
	}
}
