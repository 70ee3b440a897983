//go:build race

package upstream

// raced: the race detector allocates for itself.
const raced = true
