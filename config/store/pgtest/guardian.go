package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// guardian ends a cluster whose test binary did not.
type guardian struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
	dir  string
}

// watchOver waits for the end of its input, that is for the end of the test binary or for close. A folder that is still there then was left behind: the server is told to
// end (its id stands in the first line of postmaster.pid while it runs), frozen processes are woken so that they hear it, and the folder goes.
const watchOver = `cat >/dev/null
[ -d "$1" ] || exit 0
server=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
[ -z "$server" ] || kill -QUIT "$server" 2>/dev/null
for id in $(cat "$1/frozen" 2>/dev/null); do kill -CONT "$id" 2>/dev/null; done
tries=0
while [ -n "$server" ] && kill -0 "$server" 2>/dev/null && [ $tries -lt 100 ]; do tries=$((tries+1)); sleep 0.1; done
rm -rf "$1"`

// guard starts the guardian of a folder.
func guard(dir string) (*guardian, error) {
	cmd := exec.Command("/bin/sh", "-c", watchOver, "guardian", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives what ends the process group of the tests
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot guard PostgreSQL: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot guard PostgreSQL: %w", err)
	}
	return &guardian{cmd: cmd, pipe: pipe, dir: dir}, nil
}

// note tells the guardian which processes are frozen.
func (g *guardian) note(pids []int) error {
	var text strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&text, pid)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "frozen"), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("cannot note what is frozen: %w", err)
	}
	return nil
}

// close lets the guardian go.
func (g *guardian) close() error {
	return errors.Join(g.pipe.Close(), g.cmd.Wait())
}

// programs returns the folder of PostgreSQL's programs.
func programs() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return complete(filepath.Dir(path))
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", notFound("postgres")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return complete(filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })))
}

// complete reports what a folder of programs lacks.
func complete(bin string) (string, error) {
	for _, name := range []string{"initdb", "psql"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", notFound(name)
		}
	}
	return bin, nil
}

// account is who runs PostgreSQL: nil, that is ourselves, unless we are root.
func account() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := user.Lookup(name); err == nil {
			uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
			gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
			if err1 == nil && err2 == nil {
				return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			}
		}
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}
