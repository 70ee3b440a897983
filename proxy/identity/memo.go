package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/binary"
	"net/netip"

	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/wire"
)

// maxMemo bounds the credential bytes that a memo keeps; requests with more are identified anew each time.
const maxMemo = 4096

// Memo remembers the identity of the last request of one connection. The zero value is ready. It belongs to one goroutine at a time and
// holds credentials in clear, so it must not outlive its connection without Reset.
type Memo struct {
	tape    []byte // what the identity was made from; empty and set false when it was too long
	set     bool
	table   *table
	classes *classes
	cert    *x509.Certificate
	peer    netip.Addr
	id      Identity
}

// Reset forgets everything and wipes the credentials; it keeps the capacity.
func (m *Memo) Reset() {
	clear(m.tape)
	*m = Memo{tape: m.tape[:0]}
}

// IdentifyMemo is Identify with the memo of the connection, nil for none. A request whose credentials, forwarding fields, peer and
// certificate equal those of the request before costs a comparison and allocates nothing; a new version of the principals file
// and new classes of the live settings are noticed.
func (d *Identifier) IdentifyMemo(m *Memo, h *wire.Head, peer netip.Addr, cert *x509.Certificate) Identity {
	t, c := d.table.Load(), d.classes.Load()
	peer = peer.Unmap().WithZone("")
	if m == nil {
		return d.identify(t, c, h, peer, cert, "")
	}
	if m.set && m.table == t && m.classes == c && m.cert == cert && m.peer == peer {
		check := tape{buf: m.tape, compare: true}
		d.play(&check, h)
		if !check.differs && len(check.buf) == 0 {
			return m.id
		}
	}
	id := d.identify(t, c, h, peer, cert, m.id.Principal)
	clear(m.tape)
	rec := tape{buf: m.tape[:0], limit: maxMemo}
	d.play(&rec, h)
	m.tape, m.set = rec.buf, !rec.differs
	m.table, m.classes, m.cert, m.peer, m.id = t, c, cert, peer, id
	return id
}

// play puts everything that decides an identity, beside peer, certificate and table, on the tape.
func (d *Identifier) play(t *tape, h *wire.Head) {
	d.record(t, h)
	for _, f := range h.Fields {
		if f.ID == wire.ForwardedFor || f.ID == wire.Forwarded {
			t.put(h.Name(f))
			t.put(h.Value(f))
		}
	}
	if object.FamilyOf(h.Target) != object.Unsigned {
		t.put(h.Target[bytes.IndexByte(h.Target, '?'):])
	}
}

// tape writes a list of byte strings, or compares one with what was written: then buf is what is left of it. Each string has its
// length before it, so that equal tapes mean equal lists.
type tape struct {
	buf     []byte
	limit   int // of a writing tape, 0 for none
	compare bool
	differs bool // something did not match, or did not fit
}

func (t *tape) put(b []byte) {
	switch {
	case t.differs:
	case !t.compare && t.limit > 0 && len(t.buf)+4+len(b) > t.limit:
		clear(t.buf)
		t.buf, t.differs = t.buf[:0], true
	case !t.compare:
		t.buf = binary.BigEndian.AppendUint32(t.buf, uint32(len(b)))
		t.buf = append(t.buf, b...)
	case len(t.buf) < 4+len(b) || binary.BigEndian.Uint32(t.buf) != uint32(len(b)) || !bytes.Equal(t.buf[4:4+len(b)], b):
		t.differs = true
	default:
		t.buf = t.buf[4+len(b):]
	}
}
