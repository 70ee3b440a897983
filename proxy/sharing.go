package proxy

import (
	"bytes"
	"crypto/sha256"

	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/wire"
)

// sharedBy is who shares the pieces: those whose requests agree in all that the origin tells its answers apart by, or the client alone when it calls its answer private, or knows
// it by a date only and was shown credentials. Both fields may come in several lines.
func (x *exchange) sharedBy() string {
	resp, req := &x.w.Resp, &x.c.Req
	var by []byte
	alone := x.span.facts.Validator[0] != '"' && x.id.Credentials != [16]byte{} // a date tells nothing about whose bytes they are (RFC 9111 section 3.5)
	for _, f := range resp.Fields {
		switch name, value := resp.Name(f), resp.Value(f); {
		case wire.EqualFold(name, "cache-control"):
			alone = alone || private(value)
		case wire.EqualFold(name, "vary"):
			for token := range bytes.SplitSeq(value, comma) {
				by = req.AppendValues(append(by, 0), string(bytes.ToLower(bytes.TrimSpace(token))))
				alone = alone || string(bytes.TrimSpace(token)) == "*"
			}
		}
	}
	if alone {
		return string(x.id.Credentials[:]) + x.id.Client.String()
	}
	sum := sha256.Sum256(by)
	return string(sum[:])
}

// private reports whether a value of Cache-Control keeps shared caches from an answer, also with the names of fields behind the option.
func private(value []byte) bool {
	for token := range bytes.SplitSeq(value, comma) {
		name, _, _ := bytes.Cut(bytes.TrimSpace(token), equals)
		if wire.EqualFold(name, "private") || wire.EqualFold(name, "no-store") {
			return true
		}
	}
	return false
}

var equals = []byte("=")

// sharedKey names the bytes of the object for all who are fed with it. Their first piece is a part of the name: origins give several languages, encodings or users
// different bytes under one validator, a date above all, and nobody may be fed what another one was given.
func (x *exchange) sharedKey(by string, piece []byte) object.Key {
	sum := sha256.Sum256(piece)
	name := append(append([]byte(nil), x.name...), 0)
	name = append(append(name, x.span.facts.Validator...), 0)
	return object.MakeKey(append(append(name, by...), sum[:]...), [16]byte{})
}
