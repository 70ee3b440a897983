package pgtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Pause freezes the server and all its processes: connections stay open and nobody answers, as when its machine was suspended. New connections are taken by
// the kernel and not answered either.
func (c *Cluster) Pause(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil || len(c.frozen) > 0 {
		return
	}
	postmaster := c.server.cmd.Process.Pid
	if err := syscall.Kill(postmaster, syscall.SIGSTOP); err != nil {
		t.Fatalf("cannot freeze PostgreSQL: %v", err)
	}
	c.frozen = append(c.frozen, postmaster)
	stopped(postmaster) // before they are counted: until then it still makes processes
	for _, pid := range childrenOf(postmaster) {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err == nil {
			c.frozen = append(c.frozen, pid)
		}
	}
	if err := c.guardian.note(c.frozen); err != nil {
		t.Fatal(err)
	}
	for _, pid := range c.frozen {
		stopped(pid)
	}
}

// stopped returns when a process that was told to stop has: the signal is on its way for a moment. A child that has ended stays Z, since who waits for it is frozen.
func stopped(pid int) {
	for state := "R"; state != "T" && state != "Z" && state != ""; state, _ = status(pid) {
		runtime.Gosched()
	}
}

// Resume wakes a frozen server. What clients sent meanwhile is carried out then, unless they cancelled it.
func (c *Cluster) Resume(testing.TB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeLocked()
}

// wakeLocked wakes the children before their postmaster: it would take silent ones for lost.
func (c *Cluster) wakeLocked() {
	for i := len(c.frozen) - 1; i >= 0; i-- {
		_ = syscall.Kill(c.frozen[i], syscall.SIGCONT) // stopped processes do not end, so the ids are still theirs
	}
	if c.frozen != nil {
		_ = c.guardian.note(nil)
	}
	c.frozen = nil
}

// childrenOf lists the processes of a parent.
func childrenOf(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []int
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if _, itsParent := status(pid); itsParent == parent {
			all = append(all, pid)
		}
	}
	return all
}

// status returns the state letter and the parent of a process, nothing when there is none (any more).
func status(pid int) (state string, parent int) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0
	}
	// pid (name) state ppid: the name may hold anything, parentheses included.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// notFound words what is missing.
func notFound(name string) error {
	return fmt.Errorf("cannot find the program %s of PostgreSQL in PATH or /usr/lib/postgresql/*/bin: the tests need it; on Debian: apt-get install postgresql, or make needs", name)
}
