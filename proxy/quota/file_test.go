package quota

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// again is the ledger of the next process, started at that time with the same rules.
func again(t *testing.T, dir string, now time.Time, day, week int64) *Ledger {
	t.Helper()
	l := New(Settings{Now: now})
	if err := l.Load(Path(dir), now); err != nil {
		t.Fatal(err)
	}
	l.SetRules(Rules{Default: Limits{day, week}}, now)
	return l
}

func TestX9_CountsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	l := with(100, 1000)
	l.sends("user:ci", 100)
	l.sends("ann, of \"quotes\"", 40)
	if err := l.Save(Path(dir)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(Path(dir))
	if err != nil || info.Mode() != 0o600 || info.Name() != "quotas.json" {
		t.Fatalf("%v, %v", info, err)
	}
	next := again(t, dir, noon.Add(time.Hour), 100, 100)
	next.stands(t, "user:ci", noon.Add(time.Hour), monday)
	next.stands(t, "ann, of \"quotes\"", noon.Add(time.Hour), never)
	next.sends("ann, of \"quotes\"", 60)
	next.stands(t, "ann, of \"quotes\"", noon.Add(time.Hour), monday)
	next.healthy(t)
	tomorrow := again(t, dir, midnight, 100, 0)
	tomorrow.stands(t, "user:ci", midnight, never)
	tomorrow = again(t, dir, midnight, 0, 100)
	tomorrow.stands(t, "user:ci", midnight, monday)
	again(t, dir, monday, 1, 1).stands(t, "user:ci", monday, never)
	again(t, dir, noon.AddDate(0, 0, -9), 1, 1).stands(t, "user:ci", noon.AddDate(0, 0, -9), never) // a clock that was set back
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestX9_OnlyChangesAreWritten(t *testing.T) {
	dir := t.TempDir()
	l := with(100, 0)
	written := func() bool {
		t.Helper()
		if err := l.Save(Path(dir)); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(Path(dir))
		_ = os.Remove(Path(dir))
		return err == nil
	}
	if written() {
		t.Error("without counts there is no file")
	}
	l.sends("ann", 1)
	if !written() || written() {
		t.Error("a count is written, and once")
	}
	l.sends("ann", 0)
	if written() {
		t.Error("nothing was sent")
	}
	l.sends("bob", 1)
	if !written() {
		t.Error("another count")
	}
	l.Roll(midnight)
	if !written() || written() {
		t.Error("another day")
	}
}

func TestX9_AFileThatIsNotOursIsAProblemAndCountsFromZero(t *testing.T) {
	good := with(100, 100)
	good.sends("user:secret", 5)
	dir := t.TempDir()
	if err := good.Save(Path(dir)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty": "", "half": string(text[:len(text)/2]), "list": "[]", "null": "null", "text": `"x"`, "version": strings.Replace(string(text), `"version":1`, `"version":2`, 1),
		"negative": strings.Replace(string(text), `"day":5`, `"day":-5`, 1), "huge": strings.Replace(string(text), `"week":5`, `"week":99999999999999999999`, 1),
		"large": strings.Replace(string(text), `"week":5`, `"week":9007199254740992`, 1), "wrong type": strings.Replace(string(text), `"week":5`, `"week":"user:secret"`, 1),
		"twice": string(text) + string(text), "binary": "\x00\x01",
	} {
		if err := os.WriteFile(Path(dir), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		l := New(Settings{Now: noon})
		err := l.Load(Path(dir), noon)
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "quotas.json") {
			t.Errorf("%s: %v", name, err)
		}
		l.SetRules(Rules{Default: Limits{1, 1}}, noon)
		if s := l.Snapshot(noon); s.Principals != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		l.sends("ann", 1) // the next Save mends it
		if err := l.Save(Path(dir)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again(t, dir, noon, 1, 1).stands(t, "ann", noon, monday)
	}
	newer := strings.Replace(string(text), `"version":1`, `"version":1,"month":{"from":"x"}`, 1)
	if f, err := parse([]byte(newer)); err != nil || f.Principals["user:secret"] != (count{5, 5}) {
		t.Errorf("a field that a newer version added: %v", err)
	}
}

func TestX9_WhatIsNoFileStopsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("pipes and links as on Linux")
	}
	dir := t.TempDir()
	l := with(100, 0)
	l.sends("ann", 1)
	path := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(Settings{Now: noon}).Load(path, noon); err == nil {
		t.Error("a pipe was read")
	}
	if err := New(Settings{Now: noon}).Load(dir, noon); err == nil {
		t.Error("a folder was read")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := New(Settings{Now: noon}).Load(link, noon); err == nil {
		t.Error("a link was followed")
	}
	err := l.Save(filepath.Join(dir, "missing", "quotas.json"))
	if err == nil || strings.Contains(err.Error(), ".new") {
		t.Errorf("%v", err)
	}
	second := l.Save(filepath.Join(dir, "missing", "quotas.json"))
	if second == nil || second.Error() != err.Error() {
		t.Errorf("the same fault has two texts: %v and %v", err, second)
	}
}

func TestL3_AFullFileFits(t *testing.T) {
	f := file{Version: fileVersion, Principals: map[string]count{}}
	for i := range Capacity {
		name := strings.Repeat("x", 71-8) + string(rune('a'+i%26)) + time.Duration(i).String()
		f.Principals[name] = count{maxCount, maxCount}
	}
	text, err := json.Marshal(f)
	if err != nil || len(text) > maxFileBytes/2 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"version":1,"day":{"from":"2026-12-02T00:00:00Z","until":"2026-12-03T00:00:00Z"},"week":{"from":"2026-11-30T00:00:00Z","until":"2026-12-07T00:00:00Z"},"principals":{"user:ci":{"day":1,"week":2}}}`)
	f.Add(`{"version":1,"principals":{"a":{"day":-1}}}`)
	f.Add(`{"version":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		read, err := parse([]byte(text))
		if err != nil {
			if len(read.Principals) != 0 {
				t.Error("refused and kept")
			}
			return
		}
		l := New(Settings{Now: noon})
		for name, c := range read.Principals {
			l.restore(name, c)
		}
		l.SetRules(Rules{Default: Limits{1, 1}}, noon)
		l.healthy(t)
		for name, c := range read.Principals {
			if _, over := l.Over(name, noon); !over && len(read.Principals) < shards/2 && max(c.Day, c.Week) > 0 {
				t.Errorf("%q has %+v and is not over", name, c)
			}
		}
	})
}
