//go:build gate

package house_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/arkvory/sidecar/config/store/pgtest"
)

// newer is a record as a later version might have saved it: new fields on every level beside known ones.
const newer = `{"sessions":3,"strategy":"smallest-first","horizonMinutes":90,"tiers":[{"name":"gold","share":0.5}],` +
	`"weights":{"interactive":8,"release":4,"bulk":3,"background":1},` +
	`"windows":{"bulk":{"zone":"Europe/Berlin","outsideShare":0.25,"holidays":["12-25"],"open":[{"from":"22:00","to":"06:00","every":2}]},"vip":{"open":[{"from":"00:00","to":"24:00"}]}},` +
	`"principals":{"user:ci":{"class":"bulk","bytesPerMonth":5,"bytesPerDay":1000000000000}},"quotas":{"bytesPerDay":2000000000000,"bytesPerMonth":9,"zone":"UTC"}}`

// environment are the sessions that the environment of these gates gives.
const environment = 6

// oneProcess is a sidecar with the store of its environment, which can be started anew.
type oneProcess struct {
	t              *testing.T
	binary, origin string
	variables      map[string]string
	now            *desk
	all            []*desk
}

func (o *oneProcess) start() *desk {
	o.t.Helper()
	if o.now != nil {
		o.now.stop(syscall.SIGTERM)
	}
	o.now = startDesk(o.t, o.binary, o.origin, "run "+strconv.Itoa(len(o.all)+1), o.variables)
	o.all = append(o.all, o.now)
	return o.now
}

// race lets an operator on loopback and one with the token change the same revision at once.
func (o *oneProcess) race() {
	o.t.Helper()
	d := o.now
	first := d.settings().Revision
	wins := raceOperators(o.t, raceRounds, func(side int, expected int64, overrides string) reply {
		if side == 0 {
			return d.put(expected, overrides)
		}
		return d.put(expected, overrides, "Authorization", "Bearer "+operatorToken)
	}, func(revision int64, overrides string) {
		if s := d.settings(); s.Revision != revision || string(s.Overrides) != overrides {
			o.t.Errorf("revision %d is %s, the winner saved revision %d, %s", s.Revision, s.Overrides, revision, overrides)
		}
	}, first)
	o.t.Logf("%d rounds at one process: %d and %d won, revision %d -> %d", raceRounds, wins[0], wins[1], first, d.settings().Revision)
}

// TestGateDeskStores is the part of acceptance 6.1 for one process: with the state directory the record outlives it, with neither it does not; in both,
// races have one winner. A state directory whose file is not to be used is told as a problem, and used again when it is put in order.
func TestGateDeskStores(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 0, 0)
	s.add(t, "wanted", 2*mib, 3)
	binary, origin := buildSidecar(t), startOrigin(t, s)
	t.Run("File", func(t *testing.T) {
		dir := t.TempDir()
		o := &oneProcess{t: t, binary: binary, origin: origin, variables: deskVariables("ARKVORY_STATE_DIR", dir, "ARKVORY_ADMIN_TOKEN", operatorToken)}
		if s := o.start().settings(); s.Revision != 0 || !s.Persisted || s.Problem != "" {
			t.Errorf("a new process has %+v", s)
		}
		o.race()
		made := o.now.change(`{"sessions":2,"windows":{"bulk":{"open":[{"from":"22:00","to":"06:00"}]}}}`)
		for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			o.now.stop(how)
			again := o.start().settings()
			if again.Revision != made.Revision || string(again.Overrides) != string(made.Overrides) || again.Effective.Sessions != 2 || !again.Persisted || again.UpdatedBy != made.UpdatedBy {
				t.Errorf("after %v there is %+v, want %+v", how, again, made)
			}
		}
		t.Logf("state directory: persisted true; revision %d is there after SIGTERM and after kill -9", made.Revision)
		o.brokenFile(filepath.Join(dir, "settings.json"), made)
		hunt(t, o.all, operatorToken, dir)
	})
	t.Run("Memory", func(t *testing.T) {
		o := &oneProcess{t: t, binary: binary, origin: origin, variables: deskVariables("ARKVORY_ADMIN_TOKEN", operatorToken)}
		o.start()
		o.race()
		made := o.now.change(`{"sessions":2}`)
		if again := o.start().settings(); made.Persisted || again.Persisted || again.Revision != 0 || string(again.Overrides) != "{}" {
			t.Errorf("without a store there was %+v, and after a restart %+v", made, again)
		}
		t.Logf("memory: persisted false; revision %d is gone after a restart", made.Revision)
		hunt(t, o.all, operatorToken)
	})
}

