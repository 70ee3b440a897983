package config

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// check judges the text of a variable. It returns the canonical text that binds into the field, or an error that says
// what is wrong without repeating the text.
type check func(text string) (canonical string, err error)

// unitOf returns the suffix that makes a number of the variable's unit readable for time.ParseDuration, or "" for a
// variable that is no time.
func unitOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_MS"):
		return "ms"
	case strings.HasSuffix(name, "_SECONDS"):
		return "s"
	case strings.HasSuffix(name, "_MINUTES"):
		return "m"
	}
	return ""
}

// number checks a whole number low..high, or 0 where zero is set.
func number(name string, low, high int64, zero bool) check {
	return func(text string) (string, error) {
		digits := strings.TrimPrefix(text, "-")
		if digits == "" || strings.Trim(digits, "0123456789") != "" {
			return "", errors.New("is not a whole number in plain digits")
		}
		value, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil && digits != text, err == nil && value < low && (!zero || value != 0):
			return "", errors.New("is below " + numberRule(low, high, zero))
		case err != nil, value > high:
			return "", errors.New("is above " + strconv.FormatInt(high, 10))
		}
		return strconv.FormatInt(value, 10) + unitOf(name), nil
	}
}

// numberRule words the range of number.
func numberRule(low, high int64, zero bool) string {
	if zero {
		return strconv.FormatInt(low, 10) + " and not 0"
	}
	return strconv.FormatInt(low, 10)
}

// choice checks one of some words.
func choice(words ...string) check {
	return func(text string) (string, error) {
		for _, word := range words {
			if text == word {
				return text, nil
			}
		}
		return "", errors.New("is none of " + strings.Join(words, ", "))
	}
}

// oneOf words the rule of choice.
func oneOf(words ...string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// checkToken judges the admin token: it travels in a header, so only visible ASCII can ever match.
func checkToken(text string) (string, error) {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return "", errors.New("holds a space or a character outside visible ASCII")
		}
	}
	switch {
	case len(text) < 16:
		return "", errors.New("is shorter than 16 characters")
	case len(text) > 4096:
		return "", errors.New("is longer than 4096 characters")
	}
	return text, nil
}

// checkKey judges the key of the tickets: exactly 32 bytes as 64 hex digits of either case, or in base64 of one alphabet, the
// standard or the URL one, with or without its padding. White space around it is cut off. It accepts what ticket.FromVariable
// accepts and nothing else, so that no start passes here and fails there; the two cannot share code, because this package imports no other of the module.
func checkKey(text string) (string, error) {
	const padded, plain = (keyBytes + 2) / 3 * 4, (keyBytes*8 + 5) / 6
	text = strings.Trim(text, whiteSpace)
	spelled, wrong := text, errors.New("is not 32 bytes in hex or base64")
	switch len(text) {
	case 2 * keyBytes:
		if _, err := hex.DecodeString(text); err != nil {
			return "", wrong
		}
		return text, nil
	case padded:
		spelled = strings.TrimSuffix(text, "=")
	}
	// Each alphabet alone, so a text that mixes them is refused; Strict refuses bits that no byte takes. The decoder skips
	// line breaks, after which a text of this length is too short.
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := alphabet.Strict().DecodeString(spelled); err == nil && len(spelled) == plain && len(key) == keyBytes {
			return text, nil
		}
	}
	return "", wrong
}

