//go:build gate

package house_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// toolPath is where clients and origins are looked for: the distribution's own first, then what the caller's PATH adds.
func toolPath() string { return "/usr/bin:/usr/sbin:/bin:/sbin:" + os.Getenv("PATH") }

// findTool returns the path of a program, "" when there is none.
func findTool(name string) string {
	for _, dir := range filepath.SplitList(toolPath()) {
		if path := filepath.Join(dir, name); dir != "" && executable(path) {
			return path
		}
	}
	return ""
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// freeAddress returns a loopback address nobody listens on. Another process could take it before its user does; the daemon's start then
// fails with that reason.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// daemon starts a foreign server in a process group of its own, waits until ready says so and ends it with the test: asked by signal, forced with its
// group after 20 s. Its output goes to a file and is shown when the test failed. The error says why it does not serve.
func daemon(t *testing.T, name string, command *exec.Cmd, ready func() error) error {
	t.Helper()
	said, err := os.CreateTemp(openDir(t, ""), name)
	if err != nil {
		return err
	}
	command.Stdout, command.Stderr = said, said
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // how it ends says nothing: many end with the signal as their status
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		force := time.AfterFunc(20*time.Second, func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
		<-ended
		force.Stop()
		if t.Failed() {
			t.Logf("%s said last: %s", name, lastOf(said.Name(), 2000))
		}
		_ = said.Close()
	})
	for begun := time.Now(); ; pause(50 * time.Millisecond) {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s ended at once: %s", name, lastOf(said.Name(), 500))
		default:
		}
		if time.Since(begun) > 40*time.Second {
			return fmt.Errorf("%s does not serve after 40 s: %v: %s", name, err, lastOf(said.Name(), 500))
		}
	}
}

// lastOf returns the end of a file for a message.
func lastOf(path string, most int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(0, len(text)-most):]))
}

// answers is ready for servers that speak HTTP: any answer counts.
func answers(address string) func() error {
	return func() error {
		response, err := http.Get("http://" + address + "/")
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
}

// origins are the two stores behind the sidecars and the daemons of Docker.
type origins struct {
	files       string // nginx: files, package indexes, an LFS server's objects
	dir         string // its root
	registry    string // docker-registry
	registryDir string
	docker      map[string]dockerSockets // by mode: a daemon fetches three layers at a time in all, so that modes with one daemon would wait for each other
}

// dockerSockets are where a dockerd and its containerd listen.
type dockerSockets struct{ docker, containerd string }

// startOrigins starts the two stores; the image daemons follow on their own, see startDocker.
func startOrigins(t *testing.T) *origins {
	t.Helper()
	o := &origins{dir: openDir(t, ""), registryDir: openDir(t, ""), docker: map[string]dockerSockets{}}
	batch := httptest.NewServer(lfsBatch{})
	t.Cleanup(batch.Close)
	o.files, o.registry = freeAddress(t), freeAddress(t)
	o.startFiles(t, strings.TrimPrefix(batch.URL, "http://"))
	startRegistry(t, o.registry, o.registryDir)
	return o
}

// startFiles runs nginx as it comes (its own time limits, its own validators), with names of types as package indexes need them. The LFS server's
// steering requests go on to batch.
func (o *origins) startFiles(t *testing.T, batch string) {
	t.Helper()
	work := openDir(t, "")
	text := "daemon off; worker_processes 1; pid nginx.pid; error_log stderr warn; user root;\nevents { worker_connections 2048; }\n" +
		"http { access_log off; sendfile on; types { text/html html; application/json json; } default_type application/octet-stream;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += kind + "_temp_path " + work + "/" + kind + ";\n"
	}
	text += "server { listen " + o.files + "; root " + o.dir + "; absolute_redirect off; try_files $uri $uri.json $uri/ =404;\n" +
		"location ~ /info/lfs/ { proxy_pass http://" + batch + "; proxy_set_header Host $http_host; } } }\n"
	conf := filepath.Join(work, "nginx.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := daemon(t, "nginx", exec.Command(needTool(t, "nginx"), "-p", work, "-c", conf), answers(o.files)); err != nil {
		t.Fatal(err)
	}
}

// needTool is findTool for what the gate itself cannot do without.
func needTool(t *testing.T, name string) string {
	t.Helper()
	path := findTool(name)
	if path == "" {
		t.Fatalf("%s is not installed: the gate's origins need it", name)
	}
	return path
}

// startRegistry runs Debian's docker-registry on a folder.
func startRegistry(t *testing.T, address, dir string) {
	t.Helper()
	conf := filepath.Join(openDir(t, ""), "registry.yml")
	text := "version: 0.1\nlog: {level: warn, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: " + dir + "}}\nhttp: {addr: " + address + "}\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := daemon(t, "docker-registry", exec.Command(needTool(t, "docker-registry"), "serve", conf), answers(address)); err != nil {
		t.Fatal(err)
	}
}

// startDocker runs a dockerd of the gate's own for a mode's clients, without bridge and firewall rules; it brings its containerd along, which ctr speaks to.
func (o *origins) startDocker(t *testing.T, mode string, settings ...string) error {
	t.Helper()
	path := findTool("dockerd")
	if path == "" {
		return fmt.Errorf("dockerd is not installed")
	}
	dir := openDir(t, "")
	socket := filepath.Join(dir, "docker.sock")
	command := exec.Command(path, append(settings, "--data-root", dir+"/data", "--exec-root", dir+"/exec", "-p", dir+"/pid", "-H", "unix://"+socket,
		"--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs")...)
	command.Env = append(os.Environ(), "PATH="+toolPath())
	err := daemon(t, "dockerd", command, func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err == nil {
		o.docker[mode] = dockerSockets{socket, filepath.Join(dir, "exec", "containerd", "containerd.sock")}
	}
	return err
}