// brokenFile puts a folder in the place of the record and back.
func (o *oneProcess) brokenFile(path string, made settingsSeen) {
	t, d := o.t, o.now
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	took := d.await(seenWithin, "a file that is none is a problem", func() bool { return d.settings().Problem != "" })
	broken := d.settings()
	r := d.put(made.Revision, `{}`)
	if r.status != 503 || r.reason() != "settings_unavailable" || broken.Effective.Sessions != 2 {
		t.Errorf("a change without a usable file gets %v; in force is %+v", r, broken)
	}
	o.whole("wanted")
	t.Logf("settings.json is a folder: problem after %.1f s: %q; PUT %d %s", took.Seconds(), broken.Problem, r.status, r.reason())
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	took = d.await(seenWithin, "the file is used again", func() bool { return d.settings().Problem == "" })
	if next := d.change(`{"sessions":3}`); next.Revision != made.Revision+1 {
		t.Errorf("the change after that has revision %d", next.Revision)
	}
	t.Logf("settings.json is back: recovered after %.1f s", took.Seconds())
}

// whole downloads an object.
func (o *oneProcess) whole(file string) {
	o.t.Helper()
	one, err := o.now.fetch(1, "/"+file, "whole")
	if err != nil || one.status != 200 {
		o.t.Fatalf("a download gets %+v, %v", one, err)
	}
	defer one.body.Close()
	if n, err := io.Copy(io.Discard, one.body); err != nil || n != one.size {
		o.t.Errorf("a download had %d of %d bytes, %v", n, one.size, err)
	}
}

// rollback plays the records of other versions with one store; write puts one where the store keeps it, revision and all.
func (o *oneProcess) rollback(write func(revision int64, overrides string)) {
	t := o.t
	o.variables["ARKVORY_MAX_DOWNLOAD_SESSIONS"] = strconv.Itoa(environment)
	d := o.start()
	d.change(`{"sessions":5}`)
	check := func(how string, revision int64) {
		t.Helper()
		d := o.now
		took := d.await(seenWithin, how, func() bool { return d.settings().Revision == revision })
		s := d.settings()
		bulk := s.Effective.Windows["bulk"]
		if s.Problem != "" || s.Effective.Sessions != 3 || s.Effective.Strategy != "smallest-first" || s.Effective.Weights["bulk"] != 3 || len(s.Effective.Weights) != 4 ||
			len(s.Effective.Windows) != 1 || bulk.Zone != "Europe/Berlin" || bulk.OutsideShare != 0.25 || s.Effective.Quotas.BytesPerDay != 2e12 {
			t.Errorf("%s: %+v", how, s)
		}
		o.whole("wanted")
		t.Logf("%s: in force after %.1f s, problem %q", how, took.Seconds(), s.Problem)
	}
	write(2, newer)
	check("a record of a newer version, saved while this one runs", 2)
	o.start()
	check("a record of a newer version, found at the start", 2)
	d = o.now
	if r := d.put(2, newer); r.status != 400 || !strings.Contains(string(r.body), `"field":"horizonMinutes"`) {
		t.Errorf("the newer fields sent to this version get %v, want 400 with the first of them", r)
	}
	write(3, `{"sessions":3,"weights":{"interactive":8,"release":4,"bulk":3,"background":1,"vip":16}}`)
	d.await(seenWithin, "the weight of a class that only a newer version has", func() bool { return d.settings().Revision == 3 })
	if s := d.settings(); s.Problem != "" || s.Effective.Sessions != 3 || s.Effective.Weights["bulk"] != 3 {
		t.Errorf("with the weight of a class that only a newer version has the problem is %q, sessions %d", s.Problem, s.Effective.Sessions)
	}
	for n, bad := range []struct{ overrides, field string }{
		{`{"sessions":5000,"horizonMinutes":90,"idleSeconds":20}`, "sessions"},
		{`{"strategy":"quantum","sessions":3}`, "strategy"},
		{`{"windows":{"bulk":{"zone":"Mars/Olympus","open":[{"from":"22:00","to":"06:00"}]}},"sessions":3}`, "windows.bulk.zone"},
		{`{"principals":{"user:secret-person":{"class":"vip"}},"sessions":3}`, "principals[0].class"},
	} {
		revision := int64(4 + 2*n)
		write(revision, bad.overrides)
		for _, how := range []string{"while it runs", "at the start"} {
			if how == "at the start" {
				d = o.start()
			}
			d.await(seenWithin, bad.overrides, func() bool { return d.settings().Revision == revision })
			s := d.settings()
			if !strings.Contains(s.Problem, bad.field) || s.Effective.Sessions != environment || s.Effective.IdleSeconds != 30 || s.Effective.Strategy != "ordered" || len(s.Effective.Windows) != 0 {
				t.Errorf("%s, %s: %+v", bad.overrides, how, s)
			}
			o.whole("wanted")
			t.Logf("%s %s: problem %q, sessions %d", bad.field, how, s.Problem, s.Effective.Sessions)
		}
		if mended := d.change(`{"sessions":4}`); mended.Problem != "" || mended.Effective.Sessions != 4 || mended.Revision != revision+1 {
			t.Errorf("a PUT after %s: %+v", bad.overrides, mended)
		}
	}
	for _, page := range []string{"/health/ready", "/metrics"} { // the settings show the ids of principals, to those who may see them; these name nobody
		if r := o.now.call("GET", page, ""); strings.Contains(string(r.body), "secret-person") {
			t.Errorf("%s names a principal", page)
		}
	}
	for _, d := range o.all {
		if strings.Contains(d.lines(), "secret-person") {
			t.Errorf("the log of %s names a principal", d.name)
		}
	}
}

