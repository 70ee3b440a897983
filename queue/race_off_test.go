//go:build !race

package queue

const (
	crowdSize = 65536
	slower    = 1
)

// memorySlack is what the race detector adds to the heap.
const memorySlack = 1
