package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/arkvory/sidecar/config"
	"github.com/arkvory/sidecar/proxy/admin"
)

// overridesOf are the overrides in force, as text.
func overridesOf(s *standing) string { return string(s.settings.Current().Overrides) }

// TestS1_SettingsForPeople: values with where they come from, before and after changes of every kind.
func TestS1_SettingsForPeople(t *testing.T) {
	s := stand(t, deskSettings{})
	show := func(name string) {
		t.Helper()
		golden(t, name, strings.Join(read[settingsDocument](t, s.settings.Current()).lines(deskDay), "\n")+"\n")
	}
	show("settings-environment.txt")
	expect(t, exitDone, []string{"revision 1", "changed by 127.0.0.1", "ordered  ", "->  smallest-first"}, "settings", "set", "strategy=smallest-first", "sessions=20", "weights.bulk=3",
		"windows.bulk=22:00-06:00 Europe/Berlin", "windows.background=mon-fri 22:00-06:00, sat,sun 00:00-24:00 outside 12.5%", "principals.user:ci=bulk 100GB/day 1TB/week",
		"quotas.bytesPerDay=2TB", "sessionMinBytes=32MiB", "agingMinutes=1h", "preempt=false")
	show("settings-changed.txt")
	want := `{"strategy":"smallest-first","sessions":20,"weights":{"interactive":8,"release":4,"bulk":3,"background":1},"sessionMinBytes":33554432,"agingMinutes":60,"preempt":false,` +
		`"windows":{"background":{"outsideShare":0.125,"open":[{"days":["mon","tue","wed","thu","fri"],"from":"22:00","to":"06:00"},{"days":["sat","sun"],"from":"00:00","to":"24:00"}]},` +
		`"bulk":{"zone":"Europe/Berlin","open":[{"from":"22:00","to":"06:00"}]}},"principals":{"user:ci":{"class":"bulk","bytesPerDay":100000000000,"bytesPerWeek":1000000000000}},` +
		`"quotas":{"bytesPerDay":2000000000000}}`
	if got := overridesOf(s); !same(json.RawMessage(got), json.RawMessage(want)) {
		t.Errorf("the overrides are\n%s\nwant\n%s", got, want)
	}
}

// TestS1_SetChangesOnlyWhatIsNamed: other overrides stay, members beside the changed one stay, and what is as it was is not sent.
func TestS1_SetChangesOnlyWhatIsNamed(t *testing.T) {
	s := stand(t, deskSettings{})
	for i, one := range []struct {
		args, want string
	}{
		{"set sessions=20", `{"sessions":20}`},
		{"set windows.bulk=22:00-06:00 strategy=shared", ""}, // one argument with a space is given below
		{"set windows.release=01:00-02:00", `{"sessions":20,"windows":{"bulk":{"open":[{"from":"22:00","to":"06:00"}]},"release":{"open":[{"from":"01:00","to":"02:00"}]}}}`},
		{"set windows.bulk=always", `{"sessions":20,"windows":{"release":{"open":[{"from":"01:00","to":"02:00"}]}}}`},
		{"reset windows.release", `{"sessions":20}`},
		{"set quotas.zone=Europe/Berlin quotas.bytesPerWeek=1TB", `{"sessions":20,"quotas":{"zone":"Europe/Berlin","bytesPerWeek":1000000000000}}`},
		{"reset quotas.zone", `{"sessions":20,"quotas":{"bytesPerWeek":1000000000000}}`},
		{"set principals.a.b=background", `{"sessions":20,"quotas":{"bytesPerWeek":1000000000000},"principals":{"a.b":{"class":"background"}}}`},
		{"set principals.a.b=none weights=9,4,2,1", `{"sessions":20,"weights":{"interactive":9,"release":4,"bulk":2,"background":1},"quotas":{"bytesPerWeek":1000000000000},"principals":{}}`},
		{"reset weights quotas principals", `{"sessions":20}`},
		{`set windows={"bulk":{"open":[{"from":"03:00","to":"04:00"}]}}`, `{"sessions":20,"windows":{"bulk":{"open":[{"from":"03:00","to":"04:00"}]}}}`},
		{"set mode=queue-all idleSeconds=1m", `{"mode":"queue-all","sessions":20,"idleSeconds":60,"windows":{"bulk":{"open":[{"from":"03:00","to":"04:00"}]}}}`},
		{"reset", `{}`},
	} {
		if one.want == "" {
			expect(t, exitDone, nil, "settings", "set", "windows.bulk=22:00-06:00")
			continue
		}
		expect(t, exitDone, []string{fmt.Sprintf("revision %d", i+1)}, append([]string{"settings"}, strings.Fields(one.args)...)...)
		if got := overridesOf(s); !same(json.RawMessage(got), json.RawMessage(one.want)) {
			t.Errorf("%s: the overrides are\n%s\nwant\n%s", one.args, got, one.want)
		}
	}
	before := s.settings.Current().Revision
	for _, args := range [][]string{{"set", "sessions=16"}, {"set", "sessions=16"}, {"reset", "strategy"}, {"reset", "windows.bulk"}} {
		expect(t, exitDone, nil, append([]string{"settings"}, args...)...)
	}
	if got := s.settings.Current().Revision; got != before+1 {
		t.Errorf("revision %d after %d: only the first changed something", got, before)
	}
}

