package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"sync"
	"testing"

	"github.com/arkvory/sidecar/queue"
)

// manyClasses is a full record: that id and 1023 others.
func manyClasses(id string) map[string]queue.Class {
	of := map[string]queue.Class{id: queue.Bulk}
	for i := range 1023 {
		of[fmt.Sprintf("user:u%d", i)] = queue.Class(i % queue.Classes)
	}
	return of
}

func TestI3_TheSettingsClassWinsOverFileAndKind(t *testing.T) {
	path := tableFile(t, "principals: [{id: ci, class: bulk, users: [jenkins]}, {id: plain, users: [bob]}]\n")
	d := newIdentifier(t, Settings{PrincipalsFile: path, From: []string{"header:X-User", "client-cert", "cookie:sid", "signature", "authorization", "address"},
		TrustedProxies: networks("10.0.0.0/8")})
	cert := &x509.Certificate{Raw: []byte("der"), Subject: pkix.Name{CommonName: "a"}}
	for _, one := range []struct {
		id          string // named by the settings
		class       queue.Class
		lines       []string
		cert        *x509.Certificate
		peer        string
		before      queue.Class
		principalIs string
	}{
		{"ci", queue.Interactive, []string{basicField("jenkins", "pw-1")}, nil, "192.0.2.1", queue.Bulk, "ci"}, // raised above the file
		{"ci", queue.Background, []string{basicField("jenkins", "pw-1")}, nil, "192.0.2.1", queue.Bulk, "ci"},
		{"plain", queue.Interactive, []string{basicField("bob", "pw-1")}, nil, "192.0.2.1", queue.Release, "plain"}, // a row without a class
		{"user:ann", queue.Interactive, []string{basicField("ann", "pw-1")}, nil, "192.0.2.1", queue.Release, "user:ann"},
		{"addr:192.0.2.1", queue.Background, nil, nil, "192.0.2.1", queue.Release, "addr:192.0.2.1"},
		{"header:zoe", queue.Bulk, []string{"X-User: zoe"}, nil, "10.0.0.1", queue.Interactive, "header:zoe"},
		{"cert:CN=a", queue.Release, nil, cert, "192.0.2.1", queue.Interactive, "cert:CN=a"},
	} {
		h := request(t, "/x", one.lines...)
		d.SetClasses(nil)
		var m Memo
		if id := d.IdentifyMemo(&m, h, addr(one.peer), one.cert); id.Class != one.before || id.Principal != one.principalIs {
			t.Errorf("%s before: %+v", one.id, id)
		}
		d.SetClasses(map[string]queue.Class{one.id: one.class, "somebody": queue.Interactive})
		for range 2 { // the memo of the connection notices, and remembers
			if id := d.IdentifyMemo(&m, h, addr(one.peer), one.cert); id.Class != one.class || id.Principal != one.principalIs {
				t.Errorf("%s: %+v, want %v", one.id, id, one.class)
			}
		}
		d.SetClasses(map[string]queue.Class{"somebody": queue.Interactive})
		if id := d.IdentifyMemo(&m, h, addr(one.peer), one.cert); id.Class != one.before {
			t.Errorf("%s after: %+v", one.id, id)
		}
	}
}

func TestI4_AClientOnlyLowersTheSettingsClass(t *testing.T) {
	d := newIdentifier(t, Settings{})
	for _, one := range []struct {
		given       queue.Class
		asked       string
		want        queue.Class
		description string
	}{
		{queue.Interactive, "release", queue.Release, "lowered from a raised one"},
		{queue.Interactive, "interactive", queue.Interactive, "the same"},
		{queue.Bulk, "interactive", queue.Bulk, "raised by nobody"},
		{queue.Bulk, "background", queue.Background, "lowered"},
	} {
		d.SetClasses(map[string]queue.Class{"user:ann": one.given})
		h := request(t, "/x", basicField("ann", "pw-1"), "Arkvory-Download-Class: "+one.asked)
		got, err := ApplyClass(d.Identify(h, addr("192.0.2.1"), nil).Class, h)
		if err != nil || got != one.want {
			t.Errorf("%s: %v, %v, want %v", one.description, got, err, one.want)
		}
	}
}

func TestI3_SettingsClassesAllocateNothing(t *testing.T) {
	d := newIdentifier(t, Settings{})
	h := request(t, "/x", basicField("ann", "pw-1"))
	var m Memo
	d.IdentifyMemo(&m, h, addr("192.0.2.1"), nil)
	full, other := &classes{of: manyClasses("user:ann")}, &classes{of: manyClasses("user:bob")}
	d.classes.Store(full)
	if n := testing.AllocsPerRun(100, func() { d.IdentifyMemo(&m, h, addr("192.0.2.1"), nil) }); n != 0 {
		t.Errorf("%v allocations with a memo", n)
	}
	id := d.Identify(h, addr("192.0.2.1"), nil)
	for _, c := range []*classes{full, other, {}} { // of an identity made anew, the rest of which may allocate its name
		if n := testing.AllocsPerRun(100, func() { c.apply(&id) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestI3_TheCallersMapStaysItsOwn(t *testing.T) {
	d := newIdentifier(t, Settings{})
	of := map[string]queue.Class{"user:ann": queue.Bulk}
	d.SetClasses(of)
	of["user:ann"] = queue.Background
	if id := d.Identify(request(t, "/x", basicField("ann", "pw-1")), addr("192.0.2.1"), nil); id.Class != queue.Bulk {
		t.Errorf("%+v", id)
	}
}

// Requests that are identified while the classes change see the old or the new ones, of which the memo of their connection forgets none.
func TestI3_ClassesChangeUnderRequests(t *testing.T) {
	d := newIdentifier(t, Settings{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			h := request(t, "/x", basicField("ann", "pw-1"))
			var m Memo
			for range 2000 {
				if id := d.IdentifyMemo(&m, h, addr("192.0.2.1"), nil); id.Class != queue.Bulk && id.Class != queue.Release {
					t.Errorf("%+v", id)
					return
				}
			}
		})
	}
	for i := range 2000 {
		d.SetClasses([]map[string]queue.Class{nil, {"user:ann": queue.Bulk}}[i%2])
	}
	wait.Wait()
	if id := d.Identify(request(t, "/x", basicField("ann", "pw-1")), addr("192.0.2.1"), nil); id.Class != queue.Bulk {
		t.Errorf("the last change: %+v", id)
	}
}
