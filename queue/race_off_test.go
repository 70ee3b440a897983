//go:build !race

package queue

const (
	crowdSize = 65536
	slower    = 1
)
