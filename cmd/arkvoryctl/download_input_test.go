package main

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/arkvory/sidecar/queue/client"
)

// planOf reads a command line as the program does, without running it.
func planOf(t *testing.T, in string, args ...string) (*downloadPlan, error) {
	t.Helper()
	var line cli
	parser, err := newParser(&line, streams{&strings.Builder{}, &strings.Builder{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(with([]string{"download"}, args...)); err != nil {
		t.Fatal(err)
	}
	return line.Download.plan(strings.NewReader(in), time.Date(2026, 11, 30, 13, 0, 0, 0, time.UTC))
}

func TestC4_DownloadInputErrorsNameFlagRuleAndExample(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"there": "x", "notes": "no certificate", "odd": "no colon here", "password": "p\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const u = "http://127.0.0.1:1/release.tar"
	for _, one := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"<url>", "--help"}},
		{[]string{"release.tar"}, []string{"URL", "http:// or https://", "https://store.example"}},
		{[]string{"file:///etc/passwd"}, []string{"http:// or https://"}},
		{[]string{"http:///release.tar"}, []string{"with a host"}},
		{[]string{"http://127.0.0.1:1/"}, []string{"name", "--output"}},
		{[]string{"http://127.0.0.1:1/a/.bashrc"}, []string{"name", "--output"}},
		{[]string{"http://127.0.0.1:1/a/..%2f..%2fetc"}, []string{"name", "--output"}},
		{[]string{u, "--output", "-"}, []string{"--output", "must be a file"}},
		{[]string{u, "-o", "there"}, []string{"there", "--force"}},
		{[]string{u, "-o", "nowhere/x"}, []string{"no folder", "nowhere"}},
		{[]string{u, "-o", os.DevNull, "--force"}, []string{"no regular file"}},
		{[]string{u, "--class", "urgent"}, []string{"--class", "interactive", "background"}},
		{[]string{u, "--id", "a b"}, []string{"--id", "1..128", "nightly-42"}},
		{[]string{u, "--header", "nothing"}, []string{"--header", "NAME:VALUE"}},
		{[]string{u, "--header", "a b: c"}, []string{"--header", "NAME:VALUE"}},
		{[]string{u, "--header", "a: b\x01"}, []string{"--header", "NAME:VALUE"}},
		{[]string{u, "--header-file", "odd"}, []string{"--header-file", "NAME:VALUE"}},
		{[]string{u, "--header-file", "nowhere"}, []string{"--header-file", "nowhere"}},
		{[]string{u, "--user", "me"}, []string{"--user", "ARKVORYCTL_PASSWORD", "--password-file"}},
		{[]string{u, "--user", "me:secret"}, []string{"--user", "ARKVORYCTL_PASSWORD", "see arguments"}},
		{[]string{u, "--user", "me", "--password-file", "password", "-H", "Authorization: x"}, []string{"--user", "who asks"}},
		{[]string{u, "--password-file", "password"}, []string{"--password-file", "--user"}},
		{[]string{u, "--ca-file", "notes"}, []string{"--ca-file", "PEM"}},
		{[]string{u, "--parallel", "0"}, []string{"--parallel", "1..16", "4"}},
		{[]string{u, "--parallel", "17"}, []string{"--parallel", "1..16", "4"}},
		{[]string{u, "--range-bytes", "1kB"}, []string{"--range-bytes", "64KiB..1GiB", "8MiB"}},
		{[]string{u, "--wait-limit", "soon"}, []string{"--wait-limit", "a duration", "2h"}},
		{[]string{u, "--wait-limit=-1s"}, []string{"--wait-limit", "a duration"}},
		{[]string{u, "--not-before", "tonight"}, []string{"--not-before", "HH:MM", "22:00"}},
		{[]string{u, "--not-after", "25:00"}, []string{"--not-after", "HH:MM", "06:00"}},
		{[]string{u, "--not-before", "2030-01-02T00:00:00Z", "--not-after", "2030-01-01T00:00:00Z"}, []string{"--not-after", "later than --not-before"}},
		{[]string{u, "--size", "big"}, []string{"--size", "bytes", "4GiB"}},
		{[]string{u, "--digest", "md5:00"}, []string{"--digest", "sha256:"}},
		{[]string{u, "--digest", "sha256:00"}, []string{"--digest", "64 hexadecimal"}},
		{[]string{u, "--retries", "0"}, []string{"--retries", "from 1"}},
		{[]string{u, "--attempts", "x"}, []string{"--attempts", "from 1"}},
		{[]string{u, "--attempt-timeout", "0"}, []string{"--attempt-timeout", "a duration"}},
		{[]string{u, "--parallel", "0", "--size", "x", "-H", "y"}, []string{"--parallel", "--size", "--header"}}, // all at once
		{[]string{u, "--json", "--quiet"}, []string{"--json", "--quiet", "--help"}},
	} {
		code, out, complaint := ctl(t, with([]string{"download"}, one.args...)...)
		if code != exitInput || out != "" && !slices.Contains(one.args, "--json") {
			t.Errorf("%v: code %d, printed %q, said %q", one.args, code, out, complaint)
		}
		for _, want := range one.want {
			if !strings.Contains(complaint, want) {
				t.Errorf("%v: %q does not say %q", one.args, complaint, want)
			}
		}
		for line := range strings.Lines(complaint) {
			if !strings.HasPrefix(line, "arkvoryctl: ") {
				t.Errorf("%v: the line %q does not say who complains", one.args, line)
			}
		}
	}
}

