package deploy_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	stateVariable = "ARKVORY_STATE_DIR="
	keyVariable   = "ARKVORY_TICKET_KEY="
)

// stateDir returns the state directory of an example as it is written there: absolute, in its shortest form, set once.
func stateDir(t *testing.T, file string, environ []string) string {
	t.Helper()
	var found []string
	for _, one := range environ {
		if dir, ok := strings.CutPrefix(one, stateVariable); ok {
			found = append(found, dir)
		}
	}
	if len(found) != 1 || !path.IsAbs(found[0]) || path.Clean(found[0]) != found[0] || found[0] == "/" {
		t.Fatalf("%s sets the state directories %q, want one absolute path", file, found)
	}
	return found[0]
}

// imageStateDir returns the directory that the image holds for the state, and the user who owns it. It follows the COPY with an owner back
// to the RUN line that makes the source, and runs that line in a temporary folder to see what comes out.
func imageStateDir(t *testing.T) (dir, owner string) {
	t.Helper()
	var source, target string
	for _, one := range dockerfile(t) {
		if one.verb == "COPY" && strings.Contains(one.text, "--chown=") {
			if source != "" || len(one.operands) != 4 || one.operands[0] != "--from=build" {
				t.Fatalf("%s: want one COPY with an owner, of one folder of the build stage", one.text)
			}
			owner, source, target = strings.TrimPrefix(one.operands[1], "--chown="), one.operands[2], one.operands[3]
		}
	}
	// With a slash behind both, what is in the one folder comes into the other: only what is below the target gets its own mode.
	if source == "" || !strings.HasSuffix(source, "/") || !strings.HasSuffix(target, "/") {
		t.Fatalf("the image copies %q to %q, want the content of a folder into a folder", source, target)
	}
	folder := t.TempDir()
	for _, one := range dockerfile(t) {
		line, ok := strings.CutPrefix(one.text, "RUN ")
		if !ok || !strings.Contains(line, source) {
			continue
		}
		line = regexp.MustCompile(`(^|\s)`+regexp.QuoteMeta(source)).ReplaceAllString(line, "${1}"+folder+"/")
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the build stage makes %v in %s, %v; want the state directory", entries, source, err)
	}
	info, err := entries[0].Info()
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("the build stage makes %v of mode %v, %v; want a directory for its owner alone", entries[0], info.Mode(), err)
	}
	if below, err := os.ReadDir(filepath.Join(folder, entries[0].Name())); err != nil || len(below) != 0 {
		t.Errorf("the state directory of the image holds %v, %v: a key in an image is no secret", below, err)
	}
	return target + entries[0].Name(), owner
}

// TestT3_ImageHoldsTheStateDirectory: it belongs to the user of the image, and nothing in the image makes its use a duty: without a
// volume there a read-only container could not start.
func TestT3_ImageHoldsTheStateDirectory(t *testing.T) {
	dir, owner := imageStateDir(t)
	list := dockerfile(t)
	for _, one := range list {
		switch {
		case one.verb == "USER" && one.operands[0] != owner:
			t.Errorf("%s belongs to %s, the image runs as %s", dir, owner, one.operands[0])
		case one.verb == "ENV" && (strings.Contains(one.text, stateVariable) || strings.Contains(one.text, keyVariable)), one.verb == "VOLUME":
			t.Errorf("%s: the image decides where the state is", one.text)
		}
	}
}

// TestT3_ComposeKeepsTheState: a named volume, declared in the file, is mounted at the state directory, which the image holds for the same
// user; Compose gives a new volume the owner of what it covers.
func TestT3_ComposeKeepsTheState(t *testing.T) {
	var file compose
	decode(t, "compose.yaml", read(t, "compose.yaml"), &file)
	sidecar := file.Services["sidecar"]
	dir := stateDir(t, "compose.yaml", composeEnvironment(t))
	inImage, owner := imageStateDir(t)
	if dir != inImage || sidecar.User != owner {
		t.Errorf("the state is in %s for %s, the image holds %s for %s", dir, sidecar.User, inImage, owner)
	}
	var names []string
	for _, mount := range sidecar.Volumes {
		// A third part is an option, of which ro is one.
		if parts := strings.Split(mount, ":"); len(parts) == 2 && parts[1] == dir {
			names = append(names, parts[0])
		}
	}
	if len(names) != 1 || strings.ContainsAny(names[0], "./") {
		t.Fatalf("volumes %q: want one named volume at %s that can be written to", sidecar.Volumes, dir)
	}
	if volume, ok := file.Volumes[names[0]]; !ok || volume.External {
		t.Errorf("the volume %s is not declared as one of this file: %v", names[0], file.Volumes)
	}
	for _, inMemory := range sidecar.Tmpfs {
		if within(dir, inMemory) {
			t.Errorf("the state is in memory: tmpfs %q", sidecar.Tmpfs)
		}
	}
	for name, service := range file.Services {
		for _, mount := range service.Volumes {
			if source, _, _ := strings.Cut(mount, ":"); name != "sidecar" && source == names[0] {
				t.Errorf("%s shares the volume: who may write to it may choose the key", name)
			}
		}
	}
}

