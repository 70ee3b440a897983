//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a test waits for something to be seen before it fails.
const patience = 30 * time.Second

// terminal is a real pseudo-terminal and what a screen of its size shows of what was written to it.
type terminal struct {
	t             *testing.T
	master, slave *os.File
	number        int // descriptor of the master; asking the file for it would make its reads block for good
	ended         chan struct{}

	mu      sync.Mutex
	screen  screen
	raw     strings.Builder
	changed chan struct{} // closed and replaced at each change
}

// openTerminal opens a pseudo-terminal of so many columns.
func openTerminal(t *testing.T, columns int) *terminal {
	t.Helper()
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &terminal{t: t, master: os.NewFile(uintptr(master), "/dev/ptmx"), slave: slave, number: master, ended: make(chan struct{}), changed: make(chan struct{})}
	p.resize(columns)
	go p.read()
	t.Cleanup(p.close)
	return p
}

// resize makes the window so many columns wide, as a person does with the mouse.
func (p *terminal) resize(columns int) {
	p.t.Helper()
	p.mu.Lock()
	p.screen.columns = columns
	p.mu.Unlock()
	if err := unix.IoctlSetWinsize(p.number, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}); err != nil {
		p.t.Fatal(err)
	}
}

// read draws what comes until nobody can write any more.
func (p *terminal) read() {
	defer close(p.ended)
	buffer := make([]byte, 4096)
	for {
		n, err := p.master.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.raw.Write(buffer[:n])
		p.screen.write(string(buffer[:n]))
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
}

// hangUp closes this end's slave: once the processes that hold it are gone the terminal has shown all.
func (p *terminal) hangUp() {
	_ = p.slave.Close()
	<-p.ended
}

// close ends the terminal, whoever still holds it.
func (p *terminal) close() {
	_ = p.slave.Close()
	_ = p.master.Close()
	<-p.ended
}

// text is what the screen shows now.
func (p *terminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.text()
}

// sent is all that was written to it, as it was.
func (p *terminal) sent() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

// sees waits until the screen shows a text and returns the screen.
func (p *terminal) sees(want string) string {
	p.t.Helper()
	return p.seesThat(strconv.Quote(want), func(text string) bool { return strings.Contains(text, want) })
}

// seesThat waits until the screen is as wanted and returns it.
func (p *terminal) seesThat(what string, is func(text string) bool) string {
	p.t.Helper()
	end := time.After(patience)
	for {
		p.mu.Lock()
		text, changed := p.screen.text(), p.changed
		p.mu.Unlock()
		if is(text) {
			return text
		}
		select {
		case <-changed:
		case <-p.ended:
			if text = p.text(); is(text) {
				return text
			}
			p.t.Fatalf("the screen never showed %s but ended as\n%s", what, text)
		case <-end:
			p.t.Fatalf("the screen does not show %s but\n%s", what, text)
		}
	}
}

// screen draws what a terminal is sent: text, wrapping, the moves of the cursor that programs of this kind use. Another sequence is shown
// as an error in the text, so that no test passes over it.
type screen struct {
	columns  int
	rows     [][]rune
	row, col int
	pending  string // the beginning of a sequence
	colours  int    // sequences that colour
}

func (s *screen) write(text string) {
	text, s.pending = s.pending+text, ""
	for i := 0; i < len(text); {
		if text[i] == 0x1b {
			end := strings.IndexFunc(text[i+1:], func(r rune) bool { return r != '[' && r != ';' && (r < '0' || r > '9') })
			if end < 0 {
				s.pending = text[i:]
				return
			}
			s.control(text[i+1:i+1+end], text[i+1+end])
			i += end + 2
			continue
		}
		size := 1
		for i+size < len(text) && text[i+size]&0xc0 == 0x80 { // the rest of a rune
			size++
		}
		s.put([]rune(text[i : i+size])[0])
		i += size
	}
}

func (s *screen) control(parameters string, final byte) {
	count := 1
	_, _ = fmt.Sscanf(parameters, "[%d", &count)
	switch {
	case final == 'A':
		s.row = max(0, s.row-count)
	case final == 'J' && parameters == "[":
		s.line()
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
		s.rows = s.rows[:s.row+1]
	case final == 'm':
		s.colours++
	default:
		for _, r := range "<ESC" + parameters + string(final) + ">" {
			s.put(r)
		}
	}
}

// line makes sure that the cursor's row is there.
func (s *screen) line() {
	for len(s.rows) <= s.row {
		s.rows = append(s.rows, nil)
	}
}

func (s *screen) put(r rune) {
	switch r {
	case '\a':
		return
	case '\r':
		s.col = 0
		return
	case '\n':
		s.row++
		s.line()
		return
	}
	if s.col >= s.columns {
		s.row, s.col = s.row+1, 0
	}
	s.line()
	for len(s.rows[s.row]) <= s.col {
		s.rows[s.row] = append(s.rows[s.row], ' ')
	}
	s.rows[s.row][s.col] = r
	s.col++
}

// text is the screen without the spaces at the ends of lines and without empty lines at its end.
func (s *screen) text() string {
	var lines []string
	for _, row := range s.rows {
		lines = append(lines, strings.TrimRight(string(row), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
