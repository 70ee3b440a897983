//go:build !race

package upstream

// raced: see the file for the race detector.
const raced = false
