//go:build race

package relay

// raced: the race detector makes sync.Pool forget at random, so that allocations cannot be counted.
const raced = true
