package ticket

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// shows reports whether a text holds the key, or its padded form, in a spelling that it may have been printed in.
func shows(text string, key Key) bool {
	p := newPads(key)
	for _, secret := range [][]byte{key[:8], key[24:], p.inner[:8], p.outer[:8]} {
		plain := fmt.Sprint(secret)
		for _, spelling := range []string{
			string(secret), hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret[:6]), strings.Trim(plain, "[]"),
			strings.ReplaceAll(strings.Trim(plain, "[]"), " ", ","), strings.Trim(fmt.Sprintf("%x", secret), "[]"),
			strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", secret), "[]byte{"), "}"), strings.Trim(fmt.Sprintf("% x", secret), "[]"),
			strings.Trim(fmt.Sprintf("%o", secret), "[]"), strings.Trim(fmt.Sprintf("%b", secret), "[]"),
		} {
			if strings.Contains(strings.ToLower(text), strings.ToLower(spelling)) {
				return true
			}
		}
	}
	return false
}

// TestT3_KeyIsNeverShown by any verb, encoder or logger, nor are the signer's and the sources' copies.
func TestT3_KeyIsNeverShown(t *testing.T) {
	key := Key([]byte("An0therSecret.That-nobodyMaySee!"))
	if !shows(fmt.Sprint([KeyBytes]byte(key)), key) || !shows(string(key[:]), key) || !shows(fmt.Sprintf("%#v", newPads(key).inner), key) {
		t.Fatal("the test does not see a key that is shown")
	}
	source, err := FromVariable(hex.EncodeToString(key[:]))
	if err != nil {
		t.Fatal(err)
	}
	exported := struct {
		K    Key
		P    *Key
		List []Key
		S    *Signer
		V    Signer
		F    Source
	}{key, &key, []Key{key}, NewSigner(key), *NewSigner(key), source}
	nested := struct {
		s *Signer
		v Signer
		f Source
	}{NewSigner(key), *NewSigner(key), source}
	for name, value := range map[string]any{
		"key": key, "pointer": &key, "struct": exported, "unexported": nested, "signer": NewSigner(key), "signer value": *NewSigner(key), "source": source,
		"map": map[string]Key{"k": key},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o", "%b", "%c", "%U", "%08.3f", "%t"} {
			if text := fmt.Sprintf(verb, value); shows(text, key) {
				t.Errorf("%s with %s: %s", name, verb, text)
			}
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", value)
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", value)
		if text, _ := json.Marshal(value); shows(string(text), key) || shows(log.String(), key) {
			t.Errorf("%s: %s %s", name, text, log.String())
		}
	}
	if text, err := json.Marshal(key); err != nil || string(text) != `"hidden"` {
		t.Errorf("JSON %s, %v", text, err)
	}
	if text, err := xml.Marshal(key); err != nil || shows(string(text), key) {
		t.Errorf("XML %s, %v", text, err)
	}
	if got := key.String(); got != "hidden" {
		t.Errorf("String %s", got)
	}
	var encoded bytes.Buffer
	if err := gob.NewEncoder(&encoded).Encode(key); err == nil || shows(encoded.String(), key) {
		t.Errorf("gob: %v, %q", err, encoded.String())
	}
}

// TestT3_DerivedKeys live as long as the key: the bytes are pinned, and each purpose has its own.
func TestT3_DerivedKeys(t *testing.T) {
	signer := NewSigner(testKey)
	slow := func(message string) Key {
		h := hmac.New(sha256.New, testKey[:])
		h.Write([]byte(message))
		return Key(h.Sum(nil))
	}
	long := strings.Repeat("purpose ", 1000)
	seen := map[Key]string{testKey: "the key itself"}
	for _, purpose := range []string{"", "bearer tokens", "bearer tokens ", "\x00", long, ticketDomain, strings.TrimPrefix(ticketDomain, "arkvory/")} {
		got := signer.Derive(purpose)
		if got != slow("arkvory/derive/1\x00"+purpose) || got != NewSigner(testKey).Derive(purpose) {
			t.Errorf("%.20q is not the MAC of its purpose", purpose)
		}
		if other, dup := seen[got]; dup {
			t.Errorf("%.20q gives the key of %.20q", purpose, other)
		}
		seen[got] = purpose
	}
	if got := hex.EncodeToString(keyBytes(signer.Derive("bearer tokens"))); got != "ec5da39e6fcd7cbc515ceef67fc982658855ee48872db06a8ad48800ef50cf83" {
		t.Errorf("bearer tokens: %s", got)
	}
}

func keyBytes(key Key) []byte { return key[:] }

