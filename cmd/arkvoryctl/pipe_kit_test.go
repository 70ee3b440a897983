//go:build linux

package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pipe is the standard output of a program, read while it runs.
type pipe struct {
	t      *testing.T
	writer *os.File // for the program
	reader *os.File
	lines  *bufio.Reader
	seen   strings.Builder
}

func openPipe(t *testing.T) *pipe {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = reader.Close()
		_ = writer.Close()
	})
	return &pipe{t: t, writer: writer, reader: reader, lines: bufio.NewReader(reader)}
}

// until reads lines until one contains a text, and returns that line.
func (p *pipe) until(want string) string {
	p.t.Helper()
	_ = p.writer.Close() // the program has its own: its end must be seen here
	if err := p.reader.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	for {
		line, err := p.lines.ReadString('\n')
		p.seen.WriteString(line)
		if err != nil {
			p.t.Fatalf("%v before %q; it printed\n%s", err, want, p.seen.String())
		}
		if strings.Contains(line, want) {
			return line
		}
	}
}

// rest is all that was printed, after the program ended.
func (p *pipe) rest() string {
	p.t.Helper()
	_ = p.writer.Close()
	rest, err := io.ReadAll(p.lines)
	if err != nil {
		p.t.Fatal(err)
	}
	p.seen.Write(rest)
	return p.seen.String()
}

// fill makes the pipe as small as can be and leaves room for so many bytes.
func (p *pipe) fill(room int) {
	p.t.Helper()
	size, err := unix.FcntlInt(p.writer.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.writer.Write(make([]byte, size-room)); err != nil {
		p.t.Fatal(err)
	}
}
