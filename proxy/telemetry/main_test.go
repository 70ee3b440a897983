package telemetry

import (
	"bytes"
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the golden file and the README's metrics section")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pageOf returns the product's part of the page.
func pageOf(m *Metrics) string {
	var b bytes.Buffer
	m.render(&b)
	return b.String()
}