// TestT3_DomainsAreApart: what one place signs cannot be worth anything in another.
func TestT3_DomainsAreApart(t *testing.T) {
	domains := []string{ticketDomain, deriveDomain, sessionDomain}
	for i, a := range domains {
		for j, b := range domains {
			if i != j && strings.HasPrefix(a, b) {
				t.Errorf("%q begins with %q", a, b)
			}
		}
	}
	// Even a purpose that spells the message of a ticket out gives another MAC than the ticket's.
	message := ticketDomain + string(testSession[:]) + strings.Repeat("\x00", 16)
	if got := NewSigner(testKey).Derive(message); bytes.Equal(got[:], slowMAC(testKey, testSession, 0, 0)) {
		t.Error("a purpose signs a ticket")
	}
}

// TestT3_KeyFromVariable: 32 bytes in hex or base64, and nothing else; the error teaches the rule and hides the text.
func TestT3_KeyFromVariable(t *testing.T) {
	raw := testKey[:]
	high := bytes.Repeat([]byte{0xfb, 0xff}, 16) // spelled with - and _, or + and /
	std, url := base64.StdEncoding.EncodeToString(high), base64.URLEncoding.EncodeToString(high)
	for _, one := range []struct {
		what, text string
		want       []byte // nil: refused
	}{
		{"hex", hex.EncodeToString(raw), raw},
		{"hex in upper case", strings.ToUpper(hex.EncodeToString(raw)), raw},
		{"hex with the end of its line", hex.EncodeToString(raw) + "\r\n", raw},
		{"hex within spaces", " " + hex.EncodeToString(raw) + "\t", raw},
		{"base64", std, high},
		{"base64 without padding", strings.TrimRight(std, "="), high},
		{"base64 of the URL alphabet", url, high},
		{"base64 of the URL alphabet without padding", strings.TrimRight(url, "="), high},
		{"empty", "", nil},
		{"63 digits", hex.EncodeToString(raw)[1:], nil},
		{"65 digits", hex.EncodeToString(raw) + "0", nil},
		{"31 bytes in hex", hex.EncodeToString(raw[1:]), nil},
		{"33 bytes in hex", hex.EncodeToString(append([]byte{0}, raw...)), nil},
		{"64 characters, not all hex", "g" + hex.EncodeToString(raw)[1:], nil},
		{"0x before hex", "0x" + hex.EncodeToString(raw), nil},
		{"0x before 62 digits", "0x" + hex.EncodeToString(raw[1:]), nil},
		{"31 bytes in base64", base64.StdEncoding.EncodeToString(raw[1:]), nil},
		{"33 bytes in base64", base64.StdEncoding.EncodeToString(append([]byte{0}, raw...)), nil},
		{"both alphabets", std[:3] + "-" + std[4:], nil},
		{"padding twice", strings.TrimRight(std, "=") + "==", nil},
		{"padding for a character", std[:42] + "==", nil},
		{"trailing bits", strings.TrimRight(std, "=")[:42] + "9", nil},
		{"line break within, same length", std[:20] + "\n" + std[20:43], nil},
		{"line break within, zeros", strings.Repeat("A", 20) + "\n" + strings.Repeat("A", 22), nil},
		{"32 bytes of text", "correct horse battery staple! 32", nil},
		{"a long passphrase", strings.Repeat("correct horse ", 20), nil},
		{"quoted", `"` + hex.EncodeToString(raw) + `"`, nil},
	} {
		source, err := FromVariable(one.text)
		if one.want == nil {
			if err == nil || source != nil {
				t.Errorf("%s is accepted", one.what)
				continue
			}
			for _, part := range []string{"ARKVORY_TICKET_KEY", "exactly 32 bytes", "64 hex digits", "base64", "openssl rand -hex 32"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", one.what, err, part)
				}
			}
			if len(one.text) > 8 && strings.Contains(err.Error(), one.text[4:12]) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the error shows the text: %v", one.what, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", one.what, err)
			continue
		}
		key, err := source.Key(t.Context())
		if err != nil || !bytes.Equal(key[:], one.want) || source.Name() != "variable" {
			t.Errorf("%s: %x, %v, %s", one.what, key[:], err, source.Name())
		}
	}
}

// TestT3_RandomKey is one for a source and another for the next.
func TestT3_RandomKey(t *testing.T) {
	source := Random()
	first, err := source.Key(t.Context())
	again, err2 := source.Key(t.Context())
	other, err3 := Random().Key(t.Context())
	if err != nil || err2 != nil || err3 != nil || first != again || first == other || first == (Key{}) || source.Name() != "random" {
		t.Errorf("errors %v %v %v, same %v, differs %v, name %s", err, err2, err3, first == again, first != other, source.Name())
	}
}

// TestT3_DoneContext ends every source.
func TestT3_DoneContext(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, source := range []Source{Random(), FromStateDir(t.TempDir()), newFixed(SourceVariable, testKey)} {
		if key, err := source.Key(done); err != context.Canceled || key != (Key{}) {
			t.Errorf("%s: %v", source.Name(), err)
		}
	}
}
