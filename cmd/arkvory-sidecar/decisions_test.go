package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/queue"
	"github.com/arkvory/sidecar/queue/replay"
)

func TestV5_DecisionLogOfARunReplays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.log")
	if err := os.WriteFile(path, []byte("of the last run\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := begin(t, "ARKVORY_DECISION_LOG="+path)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	if got := status(t, "http://"+p.first.Listen+"/release.tar"); got != 200 {
		t.Errorf("status %d", got)
	}
	p.signal()
	p.end()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	report, err := replay.Replay(file)
	if err != nil || report.Differences != 0 || report.Starts[queue.Release] != 1 || report.Cores != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestL2_CheckConfigLooksAtTheDecisionLogAndMakesNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.log")
	var out, faults bytes.Buffer
	if code := run([]string{"-check-config"}, []string{"ARKVORY_DECISION_LOG=" + path}, &out, &faults); code != 0 || !strings.Contains(out.String(), "ARKVORY_DECISION_LOG="+path+"\n") {
		t.Errorf("exit code %d: %s", code, faults.String())
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the check made the file: %v", err)
	}
	if code := run([]string{"-check-config"}, []string{"ARKVORY_DECISION_LOG=/nowhere/at/all"}, &out, &faults); code != 2 || !strings.Contains(faults.String(), "ARKVORY_DECISION_LOG") {
		t.Errorf("exit code %d: %s", code, faults.String())
	}
}

func TestL2_ADecisionLogThatCannotBeMadeStopsTheStart(t *testing.T) {
	if w, _, err := openDecisions(t.TempDir()); err == nil || w != nil || !strings.Contains(err.Error(), "ARKVORY_DECISION_LOG") {
		t.Errorf("%v, %v", w, err)
	}
	if w, closing, err := openDecisions(""); err != nil || w != nil || closing() != nil {
		t.Errorf("none asked for: %v, %v", w, err)
	}
}

// TestV5_TheDecisionLogTouchesNothingElse: the start must not block, and no other file is emptied or changed.
func TestV5_TheDecisionLogTouchesNothingElse(t *testing.T) {
	dir := t.TempDir()
	victim, link, dangling, pipe := filepath.Join(dir, "victim"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o644), os.Symlink(victim, link), os.Symlink(filepath.Join(dir, "made"), dangling),
		syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, dangling, pipe, dir, "/dev/null"} {
		if w, _, err := openDecisions(path); err == nil || w != nil || !strings.Contains(err.Error(), "ARKVORY_DECISION_LOG="+path) {
			t.Errorf("%s: %v, %v", path, w, err)
		}
		if code := run([]string{"-check-config"}, []string{"ARKVORY_DECISION_LOG=" + path}, io.Discard, io.Discard); code != 2 {
			t.Errorf("%s: the check exits with %d", path, code)
		}
	}
	text, err := os.ReadFile(victim)
	info, err2 := os.Stat(victim)
	if err != nil || err2 != nil || string(text) != "precious" || info.Mode().Perm() != 0o644 {
		t.Errorf("the other file holds %q, %v, %v", text, err, err2)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); !os.IsNotExist(err) {
		t.Errorf("a file was made through a link: %v", err)
	}
}

func TestV5_WhoEmptiesTheDecisionLogLeavesNoHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.log")
	w, closing, err := openDecisions(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write([]byte("before\n"))
	if err2 := os.Truncate(path, 0); err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if _, err := w.Write([]byte("after\n")); err != nil {
		t.Fatal(err)
	}
	if err := closing(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "after\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestQ3_PolicyIsThatOfTheVariables(t *testing.T) {
	for _, one := range []struct {
		environ []string
		change  func(*queue.Policy)
	}{
		{nil, func(*queue.Policy) {}},
		{[]string{"ARKVORY_DOWNLOAD_STRATEGY=smallest-first", "ARKVORY_DOWNLOAD_PREEMPT=false"}, func(p *queue.Policy) { p.Strategy, p.Preempt = queue.SmallestFirst, false }},
		{[]string{"ARKVORY_DOWNLOAD_STRATEGY=fair-sojourn", "ARKVORY_MAX_DOWNLOAD_SESSIONS_ELASTIC=64"},
			func(p *queue.Policy) { p.Strategy, p.SessionsElastic = queue.FairSojourn, 64 }},
		{[]string{"ARKVORY_DOWNLOAD_STRATEGY=shared"}, func(p *queue.Policy) { p.Strategy = queue.Shared }},
	} {
		cfg, _, err := config.Load(one.environ)
		if err != nil {
			t.Fatal(err)
		}
		set, _, err := settings(cfg, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		want := queue.DefaultPolicy(16)
		want.SessionsElastic = 16 // equal to the slots: none
		one.change(&want)
		if set.Policy != want {
			t.Errorf("%q: %+v, want %+v", one.environ, set.Policy, want)
		}
	}
}
