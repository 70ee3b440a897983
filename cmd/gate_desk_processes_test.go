//go:build gate

package house_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/arkvory/sidecar/config/store/pgtest"
)

const (
	deskAccount  = "gate_desk_account"
	deskPassword = "gate-desk-pass-word"
	// seenWithin is how soon a change must be in force at the other process, recoverWithin how soon a process must find its store again.
	seenWithin    = 10 * time.Second
	recoverWithin = 20 * time.Second
	raceRounds    = 20
)

// deskVariables are those of all processes of these gates: objects above 1 MiB are sessions.
func deskVariables(more ...string) map[string]string {
	v := map[string]string{"ARKVORY_DOWNLOAD_SESSION_MIN_BYTES": "1048576", "ARKVORY_DOWNLOAD_BYTES_PER_SECOND": strconv.FormatInt(8*mib, 10),
		"ARKVORY_RESTART_GRACE_SECONDS": "0", "ARKVORY_DOWNLOAD_PREEMPT": "false", "ARKVORY_DOWNLOAD_HOLD_SECONDS": "0", "ARKVORY_DOWNLOAD_DRIP_LIMIT": "0"}
	for i := 0; i+1 < len(more); i += 2 {
		v[more[i]] = more[i+1]
	}
	return v
}

// passwordDatabase is a database of the cluster and the connection string of an account that needs its password.
func passwordDatabase(t *testing.T, c *pgtest.Cluster) (dsn, name string) {
	t.Helper()
	base := c.Database(t)
	name = pgtest.Name(base)
	c.SQL(t, name, "CREATE ROLE "+deskAccount+" LOGIN PASSWORD '"+deskPassword+"'")
	c.SQL(t, name, "GRANT CREATE, USAGE ON SCHEMA public TO "+deskAccount)
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(at.Query().Get("host"), "data", "pg_hba.conf")
	text, err := os.ReadFile(rules)
	if err == nil {
		err = os.WriteFile(rules, append([]byte("local all "+deskAccount+" scram-sha-256\n"), text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Restart(t)
	return strings.Replace(c.URLOf(deskAccount, name, "sslmode=disable"), deskAccount+"@", deskAccount+":"+deskPassword+"@", 1), name
}

// traffic downloads one object through a process again and again.
type traffic struct {
	d    *desk
	done atomic.Int64
}

// run goes on until quit; a download that is not whole and right fails the test.
func (f *traffic) run(s *store, file string, quit <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-quit:
			return
		default:
		}
		one, err := f.d.fetch(1000, "/"+file, fmt.Sprintf("traffic-%d", n))
		if err != nil || one.status != 200 {
			f.d.t.Errorf("%s: download %d: %+v, %v", f.d.name, n, one, err)
			return
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, one.body); err != nil || [sha256.Size]byte(hash.Sum(nil)) != s.sums[file] {
			f.d.t.Errorf("%s: download %d came wrong: %v", f.d.name, n, err)
		}
		_ = one.body.Close()
		f.done.Add(1)
	}
}

// pair is two processes on one database.
type pair struct {
	t       *testing.T
	cluster *pgtest.Cluster
	db      string
	store   *store
	both    [2]*desk
	flow    [2]*traffic
	all     []*desk // with those that are gone
}

// TestGateDeskTwoProcesses is acceptance 6.1 over the running binary: two processes on one PostgreSQL, whose server is stopped, killed and frozen.
func TestGateDeskTwoProcesses(t *testing.T) {
	raiseFiles(t)
	s := newStore(t, 0, 0)
	s.add(t, "wanted", 2*mib, 3)
	s.add(t, "slow", 128*mib, 4)
	binary, origin := buildSidecar(t), startOrigin(t, s)
	p := &pair{t: t, cluster: pgtest.Start(t), store: s}
	dsn, db := passwordDatabase(t, p.cluster)
	p.db = db
	p.cluster.Stop(t)
	for i := range p.both {
		p.both[i] = startDesk(t, binary, origin, "process "+strconv.Itoa(i+1), deskVariables("ARKVORY_DATABASE_URL", dsn))
		p.flow[i] = &traffic{d: p.both[i]}
	}
	p.all = append(p.all, p.both[:]...)
	quit, ended := make(chan struct{}), sync.WaitGroup{}
	end := sync.OnceFunc(func() { close(quit); ended.Wait() })
	t.Cleanup(end)
	for _, f := range p.flow {
		ended.Go(func() { f.run(s, "wanted", quit) })
	}
	p.down("stopped before the start", 0)
	p.cluster.Start(t)
	p.up("started after the processes", 0)
	p.bothWays()
	p.unannounced()
	p.races()
	before := p.both[0].settings().Revision
	p.cluster.Stop(t)
	p.down("stopped in the middle", before)
	p.cluster.Start(t)
	p.up("started again", before)
	p.atPut("killed at a PUT", p.cluster.Kill, p.cluster.Start)
	p.atPut("frozen at a PUT", p.cluster.Pause, p.cluster.Resume)
	end()
	p.tickets(binary, origin, dsn)
	wrong := startDesk(t, binary, origin, "wrong password", deskVariables("ARKVORY_DATABASE_URL", strings.Replace(dsn, deskPassword, "not-"+deskPassword, 1)))
	p.all = append(p.all, wrong)
	if got := wrong.settings().Problem; !strings.Contains(got, "password") {
		t.Errorf("with a wrong password the problem is %q", got)
	}
	if r := wrong.put(0, `{}`); r.status != 503 || r.reason() != "settings_unavailable" {
		t.Errorf("with a wrong password a change gets %v", r)
	}
	t.Logf("with a wrong password: %s", wrong.settings().Problem)
	key := p.cluster.SQL(t, db, "SELECT encode(key, 'hex') FROM arkvory_download_ticket_key")
	at, _ := url.Parse(dsn)
	if len(key) != 64 {
		t.Errorf("the ticket key is %d digits", len(key))
	}
	hunt(t, p.all, deskPassword, deskAccount, at.Query().Get("host"), "postgres://", db, key)
}

// flows waits until both processes have completed downloads that began after now.
func (p *pair) flows(what string) {
	p.t.Helper()
	for _, f := range p.flow {
		was := f.done.Load()
		f.d.await(20*time.Second, "downloads run while the database is "+what, func() bool { return f.done.Load() >= was+2 })
	}
}

// down checks both processes while the database does not answer: what is in force stays, the problem says why, changes are refused, all else goes on.
func (p *pair) down(what string, revision int64) {
	p.t.Helper()
	for _, d := range p.both {
		took := d.await(seenWithin+5*time.Second, "a problem with the database "+what, func() bool { return d.settings().Problem != "" })
		s := d.settings()
		if !strings.Contains(s.Problem, "database") || s.Revision != revision || !s.Persisted {
			p.t.Errorf("%s, %s: %+v", d.name, what, s)
		}
		r := d.put(revision, `{"idleSeconds":77}`)
		if r.status != 503 || r.reason() != "settings_unavailable" || d.settings().Effective.IdleSeconds == 77 {
			p.t.Errorf("%s, %s: a change gets %v", d.name, what, r)
		}
		if ready := d.call("GET", "/health/ready", ""); ready.status != 200 {
			p.t.Errorf("%s, %s: readiness %v", d.name, what, ready)
		}
		p.t.Logf("%s, database %s: problem after %.1f s: %q; PUT %d %s in %.1f s", d.name, what, took.Seconds(), s.Problem, r.status, r.reason(), r.took.Seconds())
	}
	p.flows(what)
}

// up checks that both find the database by themselves, with the record that was there.
func (p *pair) up(what string, revision int64) {
	p.t.Helper()
	begun := time.Now()
	for _, d := range p.both {
		d.await(recoverWithin, "no problem with the database "+what, func() bool { s := d.settings(); return s.Problem == "" && s.Revision == revision })
		p.t.Logf("%s, database %s: recovered after %.1f s", d.name, what, time.Since(begun).Seconds())
	}
}

// bothWays: a change made at one process is in force at the other.
func (p *pair) bothWays() {
	p.t.Helper()
	for n := range 6 {
		from, to := p.both[n%2], p.both[1-n%2]
		want := int64(40 + n)
		begun := time.Now()
		made := from.change(fmt.Sprintf(`{"idleSeconds":%d,"weights":{"interactive":9,"release":4,"bulk":%d,"background":1}}`, want, n+2))
		to.await(seenWithin, "the other's change is in force", func() bool { return to.settings().Revision == made.Revision })
		took := time.Since(begun)
		if s := to.settings(); s.Effective.IdleSeconds != want || s.Effective.Weights["bulk"] != n+2 || string(s.Overrides) != string(made.Overrides) || s.UpdatedBy == "" {
			p.t.Errorf("%s has %+v after %s", to.name, s, made.Overrides)
		}
		p.t.Logf("revision %d of %s is in force at %s after %d ms", made.Revision, from.name, to.name, took.Milliseconds())
	}
}

// unannounced: a change that no notification tells of, as behind a pooler, is found by looking.
func (p *pair) unannounced() {
	p.t.Helper()
	was := p.both[0].settings().Revision
	begun := time.Now()
	p.cluster.SQL(p.t, p.db, `UPDATE arkvory_download_settings SET revision = revision + 1, overrides = '{"idleSeconds":51}'`)
	for _, d := range p.both {
		d.await(seenWithin, "a change without a notification", func() bool { s := d.settings(); return s.Revision == was+1 && s.Effective.IdleSeconds == 51 })
		p.t.Logf("a change without a notification is in force at %s after %.1f s", d.name, time.Since(begun).Seconds())
	}
}

// races: of two operators who change the same revision at two processes one is told to read again, and what the other saved is what is there.
func (p *pair) races() {
	p.t.Helper()
	first := p.both[0].settings().Revision
	wins := raceOperators(p.t, raceRounds, func(side int, expected int64, overrides string) reply { return p.both[side].put(expected, overrides) },
		func(revision int64, overrides string) {
			for _, d := range p.both {
				d.await(seenWithin, "the winner's record", func() bool { return d.settings().Revision == revision })
				if s := d.settings(); string(s.Overrides) != overrides {
					p.t.Errorf("%s has %s, the winner saved %s", d.name, s.Overrides, overrides)
				}
			}
			if got := p.cluster.SQL(p.t, p.db, "SELECT revision, overrides FROM arkvory_download_settings"); got != fmt.Sprintf("%d|%s", revision, overrides) {
				p.t.Errorf("the row is %s, the winner saved revision %d, %s", got, revision, overrides)
			}
		}, first)
	p.t.Logf("%d rounds at two processes: %d and %d won, each round one 200 and one 409 revision_mismatch; revision %d -> %d", raceRounds, wins[0], wins[1], first, p.both[0].settings().Revision)
}

// raceOperators lets two operators send a change of the same revision at once, round after round, and checks each with won.
func raceOperators(t *testing.T, rounds int, put func(side int, expected int64, overrides string) reply, won func(revision int64, overrides string), revision int64) (wins [2]int) {
	t.Helper()
	for round := range rounds {
		var replies [2]reply
		start, both := make(chan struct{}), sync.WaitGroup{}
		for side := range replies {
			both.Go(func() {
				<-start
				replies[side] = put(side, revision, fmt.Sprintf(`{"sessions":%d,"idleSeconds":%d}`, 5+side, 100+2*round+side))
			})
		}
		close(start)
		both.Wait()
		winner := 0
		if replies[1].status == 200 {
			winner = 1
		}
		ok, lost := replies[winner], replies[1-winner]
		var saved settingsSeen
		var stale struct{ Revision int64 }
		_ = json.Unmarshal(lost.body, &stale)
		if err := json.Unmarshal(ok.body, &saved); err != nil || ok.status != 200 || lost.status != 409 || lost.reason() != "revision_mismatch" ||
			stale.Revision != revision+1 || saved.Revision != revision+1 || saved.Effective.IdleSeconds != int64(100+2*round+winner) {
			t.Fatalf("round %d from revision %d: %v and %v", round, revision, ok, lost)
		}
		wins[winner]++
		revision++
		won(revision, string(saved.Overrides))
	}
	return wins
}

// atPut ends or freezes the server while it carries a change out: another transaction holds the row, so that it is known to be on its way.
func (p *pair) atPut(what string, harm, heal func(testing.TB)) {
	p.t.Helper()
	before := p.both[0].settings()
	row := func() string {
		return p.cluster.SQL(p.t, p.db, "SELECT revision, overrides FROM arkvory_download_settings")
	}
	was := row()
	release, held := p.cluster.Hold(p.t, p.db, "SELECT * FROM arkvory_download_settings FOR UPDATE")
	<-held
	answers := make(chan reply, 1)
	go func() { answers <- p.both[0].put(before.Revision, `{"idleSeconds":99}`) }()
	p.both[0].await(2*time.Second, "the change waits for the row", func() bool {
		return p.cluster.SQL(p.t, p.db, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = '"+deskAccount+"'") == "1"
	})
	harm(p.t)
	for _, d := range p.both { // looks do not wait for the store
		if r := d.call("GET", deskPath+"/settings", ""); r.status != 200 || r.took > time.Second {
			p.t.Errorf("%s, %s: a look takes %v: %v", d.name, what, r.took, r)
		}
	}
	other := p.both[1].put(before.Revision, `{"idleSeconds":98}`)
	r := <-answers
	for _, one := range []reply{r, other} {
		if one.status != 503 || one.reason() != "settings_unavailable" {
			p.t.Errorf("%s: a change gets %v", what, one)
		}
	}
	p.t.Logf("database %s: 503 after %.1f s at the process that was saving and %.1f s at the other", what, r.took.Seconds(), other.took.Seconds())
	p.down(what, before.Revision)
	heal(p.t)
	release()
	p.up("back after it was "+what, before.Revision)
	if got := row(); got != was {
		p.t.Errorf("%s: the row was %s and is %s although the change was refused", what, was, got)
	}
	if made := p.both[1].change(`{"idleSeconds":60}`); made.Revision != before.Revision+1 {
		p.t.Errorf("%s: the next change has revision %d, want %d", what, made.Revision, before.Revision+1)
	} else {
		p.both[0].await(seenWithin, "the next change", func() bool { return p.both[0].settings().Revision == made.Revision })
	}
}

// tickets: what one process signed, the other believes, and so does its successor.
func (p *pair) tickets(binary, origin, dsn string) {
	p.t.Helper()
	p.both[0].change(`{"sessions":1}`)
	p.both[1].await(seenWithin, "one slot", func() bool { return p.both[1].settings().Effective.Sessions == 1 })
	for _, d := range p.both {
		d.await(10*time.Second, "no session is active", func() bool { return d.queue().Active == 0 })
		d.open(2000, "/slow", "occupant")
	}
	ask := func(d *desk, id, ticket string) *download {
		p.t.Helper()
		one, err := d.fetch(2001, "/slow", id, "Arkvory-Queue-Ticket", ticket)
		if err != nil || one.status != 503 || one.reason != "download_queued" {
			p.t.Fatalf("%s: %s gets %+v, %v", d.name, id, one, err)
		}
		return one
	}
	var early *download
	p.both[0].await(45*time.Second, "tickets are given: the key is asked for every 30 s", func() bool { early = ask(p.both[0], "early", ""); return early.ticket != "" })
	pause(300 * time.Millisecond)
	var late *download
	p.both[1].await(45*time.Second, "tickets are given: the key is asked for every 30 s", func() bool { late = ask(p.both[1], "late", ""); return late.ticket != "" })
	moved, thief := ask(p.both[1], "early", early.ticket), ask(p.both[1], "thief", early.ticket)
	if moved.position != 1 || thief.position != 3 {
		p.t.Errorf("with its ticket of the other process a download is at place %d, want 1; another's ticket gives place %d, want 3", moved.position, thief.position)
	}
	p.t.Logf("a ticket of process 1 at process 2: place %d before one that waited there; another's download with it: place %d; %v", moved.position, thief.position, (&sidecar{t: p.t, http: p.both[1].http, admin: p.both[1].admin}).ticketCounts())
	late = ask(p.both[1], "late", late.ticket)
	p.both[1].stop(syscall.SIGKILL)
	next := startDesk(p.t, binary, origin, "successor of process 2", deskVariables("ARKVORY_DATABASE_URL", dsn))
	p.both[1], p.all = next, append(p.all, next)
	if s := next.settings(); s.Problem != "" || s.Effective.Sessions != 1 || !s.Persisted {
		p.t.Errorf("the successor has %+v", s)
	}
	next.open(2000, "/slow", "occupant")
	newcomer, second := ask(next, "newcomer", ""), ask(next, "late", late.ticket)
	first := ask(next, "early", moved.ticket)
	if newcomer.position != 1 || second.position != 1 || first.position != 1 {
		p.t.Errorf("after the restart, each before those that are there: newcomer %d, late %d, early %d, want 1 each", newcomer.position, second.position, first.position)
	}
	if late, newcomer := ask(next, "late", second.ticket), ask(next, "newcomer", newcomer.ticket); late.position != 2 || newcomer.position != 3 {
		p.t.Errorf("after the restart late is at %d, newcomer at %d, want 2 and 3", late.position, newcomer.position)
	}
	p.t.Logf("after kill -9 of process 2 the order at its successor is early, late, newcomer; they came in the opposite order")
}
