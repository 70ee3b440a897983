//go:build !race

package relay

// raced: see the file for the race detector.
const raced = false
