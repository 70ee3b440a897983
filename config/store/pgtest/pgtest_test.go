package pgtest

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// abandoned makes the test binary a process that starts a cluster, freezes it, says where it is and panics.
const abandoned = "ARKVORY_PGTEST_ABANDONED"

func TestMain(m *testing.M) {
	code := Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

func TestDatabasesAreApart(t *testing.T) {
	c := Shared(t)
	if Shared(t) != c {
		t.Error("two shared clusters")
	}
	one, other := Name(c.Database(t)), Name(c.Database(t))
	c.SQL(t, one, "CREATE TABLE a (n int)")
	c.SQL(t, one, "INSERT INTO a VALUES (1), (2)")
	if got := c.SQL(t, one, "SELECT n, 'x' FROM a ORDER BY n"); got != "1|x\n2|x" {
		t.Errorf("%q", got)
	}
	if got := c.SQL(t, other, "SELECT count(*) FROM pg_tables WHERE tablename = 'a'"); got != "0" || one == other {
		t.Errorf("%s sees the table of %s", other, one)
	}
}

func TestStopKillRestartKeepWhatWasCommitted(t *testing.T) {
	c := Start(t)
	db := Name(c.Database(t))
	c.SQL(t, db, "CREATE TABLE a (n int)")
	for i, end := range []func(testing.TB){c.Stop, c.Kill, c.Stop} {
		c.SQL(t, db, "INSERT INTO a VALUES (1)")
		end(t)
		end(t) // twice is once
		if out, err := c.command("psql", "--dbname", c.URL(db), "--command", "SELECT 1").CombinedOutput(); err == nil {
			t.Errorf("a stopped server answers: %s", out)
		}
		c.Start(t)
		if got := c.SQL(t, db, "SELECT count(*) FROM a"); got != strconv.Itoa(i+1) {
			t.Errorf("after end %d: %s rows", i, got)
		}
	}
	c.Restart(t)
}

func TestPauseFreezesEveryProcess(t *testing.T) {
	c := Start(t)
	c.Pause(t)
	if len(c.frozen) < 4 { // the server, checkpointer, writers
		t.Errorf("froze %v", c.frozen)
	}
	for _, pid := range c.frozen {
		if s, _ := status(pid); s != "T" && s != "Z" {
			t.Errorf("process %d is in state %s", pid, s)
		}
	}
	c.Resume(t)
	if got := c.SQL(t, "postgres", "SELECT 1"); got != "1" {
		t.Error(got)
	}
	c.Pause(t) // and its end finds it frozen
}

// TestAbandonedClusterEnds: the process that a panic ended leaves no server, no frozen process, no folder.
func TestAbandonedClusterEnds(t *testing.T) {
	if os.Getenv(abandoned) != "" {
		c := Start(t)
		c.Pause(t)
		os.Stdout.WriteString("\n" + c.dir + " " + strconv.Itoa(c.guardian.cmd.Process.Pid) + " " + strconv.Itoa(c.server.cmd.Process.Pid) + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		go panic("abandoned") // of another goroutine: no cleanup runs
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAbandonedClusterEnds$")
	cmd.Env = append(os.Environ(), abandoned+"=1")
	input, err1 := cmd.StdinPipe()
	output, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for lines := bufio.NewScanner(output); len(fields) != 3 && lines.Scan(); {
		fields = strings.Fields(lines.Text())
	}
	if len(fields) != 3 {
		t.Fatalf("no cluster: %v", cmd.Wait())
	}
	guardian, err1 := strconv.Atoi(fields[1])
	server, err2 := strconv.Atoi(fields[2])
	end, err3 := unix.PidfdOpen(guardian, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(end)
	input.Close()
	if err := cmd.Wait(); err == nil {
		t.Error("the process did not panic")
	}
	for n, err := 0, error(nil); n == 0; n, err = unix.Poll([]unix.PollFd{{Fd: int32(end), Events: unix.POLLIN}}, -1) {
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(fields[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was left behind: %v", fields[0], err)
	}
	if state, _ := status(server); state != "" && state != "Z" { // an orphan waits for whoever took it
		t.Errorf("server %d lives in state %s", server, state)
	}
}

func TestMissingProgramIsNamed(t *testing.T) {
	if _, err := complete(t.TempDir()); err == nil || !strings.Contains(err.Error(), "initdb") || !strings.Contains(err.Error(), "apt-get install") {
		t.Error(err)
	}
}
