//go:build race

package queue

// The race detector slows these loops down by an order of magnitude.
const (
	crowdSize = 8192
	slower    = 10
)

const memorySlack = 2
