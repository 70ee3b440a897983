package pgtest

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// superuser owns the cluster; connections on the socket need no password.
const superuser = "arkvory"

// Cluster is one PostgreSQL cluster and the server over it. Its methods are safe for concurrent use; those that change its state must not race each other. They fail
// the test that made the cluster when the operating system refuses something.
type Cluster struct {
	bin, dir string
	account  *syscall.Credential
	guardian *guardian

	mu     sync.Mutex
	server *server // nil while stopped
	frozen []int   // the processes that Pause stopped
}

// server is one run of the program postgres.
type server struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone and its log was read
}

// Start returns a running cluster of this test, which ends with it.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// open makes a cluster and starts it.
func open() (c *Cluster, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	c = &Cluster{bin: bin, dir: dir, account: account()}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.guardian, err = guard(dir); err != nil {
		return c, err
	}
	if c.account != nil {
		if err := os.Chown(dir, int(c.account.Uid), int(c.account.Gid)); err != nil {
			return c, fmt.Errorf("cannot give the folder of PostgreSQL to its account: %w", err)
		}
	}
	initdb := c.command("initdb", "--pgdata", c.data(), "--username", superuser, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync",
		"--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		return c, fmt.Errorf("cannot make a PostgreSQL cluster: initdb: %w\n%s", err, out)
	}
	return c, c.start()
}

// folder makes the folder of a cluster. The path of a Unix socket has at most 107 bytes, so a long TMPDIR is not used.
func folder() (string, error) {
	parent := os.TempDir()
	if len(parent) > 60 {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "arkvory-pg-")
	if err != nil {
		return "", fmt.Errorf("cannot make a folder for PostgreSQL: %w", err)
	}
	return dir, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// command is a program of PostgreSQL, run by its account.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + c.dir, "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account, Setpgid: true} // an interrupt of the terminal is the test's alone
	return cmd
}

// ready is what the server's log says once it takes connections.
const ready = "database system is ready to accept connections"

// start runs the server and returns when it takes connections.
func (c *Cluster) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		return nil
	}
	cmd := c.command("postgres", "-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "max_connections=60", "-c", "shared_buffers=16MB", "-c", "dynamic_shared_memory_type=mmap",
		"-c", "log_min_messages=warning", "-c", "unix_socket_permissions=0777", "-c", "autovacuum=off")
	log, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("cannot start PostgreSQL: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start PostgreSQL: %w", err)
	}
	s := &server{cmd: cmd, ended: make(chan struct{})}
	up, last := make(chan struct{}), new(tail)
	go func() {
		defer close(s.ended)
		once := sync.OnceFunc(func() { close(up) })
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if last.add(lines.Text()); strings.Contains(lines.Text(), ready) {
				once()
			}
		}
		_, _ = io.Copy(io.Discard, log) // a line too long for the scanner
		_ = cmd.Wait()
	}()
	select {
	case <-up:
		c.server = s
		return nil
	case <-s.ended:
		return fmt.Errorf("cannot start PostgreSQL: %s\n%s", cmd.ProcessState, last)
	}
}

// Start starts a stopped cluster; a running one is left as it is.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the server as an operator does who does not wait for connections to end. Clients see their connections closed with a word.
func (c *Cluster) Stop(t testing.TB) { t.Helper(); c.end(t, syscall.SIGINT) }

// Kill ends the server at once, as a crash of it does. Start recovers what was committed.
func (c *Cluster) Kill(t testing.TB) { t.Helper(); c.end(t, syscall.SIGQUIT) }

// Restart is Stop and Start.
func (c *Cluster) Restart(t testing.TB) { t.Helper(); c.Stop(t); c.Start(t) }

func (c *Cluster) end(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := c.signal(signal); err != nil {
		t.Fatal(err)
	}
}

// signal sends a signal that ends the server and waits for its end. A frozen one is woken, for it would not hear.
func (c *Cluster) signal(signal syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return nil
	}
	err := c.server.cmd.Process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	c.wakeLocked()
	if err != nil {
		return fmt.Errorf("cannot end PostgreSQL: %w", err)
	}
	<-c.server.ended
	c.server = nil
	return nil
}

// close ends the server, removes the folder and ends the guardian.
func (c *Cluster) close() error {
	err := c.signal(syscall.SIGQUIT)
	err = errors.Join(err, os.RemoveAll(c.dir))
	if c.guardian != nil {
		err = errors.Join(err, c.guardian.close())
	}
	return err
}

// URL is the connection string of a database of the cluster, as its superuser; parameters like "connect_timeout=3" are added to it.
func (c *Cluster) URL(database string, parameters ...string) string {
	return c.URLOf(superuser, database, parameters...)
}

// URLOf is URL for an account of the cluster.
func (c *Cluster) URLOf(account, database string, parameters ...string) string {
	return "postgres://" + account + "@/" + database + "?" + strings.Join(append([]string{"host=" + c.dir, "port=5432"}, parameters...), "&")
}

// Database makes an empty database with a random name, dropped with the test when the server still runs then, and returns its connection string.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := "t" + strings.ToLower(rand.Text()[:16])
	c.SQL(t, "postgres", "CREATE DATABASE "+name)
	t.Cleanup(func() {
		c.mu.Lock()
		running := c.server != nil && len(c.frozen) == 0
		c.mu.Unlock()
		if running {
			c.SQL(t, "postgres", "DROP DATABASE "+name+" WITH (FORCE)")
		}
	})
	return c.URL(name)
}

// Name is the database of a connection string that Database returned.
func Name(url string) string {
	_, rest, _ := strings.Cut(url, "@/")
	name, _, _ := strings.Cut(rest, "?")
	return name
}

// SQL runs a statement in a database as the superuser, by psql, and returns what it prints: rows as lines, columns between bars.
func (c *Cluster) SQL(t testing.TB, database, statement string) string {
	t.Helper()
	out, err := c.command("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", "--dbname", c.URL(database),
		"--command", statement).CombinedOutput()
	if err != nil {
		t.Fatalf("cannot run %q: %v\n%s", statement, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Hold runs a statement in a transaction of its own that stays open: held is closed once the statement was carried out, release takes it back.
func (c *Cluster) Hold(t testing.TB, database, statement string) (release func(), held <-chan struct{}) {
	t.Helper()
	cmd := c.command("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--set", "ON_ERROR_STOP=1", "--dbname", c.URL(database))
	input, err1 := cmd.StdinPipe()
	output, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(input, "BEGIN;\n%s;\n\\echo held\n", statement)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		once := sync.OnceFunc(func() { close(done) })
		defer once() // an error: who waits goes on and sees that nothing is held
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if lines.Text() == "held" {
				once()
			}
		}
	}()
	release = sync.OnceFunc(func() {
		_ = input.Close()
		<-ended
		_ = cmd.Wait()
	})
	t.Cleanup(release)
	return release, done
}

// tail keeps the last lines of a log.
type tail struct{ lines []string }

func (l *tail) add(line string) {
	if l.lines = append(l.lines, line); len(l.lines) > 20 {
		l.lines = l.lines[1:]
	}
}

func (l *tail) String() string { return strings.Join(l.lines, "\n") }
