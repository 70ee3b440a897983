package sim

import (
	"bufio"
	"io"
	"strconv"
	"time"
)

// tracer writes one line a decision or event: virtual seconds, client, what, two numbers of its. A nil one writes nothing.
type tracer struct {
	out *bufio.Writer
	buf []byte
}

func newTracer(to io.Writer) *tracer {
	if to == nil {
		return nil
	}
	return &tracer{out: bufio.NewWriterSize(to, 1<<16)}
}

func (t *tracer) line(now time.Duration, c *client, what string, a, b int64) {
	if t == nil {
		return
	}
	t.buf = strconv.AppendFloat(t.buf[:0], now.Seconds(), 'f', 9, 64)
	t.buf = append(t.buf, ' ', 'c')
	t.buf = strconv.AppendInt(t.buf, int64(c.id), 10)
	t.buf = append(t.buf, ' ')
	t.buf = append(t.buf, what...)
	t.buf = append(t.buf, ' ')
	t.buf = strconv.AppendInt(t.buf, a, 10)
	t.buf = append(t.buf, ' ')
	t.buf = strconv.AppendInt(t.buf, b, 10)
	t.buf = append(t.buf, '\n')
	_, _ = t.out.Write(t.buf) // bufio keeps the first error for flush
}

func (t *tracer) flush() error {
	if t == nil {
		return nil
	}
	return t.out.Flush()
}
