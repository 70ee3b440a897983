package proxy

import (
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// markBytes is the length of a mark: its version, the part of the listing, the position, the id, the time and the number.
const markBytes = 2 + 4*8

// formatMark is the cursor of a page's end: opaque to clients, and valid for as long as the process lives.
func formatMark(m queue.Mark) string {
	b := append(make([]byte, 0, markBytes), 1, m.Phase)
	for _, n := range [...]uint64{uint64(m.Position), uint64(m.ID), uint64(m.Since), m.Number} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseMark reads a cursor; empty is the beginning. A cursor that somebody made up may lead anywhere in the listing, never out of it.
func parseMark(text string) (m queue.Mark, err error) {
	if text == "" {
		return m, nil
	}
	var b [markBytes]byte
	if len(text) != base64.RawURLEncoding.EncodedLen(markBytes) {
		return m, badMark()
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(b[:], []byte(text)); err != nil || b[0] != 1 {
		return m, badMark()
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[2+8*i:]) }
	m = queue.Mark{Phase: b[1], Position: int(at(0)), ID: queue.SessionID(at(1)), Since: time.Duration(at(2)), Number: at(3)}
	if m.Position < 0 || m.Position > queue.MaxQueueLimit {
		return queue.Mark{}, badMark()
	}
	return m, nil
}

func badMark() error {
	return &admin.QueryError{Field: "after", Rule: "the next of an earlier page of the same query", Example: formatMark(queue.Mark{Phase: 1, Position: 100, ID: 1})}
}
