package config

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// keyBits are 32 bytes whose base64 has characters in which the alphabets differ, and a run of digits that hex does not repeat.
var keyBits = append(bytes.Repeat([]byte{0xfb, 0xff}, 8), []byte("sixteen letters!")...)

// keySpelling says in other words than checkKey what a key is once the white space around it is gone: the last of 43 characters
// of base64 carries four bits, so only every fourth character may stand there.
var keySpelling = regexp.MustCompile(`^([0-9A-Fa-f]{64}|[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=?|[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]=?)$`)

// spelling is a text for ARKVORY_TICKET_KEY. key is what package ticket reads from it; none is read from what must be refused.
type spelling struct {
	what, text string
	key        []byte
}

// keySpellings lists how a key may be written and how not. ticket.FromVariable must judge each text the same way: a change here is a
// change there.
func keySpellings() []spelling {
	digits, standard, url := hex.EncodeToString(keyBits), base64.StdEncoding.EncodeToString(keyBits), base64.URLEncoding.EncodeToString(keyBits)
	bare := strings.TrimSuffix(standard, "=")
	return []spelling{
		{"hex", digits, keyBits},
		{"hex in upper case", strings.ToUpper(digits), keyBits},
		{"hex in both cases", strings.ToUpper(digits[:9]) + digits[9:], keyBits},
		{"base64", standard, keyBits},
		{"base64 without padding", bare, keyBits},
		{"base64 of the URL alphabet", url, keyBits},
		{"base64 of the URL alphabet without padding", strings.TrimSuffix(url, "="), keyBits},
		{"base64 in which the alphabets do not differ", strings.Repeat("A", 43), make([]byte, 32)},
		{"spaces around hex", "  " + digits + " ", keyBits},
		{"spaces around base64", " " + standard + "  ", keyBits},
		{"a space behind the padding that is left out", bare + " ", keyBits},

		{"spaces alone", "   ", nil},
		{"a space within hex", digits[:32] + " " + digits[32:], nil},
		{"a space for a digit", digits[:32] + " " + digits[33:], nil},
		{"a space within base64", standard[:20] + " " + standard[20:], nil},
		{"a space before the padding", bare + " =", nil},
		{"another kind of space around", "\u00a0" + digits + "\u00a0", nil},
		{"a digit too few", digits[1:], nil},
		{"a digit too many", digits + "0", nil},
		{"16 bytes in hex", digits[:32], nil},
		{"33 bytes in hex", digits + "00", nil},
		{"64 bytes in hex", digits + digits, nil},
		{"64 characters that are no hex", "g" + digits[1:], nil},
		{"64 characters of base64", strings.Repeat("abcx", 16), nil},
		{"0x before hex", "0x" + digits, nil},
		{"0x before 62 digits", "0x" + digits[2:], nil},
		{"colons between bytes", strings.TrimSuffix(strings.Repeat("ab:", 32), ":"), nil},
		{"31 bytes in base64", base64.StdEncoding.EncodeToString(keyBits[1:]), nil},
		{"31 bytes in base64 without padding", base64.RawStdEncoding.EncodeToString(keyBits[1:]), nil},
		{"33 bytes in base64", base64.StdEncoding.EncodeToString(append([]byte{0}, keyBits...)), nil},
		{"both alphabets", standard[:1] + "_" + standard[2:], nil},
		{"padding twice", standard + "=", nil},
		{"padding for a character", bare[:42] + "==", nil},
		{"padding in front", "=" + bare, nil},
		{"bits that no byte takes", bare[:42] + "B", nil},
		{"44 characters and no padding", bare + "A", nil},
		{"32 letters", "correct horse battery staple! 32", nil},
		{"within quotes", `"` + digits + `"`, nil},
		{"a command", "$(openssl rand -hex 32)", nil},
		{"letters that are not ASCII", strings.Repeat("é", 32), nil},
	}
}

// keyLines are spellings with control characters. White space is cut off the ends; what stands within is refused, as in every variable.
func keyLines() []spelling {
	digits, standard := hex.EncodeToString(keyBits), base64.StdEncoding.EncodeToString(keyBits)
	return []spelling{
		{"the end of a line", digits + "\n", keyBits},
		{"the end of a line of Windows", standard + "\r\n", keyBits},
		{"tabs around", "\t" + digits + "\t", keyBits},
		{"an empty line before", "\n" + standard, keyBits},

		{"the end of a line alone", "\n", nil},
		{"a line break within hex", digits[:32] + "\n" + digits[32:], nil},
		{"a line break within base64", standard[:20] + "\n" + standard[20:], nil},
		{"a line break within base64 of the right length", standard[:20] + "\n" + standard[20:43], nil},
		{"a line break before the padding", standard[:43] + "\n=", nil},
		{"two keys", digits + "\n" + digits, nil},
		{"another control character", digits + "\v", nil},
		{"a zero byte", digits + "\x00", nil},
	}
}

// wrongKeys are the refused spellings as cases of the table of wrong values.
func wrongKeys() (cases []wrong) {
	for _, one := range keySpellings() {
		if one.key == nil {
			cases = append(cases, wrong{one.text, "is not 32 bytes in hex or base64", nil})
		}
	}
	for _, one := range keyLines() {
		switch {
		case one.key != nil:
		case strings.TrimSpace(one.text) == "":
			cases = append(cases, wrong{one.text, "is not 32 bytes in hex or base64", nil})
		default:
			cases = append(cases, wrong{one.text, "control character", nil})
		}
	}
	return cases
}