// TestS2_FieldFaults are the server's, each with its field, rule and example; nothing is saved.
func TestS2_FieldFaults(t *testing.T) {
	s := stand(t, deskSettings{})
	out, said := expect(t, exitInvalid, []string{
		"the server refuses sessions: a whole number 1..1024, for example 16", "the server refuses strategy: one of ordered", "the server refuses mode: one of normal, queue-all",
		"the server refuses weights.bulk: a whole number", "the server refuses windows.bulk.", "the server refuses quotas.zone: an IANA time zone", "the server refuses nonsense: no field of the settings",
		"the server refuses preempt: true or false", "the server refuses principals.user:ci.class: one of interactive",
	}, "settings", "set", "sessions=0", "strategy=fastest", "mode=off", "weights.bulk=many", "windows.bulk=25:00-06:00", "quotas.zone=Mars/Base", "nonsense=1", "preempt=maybe", "principals.user:ci=gold")
	if out != "" || strings.Count(said, "\n") != 9 {
		t.Errorf("printed %q, said\n%s", out, said)
	}
	for _, one := range []struct {
		args []string
		says string
	}{
		{[]string{"set"}, "sessions=20"}, {[]string{"set", "sessions"}, "FIELD=VALUE"}, {[]string{"set", "=5"}, "FIELD=VALUE"}, {[]string{"set", "weights.=5"}, "behind the dot"},
		{[]string{"set", "windows.bulk=at night"}, windowExample}, {[]string{"set", "windows.bulk=mon-fri"}, windowExample}, {[]string{"set", "windows.bulk=22:00-06:00 outside"}, windowExample},
		{[]string{"set", "windows.bulk=22:00-06:00 outside x"}, windowExample}, {[]string{"set", "principals.user:ci="}, quotaExample}, {[]string{"set", "principals.user:ci=x/day"}, quotaExample},
		{[]string{"reset", "nonsense"}, "must be a field of the settings"}, {[]string{"get", "nonsense"}, "sessionsElastic"}, {[]string{"get", "weights.gold"}, "must be a field"},
		{[]string{"set", "--from", "/nowhere.json"}, "--from"},
	} {
		expect(t, exitInput, []string{one.says}, append([]string{"settings"}, one.args...)...)
	}
	expect(t, exitDone, nil, "settings", "set", "weights.bulk=3")
	expect(t, exitInput, []string{"reset weights"}, "settings", "reset", "weights.bulk")
	if got := s.settings.Current().Revision; got != 1 {
		t.Errorf("revision %d", got)
	}
}

// raced are settings of which somebody changes the strategy just before the first change arrives.
type raced struct {
	admin.LiveSettings
	once sync.Once
}

func (r *raced) Change(ctx context.Context, body []byte, by string) (admin.SettingsDocument, error) {
	var err error
	r.once.Do(func() {
		_, err = r.LiveSettings.Change(ctx, fmt.Appendf(nil, `{"expectedRevision":%d,"overrides":{"strategy":"shared"}}`, r.Current().Revision), "token")
	})
	if err != nil {
		return admin.SettingsDocument{}, err
	}
	return r.LiveSettings.Change(ctx, body, by)
}

// TestS2_ConflictShowsWhatChanged: whoever comes second changes nothing, is shown what the first did, and ends with a code of its own.
func TestS2_ConflictShowsWhatChanged(t *testing.T) {
	for _, command := range [][]string{{"set", "sessions=20"}, {"reset", "sessions"}, {"edit"}} {
		race := new(raced)
		s := stand(t, deskSettings{wrap: func(of admin.LiveSettings) admin.LiveSettings {
			race.LiveSettings = of
			return race
		}})
		if _, err := s.settings.Change(t.Context(), []byte(`{"expectedRevision":0,"overrides":{"sessions":8}}`), "token"); err != nil {
			t.Fatal(err)
		}
		t.Setenv("VISUAL", "")
		t.Setenv("EDITOR", "sed -i s/8/20/")
		t.Setenv("TMPDIR", t.TempDir())
		out, said := expect(t, exitConflict, []string{"nothing was changed: revision 1 was expected, and meanwhile there is", "revision 2, changed by token at", "sessions  8       ->  (none)",
			"strategy  (none)  ->  shared", "give your change again"}, append([]string{"settings"}, command...)...)
		if out != "" || overridesOf(s) != `{"strategy":"shared"}` {
			t.Errorf("%v: printed %q, overrides %s, said\n%s", command, out, overridesOf(s), said)
		}
	}
}

// TestS2_ExpectedRevision is the caller's own bolt: a script that read a revision changes that one and no other.
func TestS2_ExpectedRevision(t *testing.T) {
	s := stand(t, deskSettings{})
	expect(t, exitDone, nil, "settings", "set", "--revision", "0", "sessions=8")
	expect(t, exitConflict, []string{"revision 0 was expected, the current one is", "revision 1"}, "settings", "set", "--revision", "0", "sessions=9")
	expect(t, exitConflict, nil, "settings", "reset", "--revision", "7")
	expect(t, exitDone, nil, "settings", "reset", "--revision", "1")
	if got := s.settings.Current(); got.Revision != 2 || string(got.Overrides) != "{}" {
		t.Errorf("%+v", got)
	}
}

