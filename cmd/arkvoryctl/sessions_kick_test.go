//go:build linux

package main

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// TestX7_KickAsks on a terminal, shows whom, and takes nothing but a yes for one.
func TestX7_KickAsks(t *testing.T) {
	const first, second = "000000000000b000", "000000000000b001"
	for _, one := range []struct {
		answer string
		code   int
		done   []string
	}{
		{"\n", exitWork, nil}, {"n\n", exitWork, nil}, {"yess\n", exitWork, nil}, {"y\n", exitDone, []string{"kick " + first, "kick " + second}}, {"YES\n", exitDone, []string{"kick " + first, "kick " + second}},
		{"\x03", exitInterrupted, nil}, {"\x04", exitWork, nil},
	} {
		s := stand(t, deskSettings{})
		p := openTerminal(t, 160)
		c := start(t, t.TempDir(), []string{"ARKVORY_ADMIN_URL=" + s.url}, func(c *exec.Cmd) {
			c.Stdin, c.Stdout, c.Stderr = p.slave, p.slave, p.slave
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
		}, "sessions", "kick", first, second)
		p.sees("Kick these 2 sessions? [y/N]")
		p.sees(second + "  waiting")
		if got := s.done(); len(got) > 0 {
			t.Errorf("done before the answer: %q", got)
		}
		if _, err := p.master.WriteString(one.answer); err != nil {
			t.Fatal(err)
		}
		if code := c.end(); code != one.code || !slices.Equal(s.done(), one.done) {
			t.Errorf("%q: code %d (want %d), done %q, screen\n%s", one.answer, code, one.code, s.done(), p.text())
		}
	}
}
