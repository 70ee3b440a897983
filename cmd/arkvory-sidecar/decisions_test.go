package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
