package bucket

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestB4_ParkingKeepsTheEarliestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap parking
		var oracle []*principal
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if len(oracle) == 0 || rapid.IntRange(0, 2).Draw(t, "push") > 0 {
				p := &principal{}
				heap.push(p, time.Duration(rapid.IntRange(0, 30).Draw(t, "due")))
				oracle = append(oracle, p)
			} else {
				i := rapid.IntRange(0, len(oracle)-1).Draw(t, "remove")
				heap.remove(oracle[i])
				if oracle[i].place != placeNone {
					t.Fatal("a removed principal keeps its place")
				}
				oracle = slices.Delete(oracle, i, i+1)
			}
			if len(heap) != len(oracle) {
				t.Fatalf("%d parked, want %d", len(heap), len(oracle))
			}
			for i, p := range heap {
				if p.heapIndex != i || p.due < heap[(max(i, 1)-1)/2].due {
					t.Fatalf("%d of %d out of order", i, len(heap))
				}
			}
		}
	})
}
