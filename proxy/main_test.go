package proxy

import (
	"testing"

	"go.uber.org/goleak"
)

// Two goroutines of fasthttp outlive the admin listener of a test: the process-wide date, and the worker pool's cleaner, which looks for the
// stop signal every ten seconds.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
