package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestS4_DatabaseURL(t *testing.T) {
	const password = "p4ssw0rd"
	for _, text := range []string{
		"postgres://arkvory:p4ssw0rd@db.internal:5432/arkvory?sslmode=verify-full", "postgresql://u@h/d", "postgres://u:a%40b%2Fc@h/d", "postgres://u:p@h1:5432,h2:5433/d?target_session_attrs=read-write",
		"postgres:///d?host=/run/postgresql", "postgres://u@/d?host=/run/postgresql&port=5433", "postgres://h?dbname=d", "postgres://u:p@[::1]:5432/d", " postgres://u@h/d\n",
	} {
		c, _ := mustLoad(t, "ARKVORY_DATABASE_URL="+text)
		if c.DatabaseURL.Reveal() != strings.TrimSpace(text) {
			t.Errorf("%q became %q", text, c.DatabaseURL.Reveal())
		}
		if got := valueIn(t, printed(c), "ARKVORY_DATABASE_URL"); got != "(set)" {
			t.Errorf("printed as %s", got)
		}
	}
	for text, want := range map[string]string{
		"mysql://u:p4ssw0rd@h/d": "does not begin", "host=h password=p4ssw0rd": "does not begin", "postgres://u:p4ssw0rd@/d": "no host", "postgres://u:p4ssw0rd@h": "no database", "postgres://u:p4ssw0rd@h/": "no database",
		"postgres://u:p4ssw0rd#x@h/d": "percent-encoded", "postgres://u:p4ssw0rd%zz@h/d": "percent-encoded", "postgres://u:p4ssw0rd@x@h/d": "percent-encoded", "postgres://u:p4ssw0rd/x@h/d": "%2F",
		"postgres://u:p4ssw0rd@h/d?sslmode=on": "sslmode", "postgres://u:p4ssw0rd@h/d?a=%zz": "parameters", "postgres://u:p4ssw0rd:x@h/d": "percent-encoded",
	} {
		faults := faultsOf(t, "ARKVORY_DATABASE_URL="+text)
		if len(faults) != 1 || !strings.Contains(faults[0].Problem, want) || strings.Contains(fmt.Sprintf("%+v", faults), password) || !strings.Contains(faults[0].Example, "sslmode=verify-full") {
			t.Errorf("%q: %+v", text, faults)
		}
	}
}
