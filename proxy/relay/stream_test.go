package relay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/arkvory/sidecar/bucket"
	"github.com/arkvory/sidecar/proxy/wire"
)

const streamHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"

func newStream(src, dst link, in, out bool) *Stream {
	return &Stream{Flow: Flow{Src: src.Conn, Dst: dst.Conn}, ChunkedIn: in, ChunkedOut: out, ReadLimit: BodyBytes}
}

// chunked encodes data in chunks of the sizes, with a trailer.
func chunked(data []byte, sizes []int) []byte {
	var out []byte
	for i := 0; len(data) > 0; i++ {
		n := min(sizes[i%len(sizes)], len(data))
		out = append(out, fmt.Sprintf("%X;ext=%d\r\n", n, i)...)
		out = append(append(out, data[:n]...), "\r\n"...)
		data = data[n:]
	}
	return append(out, "0\r\nX-Sum: 1\r\nx-sum:  2 \r\n\r\n"...)
}

func TestP4_StreamsOfUnknownLength(t *testing.T) {
	forgetPipes()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<rapid.IntRange(0, 22).Draw(t, "magnitude")).Draw(t, "bytes")
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{1, 7, 1000, 4096, passThrough, 70 << 10, 1 << 20}), 1, 5).Draw(t, "chunks")
		if slices.Max(sizes) < 1000 {
			n = min(n, 64<<10)
		}
		in, out := rapid.Bool().Draw(t, "chunked in"), rapid.Bool().Draw(t, "chunked out")
		src, dst := open(t, true, rapid.Bool().Draw(t, "TLS in")), open(t, false, false)
		defer src.shut()
		defer dst.shut()
		data := body(n)
		s := newStream(src, dst, in, out)
		s.Prefix = []byte(streamHead)
		if rapid.Bool().Draw(t, "paced") {
			g := bucket.NewGovernor(bucket.Limit{BytesPerSecond: 64 << 20}, bucket.Limit{}, &leapClock{})
			defer g.Close()
			s.Pace = g.Open("p")
			defer s.Pace.Close()
		}
		var told int64
		s.Sent = func(m int64) { told += m }
		go func() {
			if in {
				_, _ = src.peer.Write(append(chunked(data, sizes), following...))
				return
			}
			_, _ = src.peer.Write(data)
			_ = src.peer.(interface{ CloseWrite() error }).CloseWrite()
		}()
		got := make(chan []byte, 1)
		go func() {
			b, _ := io.ReadAll(dst.peer)
			got <- b
		}()
		if err := s.Run(); err != nil {
			t.Fatalf("%v", err)
		}
		_ = dst.CloseWrite()
		b := result(t, got)
		if told != int64(n) || s.Framed+sum(&s.Flow) != int64(n) || len(s.Prefix) != 0 {
			t.Fatalf("%d bytes: told %d, framed %d, by path %v", n, told, s.Framed, s.Bytes)
		}
		checkStream(t, b, data, in, out)
		if in {
			rest := make([]byte, len(following))
			for at := 0; at < len(rest); {
				m, err := src.Read(rest[at:])
				if at += m; err != nil {
					t.Fatalf("%v", err)
				}
			}
			if string(rest) != following {
				t.Fatalf("the body is followed by %q", rest)
			}
		}
	})
	if PipesInUse() != 0 {
		t.Fatal("a pipe is still held")
	}
	forgetPipes()
}

func checkStream(t fataler, got, data []byte, in, out bool) {
	t.Helper()
	if !out {
		if string(got[:min(len(got), len(streamHead))]) != streamHead || !bytes.Equal(got[len(streamHead):], data) {
			t.Fatalf("a plain body of %d bytes differs", len(data))
		}
		return
	}
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil || !bytes.Equal(b, data) {
		t.Fatalf("a chunked body of %d bytes is read as %d: %v", len(data), len(b), err)
	}
	if sums := r.Trailer["X-Sum"]; in && !slices.Equal(sums, []string{"1", "2"}) {
		t.Fatalf("trailers are %q", r.Trailer)
	}
}

func TestP4_LargeChunksKeepTheirSizes(t *testing.T) {
	src, dst := dial(t, true, false), dial(t, false, false)
	s := newStream(src, dst, true, true)
	const n = 3 << 20
	go func() { _, _ = src.peer.Write(chunked(body(n), []int{n})) }()
	done := make(chan error, 1)
	go func() { done <- s.Run() }()
	out := make([]byte, len("300000\r\n")+n+len("\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n"))
	if _, err := io.ReadFull(dst.peer, out); err != nil {
		t.Fatal(err)
	}
	if err := result(t, done); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(out, []byte("300000\r\n")) || !bytes.HasSuffix(out, []byte("\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n")) || sum(&s.Flow) < n-BodyBytes {
		t.Fatalf("%.20q..., by path %v, framed %d", out, s.Bytes, s.Framed)
	}
}