// TestS1_FromFile: what get --json printed puts the overrides back; a PUT's body counts with its revision; an object of overrides is one; changes go on top.
func TestS1_FromFile(t *testing.T) {
	s := stand(t, deskSettings{})
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "settings.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	expect(t, exitDone, nil, "settings", "set", "sessions=8", "weights.bulk=3")
	kept, _ := expect(t, exitDone, nil, "settings", "get", "--json")
	want := overridesOf(s)
	expect(t, exitDone, nil, "settings", "reset")
	expect(t, exitDone, []string{"revision 3"}, "settings", "set", "--from", file(kept))
	if got := overridesOf(s); got != want {
		t.Errorf("put back are %s, not %s", got, want)
	}
	expect(t, exitConflict, []string{"revision 1 was expected"}, "settings", "set", "--from", file(`{"expectedRevision":1,"overrides":{}}`))
	expect(t, exitDone, nil, "settings", "set", "--from", file(`{"expectedRevision":3,"overrides":{"reserve":0}}`))
	out, _ := expect(t, exitDone, nil, "settings", "set", "--json", "--from", file(`{"sessions":4}`), "mode=dry-run")
	var got admin.SettingsDocument
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Revision != 5 || !same(got.Overrides, json.RawMessage(`{"sessions":4,"mode":"dry-run"}`)) {
		t.Errorf("%v: %s", err, out)
	}
	for text, says := range map[string]string{"{\n\"sessions\":8,\n}": "line 3 is no JSON", "[]": "JSON object of overrides", `{"sessions":1,"sessions":2}`: "once",
		`{"overrides":7}`: "JSON object of overrides", `{"expectedRevision":"1","overrides":{}}`: "expectedRevision"} {
		expect(t, exitInput, []string{says}, "settings", "set", "--from", file(text))
	}
	expect(t, exitInvalid, []string{"no field of the settings"}, "settings", "set", "--from", file(`{"windos":{}}`))
}

// TestS1_Edit opens the overrides in the editor and sends what was saved; what is not taken is kept.
func TestS1_Edit(t *testing.T) {
	s := stand(t, deskSettings{})
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("VISUAL", "")
	drafts := func() []string {
		all, err := filepath.Glob(filepath.Join(dir, "arkvory-settings-*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	expect(t, exitDone, nil, "settings", "set", "sessions=8")
	t.Setenv("EDITOR", "sed -i s/8/20/")
	expect(t, exitDone, []string{"revision 2", "sessions  8  ->  20"}, "settings", "edit")
	t.Setenv("EDITOR", "true")
	expect(t, exitDone, []string{"nothing to change: revision 2"}, "settings", "edit")
	if left := drafts(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, one := range []struct {
		editor string
		code   int
		says   string
	}{
		{"sed -i s/20/0/", exitInvalid, "the server refuses sessions"},
		{"sed -i s/[{]//", exitInput, "no JSON"},
		{"false", exitWork, "$EDITOR"},
		{"/nowhere/editor", exitWork, "$EDITOR"},
	} {
		t.Setenv("EDITOR", one.editor)
		_, said := expect(t, one.code, []string{one.says, "what you wrote is kept in " + dir}, "settings", "edit")
		left := drafts()
		if len(left) != 1 || !strings.Contains(said, left[0]) {
			t.Fatalf("%s: left are %v", one.editor, left)
		}
		if info, err := os.Stat(left[0]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		if err := os.Remove(left[0]); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.settings.Current().Revision; got != 2 {
		t.Errorf("revision %d", got)
	}
}

// TestS4_ProblemIsShown: an override that is not in force is not called one.
func TestS4_ProblemIsShown(t *testing.T) {
	store := &config.MemoryRecords{}
	if _, err := store.Swap(t.Context(), 0, config.Record{Overrides: json.RawMessage(`{"sessions":9999,"newer":{"x":1}}`), UpdatedBy: "token", UpdatedAt: deskDay}); err != nil {
		t.Fatal(err)
	}
	stand(t, deskSettings{store: store})
	out, _ := expect(t, exitDone, []string{"problem: ", "sessions", "environment, the override is not in force", "overrides that this server does not know:", "newer.x=1"}, "settings", "get")
	if !strings.Contains(out, "revision 1, changed by token") {
		t.Error(out)
	}
}

// TestS1_StoreIsDown: a change that is not saved is told as failed, not as refused.
func TestS1_StoreIsDown(t *testing.T) {
	stand(t, deskSettings{store: brokenStore{&config.MemoryRecords{}}})
	expect(t, exitWork, []string{"store", "nothing was changed"}, "settings", "set", "sessions=8")
}

type brokenStore struct{ *config.MemoryRecords }

func (brokenStore) Swap(context.Context, int64, config.Record) (config.Record, error) {
	return config.Record{}, os.ErrDeadlineExceeded
}
