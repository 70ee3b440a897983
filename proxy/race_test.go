//go:build race

package proxy

// raceEnabled: the race detector allocates and drops pooled memory, so that counts say nothing.
const raceEnabled = true
