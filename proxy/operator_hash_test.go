package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/arkvory/sidecar/proxy/admin"
	"github.com/arkvory/sidecar/queue"
)

// TestX6_6_6_APrincipalIsFoundByItsHash: among many, again from memory, after it left and came back, and never another one.
func TestX6_6_6_APrincipalIsFoundByItsHash(t *testing.T) {
	o := openOffice(t, nil)
	o.ask("first", "running", queue.Release)
	for i := range 3000 {
		o.ask(fmt.Sprint("user:", i), fmt.Sprint("o", i), queue.Release)
	}
	look := func(id string, want ...string) {
		t.Helper()
		doc := o.page(admin.SessionsQuery{State: admin.StateAll, Principal: id, Clear: true})
		if got := objects(doc); strings.Join(got, " ") != strings.Join(want, " ") || doc.Total != len(want) {
			t.Errorf("%s has %v, %d in all, want %v", id, got, doc.Total, want)
		}
	}
	hash := o.hashed(hashPrincipal, "user:2017")
	for range 2 {
		look(hash, "o2017")
	}
	for i := range 300 { // more than are remembered, so that places are shared
		look(o.hashed(hashPrincipal, fmt.Sprint("user:", i)), fmt.Sprint("o", i))
	}
	look(hash, "o2017")
	o.q.Leave(queue.Key{Principal: "user:2017", Object: "o2017", Client: "id:o2017"})
	look(hash)
	o.ask("user:2017", "again", queue.Release)
	look(hash, "again")
	look("h:0123456789abcdef")
	o.ask("h:0123456789abcdef", "odd", queue.Release) // a name that looks like a hash
	look("h:0123456789abcdef", "odd")
}

// TestX6_6_6_APageTakesFewPiecesOfMemory: as many for a thousand rows as for a hundred.
func TestX6_6_6_APageTakesFewPiecesOfMemory(t *testing.T) {
	o := openOffice(t, nil)
	o.ask("first", "running", queue.Release)
	for i := range 1100 {
		o.ask(fmt.Sprint("user:", i%7), fmt.Sprint("o", i), queue.Class(i%queue.Classes))
	}
	for _, q := range []admin.SessionsQuery{{State: admin.StateWaiting}, {State: admin.StateWaiting, Principal: "user:3"}, {State: admin.StateWaiting, Class: "bulk"}} {
		q.Limit = admin.MaxSessions
		rows := 0
		if n := testing.AllocsPerRun(5, func() { rows = len(o.page(q).Sessions) }); n > 30 || rows < 100 {
			t.Errorf("%+v: %v allocations for %d rows", q, n, rows)
		}
	}
}