func TestP4_NothingReadyWaitsForTheSource(t *testing.T) {
	src, dst := dial(t, true, false), dial(t, false, false)
	s := newStream(src, dst, true, true)
	s.Prefix = []byte("HEAD")
	send(t, src, []byte("1")) // the start of a chunk line, no more
	mustFill(t, src.Conn, BodyBytes)
	done := make(chan error, 1)
	go func() { done <- s.Run() }()
	large := string(body(200 << 10))
	for _, step := range []struct{ in, out string }{
		{"", "HEAD"}, {"\r\nx\r\n", "1\r\nx\r\n"}, {"32000\r\n" + large, "32000\r\n" + large + "\r\n"}, {"\r\n2\r\nyz", "2\r\nyz\r\n"},
		{"\r\n0\r\n\r\n", "0\r\n\r\n"},
	} {
		send(t, src, []byte(step.in))
		out := make([]byte, len(step.out))
		if n, err := io.ReadFull(dst.peer, out); err != nil || string(out) != step.out {
			t.Fatalf("after %.20q the sink has %d bytes %.20q: %v", step.in, n, out, err)
		}
	}
	if err := result(t, done); err != nil {
		t.Fatal(err)
	}
}

func TestP4_BrokenStreamsEndBroken(t *testing.T) {
	whole := string(chunked(body(100<<10), []int{70 << 10, 30 << 10}))
	for name, c := range map[string]struct {
		in    string
		reset bool
		rule  bool
	}{
		"nothing": {in: ""}, "in the size": {in: "1"}, "in the data": {in: "5\r\nab"}, "after the data": {in: "2\r\nab"},
		"in a large chunk": {in: whole[:60<<10]}, "before the last chunk": {in: whole[:strings.LastIndex(whole, "0\r\nX-Sum")]},
		"in the trailer": {in: whole[:len(whole)-2]}, "bad size": {in: "zz\r\n", rule: true}, "bad end": {in: "1\r\nxy\r\n", rule: true},
		"reset": {in: "5\r\nab", reset: true},
	} {
		src, dst := dial(t, true, false), dial(t, false, false)
		s := newStream(src, dst, true, true)
		got := make(chan []byte, 1)
		go func() {
			b, _ := io.ReadAll(dst.peer)
			got <- b
		}()
		send(t, src, []byte(c.in))
		if c.reset {
			_ = src.tcp.SetLinger(0)
		}
		_ = src.tcp.Close()
		err := s.Run()
		var source *SourceError
		var malformed *wire.Error
		if !errors.As(err, &source) || errors.As(err, &malformed) != c.rule || !c.rule && !c.reset && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut %s: %v", name, err)
		}
		_ = dst.CloseWrite()
		if b := result(t, got); bytes.HasSuffix(b, []byte("0\r\n\r\n")) || bytes.Contains(b, []byte("X-Sum")) {
			t.Errorf("cut %s: the sink sees a whole body: %.60q", name, b)
		}
	}
	src, dst := dial(t, true, false), dial(t, false, false)
	awaited := make(chan error, 1)
	go func() { awaited <- newStream(src, dst, false, true).Run() }()
	awaitBlocked(t, 1, "relay.(*Conn).Fill")
	_ = src.tcp.SetLinger(0)
	_ = src.tcp.Close()
	var source *SourceError
	if err := result(t, awaited); !errors.As(err, &source) {
		t.Errorf("a close-delimited body that is reset: %v", err)
	}
}

func TestP6_StreamSinkGone(t *testing.T) {
	for _, in := range []bool{false, true} {
		src, dst := dial(t, true, false), dial(t, false, false)
		done := make(chan error, 1)
		go func() { done <- newStream(src, dst, in, true).Run() }()
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			_, _ = src.peer.Write(chunked(body(24<<20), []int{1 << 20, 100}))
		}()
		if _, err := io.ReadFull(dst.peer, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		_ = dst.tcp.SetLinger(0)
		_ = dst.tcp.Close()
		var sink *SinkError
		if err := result(t, done); !errors.As(err, &sink) || sink.Error() == "" {
			t.Errorf("chunked in %v: %v", in, err)
		}
		src.shut()
		<-fed
		if PipesInUse() != 0 {
			t.Error("a pipe is still held")
		}
	}
}

func TestV2_PathNames(t *testing.T) {
	if got := fmt.Sprint(PathBuffered, PathCopy, PathSplice, PathTLS); got != "buffered copy splice tls" {
		t.Fatal(got)
	}
}
