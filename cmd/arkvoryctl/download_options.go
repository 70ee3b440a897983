package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/arkvory/sidecar/queue/client"
)

// downloadOption is one flag of download. Set is nil where the flag is read together with others.
type downloadOption struct {
	flag          string // without its dashes
	rule, example string
	meaning       string // the default in brackets
	set           func(o *client.Options, value string) error
}

// downloadOptions are the flags with a value, in the order in which they are explained.
var downloadOptions = []downloadOption{
	{"output", "a path; a folder means the default name in it", "release.tar", "Where the file goes (the last segment of the URL's path, here).", nil},
	{"checkpoint", "a path", "/var/tmp/release.checkpoint", "Where a later run finds how far this one came (FILE.arkvory).", nil},
	{"class", "interactive, release, bulk or background", "bulk", "Class in the queue; it can only lower what the server gives (the server's).", nil},
	{"id", "1..128 of A-Z a-z 0-9 . _ ~ -", "nightly-42", "Name of this download in the queue (a random one, kept in the checkpoint).", func(o *client.Options, v string) error {
		o.ID = v
		return checkID(v)
	}},
	{"header", "NAME:VALUE", "X-Team: build", "Header of every request; may be repeated. Other users of the machine see arguments: put secrets into --header-file.", nil},
	{"header-file", "a file with a NAME:VALUE a line; # begins a comment", "/run/secrets/headers", "Headers from a file.", nil},
	{"user", "a name", "build", "Name for Basic authorization; the password comes from $" + passwordVariable + " or --password-file.", nil},
	{"password-file", "a file", "/run/secrets/password", "File with the password of --user.", nil},
	{"ca-file", "a file in PEM form", "/etc/ssl/site-ca.pem", "Certificates to trust instead of the system's.", nil},

	{"wait-limit", "a duration", "2h", "Longest wait in queues, all of it together (none).", func(o *client.Options, v string) error { return positive(&o.WaitLimit, v) }},
	{"not-before", "RFC 3339 or HH:MM", "22:00", "Ask no earlier than this: its next occurrence, a minute that runs counting.", nil},
	{"not-after", "RFC 3339 or HH:MM", "06:00", "Do not start later than this: its first occurrence after --not-before. Ends with exit code 4 as soon as the server promises a later start.", nil},

	{"size", "bytes (GB decimal, GiB binary)", "4GiB", "What the size must be.", func(o *client.Options, v string) (err error) {
		o.Size, err = positiveBytes(v)
		return err
	}},
	{"digest", "sha256: and 64 hexadecimal digits, or sha512: and 128", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "What the digest must be.", func(o *client.Options, v string) (err error) {
		o.Digest, err = client.ParseDigest(v)
		return err
	}},

	{"parallel", "a whole number 1..16", "4", "Ranges fetched at once, where the server takes ranges (4).", func(o *client.Options, v string) (err error) {
		o.Parallel, err = whole1(v, maxParallel)
		return err
	}},
	{"range-bytes", "64KiB..1GiB", "8MiB", "Size of one range (8MiB).", func(o *client.Options, v string) (err error) {
		if o.RangeBytes, err = parseBytes(v); err == nil && (o.RangeBytes < 64<<10 || o.RangeBytes > 1<<30) {
			err = errNumber
		}
		return err
	}},
	{"retries", "a whole number from 1", "20", "Broken connections, failing answers and silences that the whole download survives; waiting in a queue costs none (20).", func(o *client.Options, v string) (err error) {
		o.Retries, err = whole1(v, 1<<20)
		return err
	}},
	{"attempts", "a whole number from 1", "5", "Those in a row without a byte between them (5).", func(o *client.Options, v string) (err error) {
		o.Attempts, err = whole1(v, 1<<20)
		return err
	}},
	{"attempt-timeout", "a duration", "1m", "Longest silence of the server, before its answer or within it (1m).", func(o *client.Options, v string) error { return positive(&o.AttemptTimeout, v) }},
}

// given returns what the flag of that name was set to, "" = not at all. Flags that are read together with others are not among them.
func (d *download) given(flag string) string {
	return map[string]string{
		"id": d.ID, "wait-limit": d.WaitLimit, "size": d.Size, "digest": d.Digest, "parallel": d.Parallel, "range-bytes": d.RangeBytes,
		"retries": d.Retries, "attempts": d.Attempts, "attempt-timeout": d.AttemptTimeout,
	}[flag]
}

// downloadMeanings are the helps of the flags by variable.
func downloadMeanings() kong.Vars {
	vars := kong.Vars{}
	for _, f := range downloadOptions {
		vars["d_"+strings.ReplaceAll(f.flag, "-", "_")] = f.meaning + " E.g. " + clip(f.example)
	}
	return vars
}

// checkID holds the name of a download to its form.
func checkID(text string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._~-", r)
	}
	if len(text) > 128 || strings.ContainsFunc(text, odd) {
		return errNumber
	}
	return nil
}

// positive reads a duration above zero.
func positive(to *time.Duration, text string) (err error) {
	if *to, err = parseDuration(text); err == nil && *to <= 0 {
		err = errNumber
	}
	return err
}

// positiveBytes reads a number of bytes above zero.
func positiveBytes(text string) (int64, error) {
	n, err := parseBytes(text)
	if err == nil && n <= 0 {
		err = errNumber
	}
	return n, err
}

// whole1 reads a whole number 1..most.
func whole1(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err == nil && (n < 1 || n > most) {
		err = errNumber
	}
	return n, err
}