// TestGateDeskRollback is the second half of acceptance 6.2: a process of this version works with the record, and the tables, of a newer one. What it does not know is
// skipped; a known field that does not fit is a problem, and the environment rules until somebody mends it.
func TestGateDeskRollback(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 0, 0)
	s.add(t, "wanted", 2*mib, 3)
	binary, origin := buildSidecar(t), startOrigin(t, s)
	t.Run("Row", func(t *testing.T) {
		c := pgtest.Shared(t)
		t.Cleanup(func() { _ = pgtest.Close() })
		dsn := c.Database(t)
		db := pgtest.Name(dsn)
		o := &oneProcess{t: t, binary: binary, origin: origin, variables: deskVariables("ARKVORY_DATABASE_URL", dsn)}
		first := true
		o.rollback(func(revision int64, overrides string) {
			if first { // a newer version has been here
				first = false
				c.SQL(t, db, "INSERT INTO arkvory_migrations (version_id, is_applied) VALUES (99, true)")
				c.SQL(t, db, "ALTER TABLE arkvory_download_settings ADD COLUMN comment text NOT NULL DEFAULT 'newer'")
				c.SQL(t, db, "CREATE TABLE arkvory_of_tomorrow (n int)")
			}
			c.SQL(t, db, fmt.Sprintf("UPDATE arkvory_download_settings SET revision = %d, overrides = '%s'", revision, overrides))
		})
		if got := c.SQL(t, db, "SELECT max(version_id) FROM arkvory_migrations"); got != "99" {
			t.Errorf("the database's version is %s", got)
		}
	})
	t.Run("File", func(t *testing.T) {
		dir := t.TempDir()
		o := &oneProcess{t: t, binary: binary, origin: origin, variables: deskVariables("ARKVORY_STATE_DIR", dir)}
		o.rollback(func(revision int64, overrides string) {
			text := fmt.Sprintf(`{"format":"arkvory-settings/1","revision":%d,"updatedBy":"token","updatedAt":"2030-01-02T03:04:05Z","savedByVersion":"v9","overrides":%s}`, revision, overrides)
			next := filepath.Join(dir, "settings.json.next")
			if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(next, filepath.Join(dir, "settings.json")); err != nil {
				t.Fatal(err)
			}
		})
	})
}
