package ticket

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
)

// Source is where an installation's key comes from. Implementations are safe for concurrent use.
type Source interface {
	// Key returns the key, the same at every successful call. It may block on a file or a database; a done ctx ends it with the
	// context's error. Errors say what an operator should do and never hold a key. After an error it may be called again.
	Key(ctx context.Context) (Key, error)
	// Name is a word of a closed set for logs and readiness: SourceVariable, SourceDatabase, SourceStateDir, SourceRandom.
	Name() string
}

// Names of the sources.
const (
	SourceVariable = "variable"
	SourceDatabase = "database"
	SourceStateDir = "state-dir"
	SourceRandom   = "random"
)

const (
	variable        = "ARKVORY_TICKET_KEY"
	variableRule    = "exactly 32 bytes as 64 hex digits or in base64 (standard or URL alphabet, 43 characters, or 44 with padding)"
	variableExample = "openssl rand -hex 32"
)

// fixed is a source that has its key. The key is in a closure, out of the reach of anything that prints the struct.
type fixed struct {
	name string
	key  func() Key
}

func newFixed(name string, key Key) *fixed {
	return &fixed{name: name, key: func() Key { return key }}
}

func (f *fixed) Name() string { return f.name }

func (f *fixed) Key(ctx context.Context) (Key, error) {
	if err := ctx.Err(); err != nil {
		return Key{}, err
	}
	return f.key(), nil
}

// FromVariable returns the source of a key that is written in ARKVORY_TICKET_KEY: exactly 32 bytes as 64 hex digits of either
// case or in base64 of either alphabet, with or without padding. White space around it, as files that become variables
// end with, is ignored. The error names the variable, the rule and a command that makes a key, and not the text.
func FromVariable(text string) (Source, error) {
	key, ok := parseKey(strings.Trim(text, " \t\r\n"))
	if !ok {
		return nil, fmt.Errorf("cannot use %s: its text of %d bytes is no key; rule: %s; example: %s=$(%s)",
			variable, len(text), variableRule, variable, variableExample)
	}
	return newFixed(SourceVariable, key), nil
}

// FromDatabase returns the source of a key that all processes of an installation read from one row, which the first of them makes. Read does so and is called by each Key
// until it succeeded; the key is kept then. Its errors must say what to do and hold neither the key nor the address of the database with its password.
func FromDatabase(read func(context.Context) ([KeyBytes]byte, error)) Source {
	return &database{read: read}
}

type database struct {
	read func(context.Context) ([KeyBytes]byte, error)
	mu   sync.Mutex
	kept Source // nil until it was read
}

func (*database) Name() string { return SourceDatabase }

func (d *database) Key(ctx context.Context) (Key, error) {
	d.mu.Lock()
	kept := d.kept
	d.mu.Unlock()
	if kept != nil {
		return kept.Key(ctx)
	}
	raw, err := d.read(ctx)
	if err != nil {
		return Key{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil {
		d.kept = newFixed(SourceDatabase, raw)
	}
	return d.kept.Key(ctx)
}

// parseKey reads the spellings of a key. Their lengths differ, so no text has two meanings.
func parseKey(text string) (key Key, ok bool) {
	if len(text) == hex.EncodedLen(KeyBytes) {
		return parseHex([]byte(text))
	}
	if len(text) == base64.StdEncoding.EncodedLen(KeyBytes) {
		text = strings.TrimSuffix(text, "=")
	}
	if len(text) != base64.RawStdEncoding.EncodedLen(KeyBytes) {
		return Key{}, false
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		// The decoder skips line breaks; a text with some is too short then.
		raw, err := encoding.Strict().DecodeString(text)
		if err == nil && len(raw) == KeyBytes {
			return Key(raw), true
		}
	}
	return Key{}, false
}

// parseHex reads 64 hex digits.
func parseHex(text []byte) (key Key, ok bool) {
	if len(text) != hex.EncodedLen(KeyBytes) {
		return Key{}, false
	}
	if _, err := hex.Decode(key[:], text); err != nil {
		return Key{}, false
	}
	return key, true
}

// Random returns a source of one random key for the life of the process: its tickets are worth nothing after a restart and to other
// processes, of which the caller warns.
func Random() Source {
	var key Key
	rand.Read(key[:]) // never fails: it ends the process instead
	return newFixed(SourceRandom, key)
}