func TestT3_SpellingsOfTheKey(t *testing.T) {
	for _, one := range slices.Concat(keySpellings(), keyLines()) {
		canonical, err := checkKey(one.text)
		if (err == nil) != (one.key != nil) {
			t.Errorf("%s: the check says %v", one.what, err)
			continue
		}
		if err != nil {
			continue
		}
		if canonical != strings.Trim(one.text, " \t\r\n") || !keySpelling.MatchString(canonical) || !bytes.Equal(keyOf(canonical), one.key) {
			t.Errorf("%s: becomes another text or key", one.what)
		}
		if again, err := checkKey(canonical); err != nil || again != canonical {
			t.Errorf("%s: what was accepted is not accepted again: %v", one.what, err)
		}
	}
	for _, one := range slices.Concat(keySpellings(), keyLines()) {
		if one.key == nil {
			continue // the table of wrong values has it
		}
		c, warnings := mustLoad(t, "ARKVORY_TICKET_KEY="+one.text)
		if c.TicketKey.Reveal() != strings.TrimSpace(one.text) || len(warnings) != 0 {
			t.Errorf("%s: loads as another text, or with warnings %v", one.what, warnings)
		}
	}
}

// keyOf decodes a spelling that is known to be right.
func keyOf(text string) []byte {
	if key, err := hex.DecodeString(text); err == nil {
		return key
	}
	key, _ := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(text))
	return key
}

// traces returns pieces of a secret by which it would be recognised: of its text, and of the key in every usual spelling. A piece
// of 12 characters is enough to count as shown.
func traces(text string) (pieces []string) {
	forms := []string{text, hex.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(text))}
	for _, key := range [][]byte{keyBits, []byte(text)} {
		digits := hex.EncodeToString(key)
		forms = append(forms, string(key), digits, strings.ToUpper(digits), base64.StdEncoding.EncodeToString(key), base64.URLEncoding.EncodeToString(key),
			fmt.Sprint(key), fmt.Sprintf("%q", key), fmt.Sprintf("%#v", key))
	}
	for _, form := range forms {
		for i := 0; i+12 <= len(form); i += 6 {
			pieces = append(pieces, form[i:i+12])
		}
	}
	return pieces
}

func TestI5_TheTicketKeyIsNeverShown(t *testing.T) {
	shows := func(what, shown, text string) {
		for _, piece := range traces(text) {
			if strings.Contains(shown, piece) {
				t.Errorf("%s: a piece of the key is shown in %.400q", what, shown)
				return
			}
		}
	}
	// The oracle must find what is shown, else it finds nothing.
	if digits := hex.EncodeToString(keyBits); !slices.ContainsFunc(traces(digits), func(piece string) bool { return strings.Contains("key "+digits[:30], piece) }) {
		t.Fatal("half a key that is shown is not recognised")
	}
	for _, one := range slices.Concat(keySpellings(), keyLines()) {
		c, warnings, err := Load([]string{"ARKVORY_TICKET_KEY=" + one.text, "ARKVORY_TICKET_KEYS=" + one.text, "arkvory_ticket_key=" + one.text})
		encoded, jsonErr := json.Marshal(c)
		if jsonErr != nil {
			t.Fatal(jsonErr)
		}
		shown := []string{printed(c), string(encoded), fmt.Sprint(warnings), fmt.Sprint(err), fmt.Sprintf("%+v %#v %q", err, err, err)}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
			shown = append(shown, fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c), fmt.Sprintf(verb, c.TicketKey))
		}
		if strings.TrimSpace(one.text) == "" || strings.Contains(one.text, "openssl") {
			continue // nothing to hide, and the rule names the command
		}
		for _, text := range shown {
			shows(one.what, text, strings.TrimSpace(one.text))
		}
		if want := map[bool]string{true: "(set)", false: "(unset)"}[err == nil]; valueIn(t, shown[0], "ARKVORY_TICKET_KEY") != want {
			t.Errorf("%s: is not printed as %s", one.what, want)
		}
	}
	fault := faultsOf(t, "ARKVORY_TICKET_KEY="+hex.EncodeToString(keyBits)[1:])[0]
	if fault.Value != "(set, not shown)" || !strings.Contains(fault.Error(), "openssl rand -hex 32") {
		t.Errorf("the fault of a key is %v", fault)
	}
}

// FuzzTicketKey compares checkKey with the expression.
func FuzzTicketKey(f *testing.F) {
	for _, one := range slices.Concat(keySpellings(), keyLines()) {
		f.Add(one.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trimmed := strings.Trim(text, " \t\r\n")
		canonical, err := checkKey(text)
		if want := keySpelling.MatchString(trimmed); (err == nil) != want {
			t.Fatalf("checkKey(%q) says %v, want accepted %v", text, err, want)
		}
		if err == nil && (canonical != trimmed || len(keyOf(canonical)) != 32) {
			t.Fatalf("checkKey(%q) gives %q", text, canonical)
		}
	})
}

// linkTo makes a symbolic link.
func linkTo(t *testing.T, target string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestL2_TheStateDirectoryIsLookedAtAndNotTouched(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(filepath.Dir(folder))
	for what, path := range map[string]string{
		"absolute": folder, "with a slash": folder + "/", "through a link": linkTo(t, folder), "relative": filepath.Base(folder), "the working directory": ".",
		"with dots": folder + "/../" + filepath.Base(folder),
	} {
		c, warnings := mustLoad(t, "ARKVORY_STATE_DIR="+path)
		if c.StateDir != path || len(warnings) != 0 {
			t.Errorf("%s: the path became %q, warnings %v", what, c.StateDir, warnings)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("the check left %v, %v", entries, err)
	}
	missing := filepath.Join(folder, "missing")
	faultsOf(t, "ARKVORY_STATE_DIR="+missing)
	if _, err := os.Lstat(missing); !os.IsNotExist(err) {
		t.Errorf("the check made the directory: %v", err)
	}
}