// TestT3_KubernetesKeepsTheState: a volume of the sidecar alone is mounted at the state directory and can be written to by its user. An
// emptyDir ends with its pod, so the key comes from a secret; with fsGroup the modes of files in a claim would be widened.
func TestT3_KubernetesKeepsTheState(t *testing.T) {
	const file = "kubernetes/sidecar.yaml"
	pod, _, _ := manifest(t)
	spec := pod.Spec.Template.Spec
	sidecar := spec.InitContainers[0]
	environ := kubernetesEnvironment(t)
	dir := stateDir(t, file, environ)
	volume := ""
	for _, mount := range sidecar.VolumeMounts {
		if within(dir, mount.MountPath) {
			if volume != "" || mount.MountPath != dir || mount.ReadOnly {
				t.Fatalf("%s is mounted as %+v, want one mount at it that can be written to", dir, sidecar.VolumeMounts)
			}
			volume = mount.Name
		}
	}
	for _, one := range spec.Volumes {
		// Every user may write to an emptyDir, so it needs no group.
		if one.Name == volume && (one.EmptyDir == nil || one.EmptyDir["medium"] != "") {
			t.Errorf("the volume %s is %+v, want an emptyDir on the disk", volume, one)
		}
	}
	if volume == "" {
		t.Errorf("nothing is mounted at %s, the root file system is read-only", dir)
	}
	for _, other := range append(spec.InitContainers[1:], spec.Containers...) {
		for _, mount := range other.VolumeMounts {
			if mount.Name == volume {
				t.Errorf("%s mounts %s too: who may write to it may choose the key", other.Name, volume)
			}
		}
	}
	if !slices.ContainsFunc(environ, func(one string) bool { return strings.HasPrefix(one, keyVariable) }) {
		t.Error("the key is not from a secret and ends with the pod")
	}
	for _, one := range sidecar.Env {
		secret := one.ValueFrom.SecretKeyRef
		if strings.HasPrefix(keyVariable, one.Name) && (secret.Name == "" || one.Value != "") {
			t.Errorf("%s is written into the manifest", one.Name)
		}
		// Without the line that makes its secret the pod waits for ever.
		if command := "# kubectl create secret generic " + secret.Name + " --from-literal=" + secret.Key + "=$(openssl rand -hex "; secret.Name != "" &&
			!strings.Contains(strings.ReplaceAll(read(t, file), "#   ", "# "), command) {
			t.Errorf("%s: the file does not tell how to make the secret %s", one.Name, secret.Name)
		}
	}
	if !strings.Contains(read(t, file), "generic arkvory-ticket --from-literal=key=$(openssl rand -hex 32)") {
		t.Error("the command does not make a key of 32 bytes")
	}
}

// TestT3_UnitKeepsTheState: the variable names the directory that systemd makes for the service, and only its user may enter it.
func TestT3_UnitKeepsTheState(t *testing.T) {
	values := unit(t)
	folders := values["Service/StateDirectory"]
	if len(folders) != 1 || strings.ContainsAny(folders[0], " :") {
		t.Fatalf("StateDirectory is %q, want one name", folders)
	}
	if dir := stateDir(t, unitFile, unitEnvironment(t)); dir != "/var/lib/"+folders[0] {
		t.Errorf("the state is in %s, systemd makes /var/lib/%s", dir, folders[0])
	}
	if mode := values["Service/StateDirectoryMode"]; len(mode) != 1 || mode[0] != "0700" {
		t.Errorf("StateDirectoryMode is %q", mode)
	}
	for _, key := range []string{"ReadOnlyPaths", "InaccessiblePaths", "TemporaryFileSystem", "RootDirectory"} {
		if value, ok := values["Service/"+key]; ok {
			t.Errorf("%s=%q may cover the state directory", key, value)
		}
	}
}

// TestI5_ExamplesHoldNoKey: a key that stands in a file that everybody copies signs for everybody.
func TestI5_ExamplesHoldNoKey(t *testing.T) {
	key := regexp.MustCompile(`ARKVORY_TICKET_KEY\s*[:=]\s*\S|[0-9A-Fa-f]{64}`)
	for _, file := range texts(t) {
		for number, line := range strings.Split(read(t, file), "\n") {
			if key.MatchString(line) {
				t.Errorf("%s:%d holds a key", file, number+1)
			}
		}
	}
}

// within reports whether a path is a folder or lies below it.
func within(one, folder string) bool {
	return one == folder || strings.HasPrefix(one, strings.TrimSuffix(folder, "/")+"/")
}