func TestC4_DefaultNames(t *testing.T) {
	for path, want := range map[string]string{
		"/a/release.tar": "release.tar", "/a%20b.zip": "a b.zip", "/v2/blobs/abc": "abc", "/%D1%84.tar": "ф.tar",
		"": "", "/": "", "/a/": "", "/..": "", "/a/..": "", "/.hidden": "", "/-rf": "", "/a%2fb": "", "/a%5Cb": "", "/a%00b": "", "/a%0Ab": "", "/c:": "", "/" + strings.Repeat("x", 300): "",
	} {
		address, err := url.Parse("http://host" + path + "?name=other.tar")
		if err != nil {
			t.Fatal(err)
		}
		got, err := nameOf(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is named %q, %v, want %q", path, got, err, want)
		}
	}
}

func FuzzC4_DefaultNameStaysInItsFolder(f *testing.F) {
	for _, path := range []string{"/a/release.tar", "/..%2f..%2fetc/passwd", "/%2e%2e", "/a//", "/%", "/-o"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		address, err := url.Parse("http://host" + path)
		if err != nil {
			return
		}
		if name, err := nameOf(address); err == nil && (filepath.Base(name) != name || filepath.Clean(name) != name || name[0] == '.' || name[0] == '-') {
			t.Errorf("%q is named %q", path, name)
		}
	})
}

func TestC4_OutputOfFoldersAndForce(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("there", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		args []string
		want string
	}{
		{nil, "release.tar"}, {[]string{"-o", "x"}, "x"}, {[]string{"-o", dir}, filepath.Join(dir, "release.tar")}, {[]string{"-o", dir + "/"}, filepath.Join(dir, "release.tar")},
		{[]string{"-o", "there", "--force"}, "there"},
	} {
		if p, err := planOf(t, "", with([]string{"http://host/a/release.tar?sig=1"}, one.args...)...); err != nil || p.options.Output != one.want || p.name != filepath.Base(one.want) {
			t.Errorf("%v: %q, %q, %v", one.args, p.options.Output, p.name, err)
		}
	}
}

