package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/arkvory/sidecar/queue/client"
)

// A download that is queued first, shows what happens, and checks what it got.
func ExampleDownload() {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !asked {
			asked = true
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Arkvory-Queue-Position", "312")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte("hello, queue")))
	}))
	defer server.Close()
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)

	digest, err := client.ParseDigest("sha256:f846e160bfd39871faff32f4a2ef16972933bb6410ca9df29f568796b8f9d23c")
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := client.Download(context.Background(), client.Options{
		URL:    server.URL + "/greeting",
		Output: filepath.Join(folder, "greeting"),
		Digest: digest,
		Observe: func(e client.Event) {
			switch e.Kind {
			case client.Queued:
				fmt.Printf("in the queue, place %d\n", e.Position)
			case client.Done:
				fmt.Printf("done, %d of %d bytes\n", e.Bytes, e.Total)
			}
		},
	})
	switch {
	case errors.Is(err, client.ErrQueueDeadline), errors.Is(err, client.ErrWaitLimit):
		fmt.Println("not today:", err)
	case err != nil:
		fmt.Println("failed:", err)
	default:
		fmt.Println(result.Bytes, result.ETag)
	}
	// Output:
	// in the queue, place 312
	// done, 12 of 12 bytes
	// 12 "v1"
}