// sslModes are what sslmode may be.
var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// checkDatabase judges the connection string of PostgreSQL as far as it can be without a look at files or hosts: package store reads the rest. None of its text is repeated,
// nor are errors of the parser, which repeat it.
func checkDatabase(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, "postgres://")
	if !ok {
		rest, ok = strings.CutPrefix(text, "postgresql://")
	}
	if !ok {
		return "", errors.New("does not begin with postgres:// or postgresql://")
	}
	base, parameters, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(parameters)
	if err != nil {
		return "", errors.New("has parameters that cannot be read: special characters must be percent-encoded")
	}
	authority, database, _ := strings.Cut(base, "/")
	login, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		login, hosts = authority[:at], authority[at+1:]
	}
	_, err = url.PathUnescape(login)
	switch {
	case err != nil || strings.ContainsAny(login, "@/#") || strings.ContainsAny(base, " #") || strings.Count(login, ":") > 1:
		return "", errors.New("holds a special character that is not percent-encoded, in the user or the password perhaps")
	case hosts == "" && values.Get("host") == "":
		return "", errors.New("names no host, neither before the database nor as the parameter host")
	case database == "" && values.Get("dbname") == "":
		return "", errors.New("names no database")
	case strings.Contains(database, "/"):
		return "", errors.New("has a / in the database or the password: percent-encode it as %2F")
	}
	if mode := values.Get("sslmode"); values.Has("sslmode") && !slices.Contains(sslModes, mode) {
		return "", errors.New("has an sslmode that is none of " + strings.Join(sslModes, ", "))
	}
	return text, nil
}

const keyBytes = 32

// whiteSpace may stand around a key: files that become variables end with a line's end.
const whiteSpace = " \t\r\n"

// checkFolder judges the path of a directory in which this process can list, make and replace files. A link to a directory is
// followed: systemd gives a dynamic user its state directory behind one, and mounts of volumes use them. A relative path counts
// from the working directory. Nothing is made, so that a path that is wrong or not mounted is seen now and not when the places are lost.
func checkFolder(text string) (string, error) {
	info, err := os.Stat(text)
	switch {
	case err != nil:
		return "", errors.New("cannot be used: " + plainReason(err))
	case !info.IsDir():
		return "", errors.New("is not a directory")
	}
	if err := syscall.Access(text, accessRead|accessWrite|accessSearch); err != nil {
		return "", errors.New("cannot be read and written to: " + plainReason(err))
	}
	return text, nil
}

// maxFileBytes bounds what Load reads of one file: certificate bundles of whole systems stay below 1 MiB.
const maxFileBytes = 8 << 20

// checkFile judges the path of a regular file that this process can read.
func checkFile(text string) (string, error) {
	_, err := readFile(text)
	return text, err
}

// checkCertificates judges the path of a PEM file with at least one certificate.
func checkCertificates(text string) (string, error) {
	content, err := readFile(text)
	if err != nil {
		return "", err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(content) {
		return "", errors.New("names a file without a PEM certificate that can be read")
	}
	return text, nil
}

// readFile returns the content of a regular file. It looks before it opens, because opening a pipe blocks.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, errors.New("cannot be read: " + plainReason(err))
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	case info.Size() > maxFileBytes:
		return nil, errors.New("names a file above " + strconv.Itoa(maxFileBytes) + " bytes")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.New("cannot be read: " + plainReason(err))
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes))
	if err != nil {
		return nil, errors.New("cannot be read: " + plainReason(err))
	}
	return content, nil
}

// checkWritable judges the path of a file that this process is to write: a regular file that can be written to, or none yet in a
// directory that takes one. A link is refused: the file is emptied at the start, and where a link leads may not be what was meant. Nothing is made or changed.
func checkWritable(text string) (string, error) {
	info, err := os.Lstat(text)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return "", errors.New("is a symbolic link, name the file itself")
	case err == nil && !info.Mode().IsRegular():
		return "", errors.New("is not a regular file")
	case err == nil:
		if err := syscall.Access(text, accessWrite); err != nil {
			return "", errors.New("cannot be written to: " + plainReason(err))
		}
		return text, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", errors.New("cannot be made: " + plainReason(err))
	}
	folder := filepath.Dir(text)
	if info, err = os.Stat(folder); err != nil {
		return "", errors.New("cannot be made, its directory: " + plainReason(err))
	}
	if err := syscall.Access(folder, accessWrite|accessSearch); !info.IsDir() || err != nil {
		return "", errors.New("cannot be made: its directory cannot be written to")
	}
	return text, nil
}

// What access(2) is asked for.
const (
	accessRead   = 4
	accessWrite  = 2
	accessSearch = 1
)

// plainReason strips the operation and the path from a file error: the fault already shows the path.
func plainReason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