// TestC4_FlagsReachTheDownload: every flag with a value sets something, and nothing else does.
func TestC4_FlagsReachTheDownload(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"headers": "# comment\n\nX-From: file\nX-Two: a:b\n", "password": "p:w\r\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum := strings.Repeat("Ab", 32)
	p, err := planOf(t, " http://host/release.tar?sig=1 \nmore", "-", "-o", "x", "--checkpoint", "c", "--fresh", "--class", "bulk", "--id", "n", "-H", "X-One: 1", "-H", "x-one:2,3", "--header-file", "headers",
		"-u", "me", "--password-file", "password", "--wait-limit", "2h", "--not-before", "22:00", "--not-after", "06:00", "--size", "4GiB", "--digest", "sha256:"+sum,
		"--parallel", "2", "--range-bytes", "1MiB", "--retries", "3", "--attempts", "4", "--attempt-timeout", "5s")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := client.ParseDigest("sha256:" + sum)
	if err != nil {
		t.Fatal(err)
	}
	want := client.Options{
		NoReplace: true,
		URL:       "http://host/release.tar?sig=1", Output: "x", Checkpoint: "c", Fresh: true, Class: "bulk", ID: "n",
		Header:    http.Header{"X-One": {"1", "2,3"}, "X-From": {"file"}, "X-Two": {"a:b"}, "Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("me:p:w"))}},
		WaitLimit: 2 * time.Hour, NotBefore: time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC), NotAfter: time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC),
		Size: 4 << 30, Digest: digest, Parallel: 2, RangeBytes: 1 << 20, Retries: 3, Attempts: 4, AttemptTimeout: 5 * time.Second,
	}
	if !reflect.DeepEqual(p.options, want) {
		t.Errorf("got  %+v\nwant %+v", p.options, want)
	}
	t.Setenv(passwordVariable, "from the environment")
	p, err = planOf(t, "", "http://host/release.tar", "--user", "me")
	request := http.Request{Header: p.options.Header}
	if name, password, ok := request.BasicAuth(); err != nil || !ok || name != "me" || password != "from the environment" {
		t.Errorf("%q %q %v", name, password, err)
	}
	t.Setenv("ARKVORYCTL_HEADER_FILE", "headers")
	if p, err = planOf(t, "", "http://host/release.tar"); err != nil || p.options.Header.Get("X-From") != "file" {
		t.Errorf("ARKVORYCTL_HEADER_FILE: %v, %v", p.options.Header, err)
	}
}

// TestC4_ExamplesOfDownloadOptionsAreAccepted: what help and complaints propose works.
func TestC4_ExamplesOfDownloadOptionsAreAccepted(t *testing.T) {
	for _, f := range downloadOptions {
		if f.meaning == "" || f.example == "" || f.rule == "" {
			t.Errorf("an option without rule, example or meaning: %+v", f)
		}
		if f.set == nil {
			continue
		}
		var o client.Options
		if err := f.set(&o, f.example); err != nil || reflect.DeepEqual(o, client.Options{}) {
			t.Errorf("--%s %s: %v, %+v", f.flag, f.example, err, o)
		}
	}
}

// TestC4_EveryDownloadFlagHasItsOption: each flag with a value is explained, and each explanation is of a flag.
func TestC4_EveryDownloadFlagHasItsOption(t *testing.T) {
	var line cli
	parser, err := newParser(&line, streams{&strings.Builder{}, &strings.Builder{}})
	if err != nil {
		t.Fatal(err)
	}
	var flags, explained []string
	for _, command := range parser.Model.Children {
		for _, flag := range command.Flags {
			if command.Name == "download" && !flag.IsBool() {
				flags = append(flags, flag.Name)
			}
		}
	}
	for _, f := range downloadOptions {
		explained = append(explained, f.flag)
	}
	if !slices.Equal(flags, explained) {
		t.Errorf("flags      %v\nexplained  %v", flags, explained)
	}
}

func TestC4_SecretsAreHidden(t *testing.T) {
	address, err := url.Parse("https://u:pass%20word@host/p?X-Sig=ab%2Fcdef&k=v1")
	if err != nil {
		t.Fatal(err)
	}
	s := secretsOf(address, http.Header{"Authorization": {"Bearer t0ken-t0ken"}})
	for text, want := range map[string]string{
		`Get "https://u:pass%20word@host/p?X-Sig=ab%2Fcdef&k=v1": EOF`: `Get "https://host/p": EOF`,
		"sent Bearer t0ken-t0ken":                                      "sent ***",
		"sent t0ken-t0ken":                                             "sent ***",
		"signature ab/cdef or ab%2Fcdef":                               "signature *** or ***",
		"password pass word":                                           "password ***",
		"see http://bucket/x?X-Amz-Signature=1#frag and more":          "see http://bucket/x and more",
		"nothing to hide":                                              "nothing to hide",
	} {
		if got := s.hide(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
