package telemetry

import (
	"testing"

	"github.com/arkvory/sidecar/queue"
)

// TestV2_ModesAreThoseOfTheQueue holds the label to the queue's own words and order.
func TestV2_ModesAreThoseOfTheQueue(t *testing.T) {
	for i, name := range modeNames {
		if got := queue.Mode(i).String(); got != name {
			t.Errorf("mode %d is %q, its label %q", i, got, name)
		}
	}
	if got := queue.Mode(len(modeNames)).String(); got != "unknown" {
		t.Errorf("mode %q has no label", got)
	}
}
