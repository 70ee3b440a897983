package sim

import (
	"encoding/json"
	"math"
)

// Measure is a number that was measured, or NaN where nothing was there to measure: nobody finished, nobody waited, nothing was
// promised. In JSON the latter is null: a 0 would flatter or blame.
type Measure float64

// none is the measure of nothing.
var none = Measure(math.NaN())

// Known reports whether there is a number.
func (m Measure) Known() bool { return !math.IsNaN(float64(m)) && !math.IsInf(float64(m), 0) }

// MarshalJSON writes the number, or null.
func (m Measure) MarshalJSON() ([]byte, error) {
	if !m.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(m))
}

// ratio is part / whole; there is none of nothing.
func ratio(part, whole float64) Measure {
	if whole == 0 {
		return none
	}
	return Measure(part / whole)
}
