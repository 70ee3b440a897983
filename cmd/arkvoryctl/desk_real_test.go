//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// realSidecar is a sidecar as it ships, before its own demo origin.
type realSidecar struct {
	t             *testing.T
	listen, admin string
	client        *http.Client

	mu  sync.Mutex
	log strings.Builder
}

// startReal builds and starts it: one slot, a slow link, so that a queue stands.
func startReal(t *testing.T) *realSidecar {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arkvory-sidecar")
	if out, err := exec.Command("go", "build", "-o", path, "../arkvory-sidecar").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	command := exec.Command(path)
	command.Env = []string{"ARKVORY_LISTEN=127.0.0.1:0", "ARKVORY_ADMIN_LISTEN=127.0.0.1:0", "ARKVORY_ADMIN_TOKEN=" + deskToken, "ARKVORY_MAX_DOWNLOAD_SESSIONS=1",
		"ARKVORY_DOWNLOAD_BYTES_PER_SECOND=65536", "ARKVORY_DRAIN_SECONDS=0", "ARKVORY_LOG_FORMAT=json"}
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	r := &realSidecar{t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	serving, ended := make(chan [2]string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			r.mu.Lock()
			r.log.WriteString(lines.Text() + "\n")
			r.mu.Unlock()
			var said struct{ Message, Listen, Admin string }
			if json.Unmarshal(lines.Bytes(), &said) == nil && said.Message == "serving" {
				serving <- [2]string{said.Listen, said.Admin}
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGKILL) // what it has in hand is of no interest
		<-ended
		_ = command.Wait()
	})
	select {
	case at := <-serving:
		r.listen, r.admin = "http://"+at[0], "http://"+at[1]
	case <-ended:
		t.Fatalf("the sidecar ended: %s", r.logged())
	case <-time.After(patience):
		t.Fatalf("the sidecar does not serve: %s", r.logged())
	}
	t.Setenv("ARKVORY_ADMIN_URL", r.admin)
	t.Setenv(tokenVariable, "")
	t.Setenv("ARKVORY_ADMIN_TOKEN_FILE", "")
	return r
}

func (r *realSidecar) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// get asks for the release as a client of the protocol does, and gives up when the context ends.
func (r *realSidecar) get(ctx context.Context, id, class string) *http.Response {
	r.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.listen+"/release.tar", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Arkvory-Download-Id", id)
	request.Header.Set("Arkvory-Download-Class", class)
	answer, err := r.client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer
}

// waiting returns the ids of those that wait, in the order of their places.
func (r *realSidecar) waiting(more ...string) []string {
	r.t.Helper()
	out, _ := expect(r.t, exitDone, nil, append([]string{"sessions", "list", "--all", "--json", "--state", "waiting"}, more...)...)
	var ids []string
	for line := range strings.Lines(out) {
		var row sessionRow
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Position == nil {
			r.t.Fatalf("%v: %s", err, line)
		}
		ids = append(ids, row.ID)
	}
	return ids
}

// fill begins one download, lets four wait behind it, and returns the first's answer and the ids of the others in the order of their places.
func (r *realSidecar) fill(ctx context.Context) (running *http.Response, ids []string) {
	r.t.Helper()
	running = r.get(ctx, "download-0", "release")
	if running.StatusCode != http.StatusOK {
		r.t.Fatalf("the first download: status %d", running.StatusCode)
	}
	for i := range 4 {
		answer := r.get(ctx, fmt.Sprintf("download-%d", i+1), "release")
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusServiceUnavailable {
			r.t.Fatalf("download %d: status %d", i+1, answer.StatusCode)
		}
	}
	expect(r.t, exitDone, []string{"1 of 1 taken", "4 sessions", "mode         normal, strategy ordered", "67.1 MB"}, "queue")
	if ids = r.waiting(); len(ids) != 4 {
		r.t.Fatalf("waiting are %v", ids)
	}
	return running, ids
}

// TestX7_OverARealSidecar fills the queue of a sidecar as it ships and steers it with every command.
func TestX7_OverARealSidecar(t *testing.T) {
	r := startReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	running, ids := r.fill(ctx)
	defer running.Body.Close()
	expect(t, exitDone, []string{"waiting, 1st", "waits because", "h:", "speaks the queue protocol"}, "sessions", "show", ids[0])
	out, _ := expect(t, exitDone, []string{"release.tar", "download-4"}, "sessions", "show", ids[3], "--clear-ids")
	if strings.Contains(out, "h:") {
		t.Errorf("hashes among clear ids:\n%s", out)
	}

	expect(t, exitDone, []string{ids[3] + " moved: waiting, 1st"}, "sessions", "move", ids[3], "--to", "front")
	expect(t, exitDone, nil, "sessions", "move", ids[0], "--to", "back")
	if got, want := r.waiting(), []string{ids[3], ids[1], ids[2], ids[0]}; !slices.Equal(got, want) {
		t.Errorf("waiting are %v, want %v", got, want)
	}
	expect(t, exitDone, []string{"class bulk"}, "sessions", "move", ids[1], "--class", "bulk")
	if got := r.waiting("--class", "bulk"); !slices.Equal(got, ids[1:2]) {
		t.Errorf("in bulk are %v", got)
	}
	expect(t, exitDone, []string{"paused"}, "sessions", "pause", ids[2])
	expect(t, exitDone, []string{"paused by the operator"}, "sessions", "show", ids[2])
	expect(t, exitDone, []string{"1 paused by the operator"}, "queue")
	expect(t, exitDone, nil, "sessions", "resume", ids[2])
	expect(t, exitConflict, nil, "sessions", "resume", ids[2])
	expect(t, exitDone, []string{"kicked: ended"}, "sessions", "kick", "--yes", ids[1])
	expect(t, exitRefused, []string{"there is no such session"}, "sessions", "show", ids[1])

	expect(t, exitDone, []string{"mode          normal  ->  queue-all"}, "settings", "set", "mode=queue-all", "windows.bulk=22:00-06:00 Europe/Berlin")
	expect(t, exitDone, []string{"queue-all (nobody gets a slot", "settings revision 1", "3 sessions"}, "queue")
	expect(t, exitDone, []string{"22:00-06:00 Europe/Berlin", "override"}, "settings", "get", "windows")

	active, _ := expect(t, exitDone, nil, "sessions", "list", "--all", "--json", "--state", "active")
	var one sessionRow
	if err := json.Unmarshal([]byte(active), &one); err != nil {
		t.Fatalf("%v: %s", err, active)
	}
	expect(t, exitConflict, nil, "sessions", "move", one.ID, "--to", "front")
	expect(t, exitDone, []string{one.ID + " kicked: ended"}, "sessions", "kick", "--yes", one.ID)
	late := time.AfterFunc(patience, cancel)
	if n, err := io.Copy(io.Discard, running.Body); err == nil || !late.Stop() {
		t.Errorf("the download that was kicked was not cut but went on to %d bytes (%v)", n, err)
	}
	expect(t, exitDone, []string{"0 of 1 taken"}, "queue")
	expect(t, exitDone, nil, "settings", "reset")
	if log := r.logged(); strings.Contains(log, deskToken) || strings.Contains(log, "download-4") {
		t.Errorf("the log shows what it must not:\n%s", log)
	}
	if !strings.Contains(r.logged(), one.ID) {
		t.Errorf("the kick is not in the log:\n%s", r.logged())
	}
}
