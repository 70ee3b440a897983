package identity

import (
	"errors"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/queue"
)

func TestI4_AClientOnlyLowersItsClass(t *testing.T) {
	for _, c := range []struct {
		base  queue.Class
		lines []string
		want  queue.Class
		bad   bool
	}{
		{queue.Release, nil, queue.Release, false},
		{queue.Release, []string{"Arkvory-Download-Class: background"}, queue.Background, false},
		{queue.Release, []string{"arkvory-download-class: bulk"}, queue.Bulk, false},
		{queue.Release, []string{"Arkvory-Download-Class: interactive"}, queue.Release, false},
		{queue.Interactive, []string{"Arkvory-Download-Class: release"}, queue.Release, false},
		{queue.Release, []string{"Arkvory-Download-Class: urgent"}, queue.Release, true},
		{queue.Release, []string{"Arkvory-Download-Class:"}, queue.Release, true},
		{queue.Release, []string{"Arkvory-Download-Class: " + strings.Repeat("x", 500)}, queue.Release, true},
		{queue.Release, []string{"Arkvory-Download-Class: bulk", "Arkvory-Download-Class: bulk"}, queue.Release, true},
		{queue.Release, []string{"Arkvory-Download-Classes: urgent"}, queue.Release, false},
	} {
		got, err := ApplyClass(c.base, request(t, "/x", c.lines...))
		var typed *FieldError
		if got != c.want || (err != nil) != c.bad || c.bad && (!errors.As(err, &typed) || typed.Field != ClassField || !strings.Contains(err.Error(), "such as bulk")) {
			t.Errorf("%s %q: %s, %v", c.base, c.lines, got, err)
		}
	}
}

func TestQ1_DownloadID(t *testing.T) {
	for _, c := range []struct {
		lines   []string
		want    string
		present bool
		bad     bool
	}{
		{nil, "", false, false},
		{[]string{"Arkvory-Download-Id: a.B_1~-"}, "a.B_1~-", true, false},
		{[]string{"ARKVORY-DOWNLOAD-ID: " + strings.Repeat("a", 128)}, strings.Repeat("a", 128), true, false},
		{[]string{"Arkvory-Download-Id: " + strings.Repeat("a", 129)}, "", true, true},
		{[]string{"Arkvory-Download-Id:"}, "", true, true},
		{[]string{"Arkvory-Download-Id: a b"}, "", true, true},
		{[]string{"Arkvory-Download-Id: a/b"}, "", true, true},
		{[]string{"Arkvory-Download-Id: a", "Arkvory-Download-Id: a"}, "", true, true},
	} {
		got, present, err := DownloadID(request(t, "/x", c.lines...))
		if got != c.want || present != c.present || (err != nil) != c.bad {
			t.Errorf("%q: %q %v %v", c.lines, got, present, err)
		}
		if err != nil && (!strings.Contains(err.Error(), DownloadIDField) || !strings.Contains(err.Error(), "1 to 128") || !strings.Contains(err.Error(), "such as ")) {
			t.Errorf("%v must name field, rule and example", err)
		}
	}
}
