package relay

import (
	"errors"
	"io"

	"github.com/arkvory/sidecar/proxy/wire"
)

// passThrough is the rest of a chunk from which on it is moved as a Flow instead of through the buffer.
const passThrough = 32 << 10

// Stream moves a body of unknown length: a chunked one, or one that ends with its connection. Chunks of a chunked source towards a chunked sink keep their
// sizes when they are large. The zero value of the optional fields of Flow is fine.
type Stream struct {
	Flow
	// ChunkedIn: the source is chunked; else its body ends with the connection. ChunkedOut: the sink is.
	ChunkedIn, ChunkedOut bool
	// Prefix goes out before the body, a message head for one; it is used as scratch memory and comes back empty.
	Prefix []byte
	// ReadLimit bounds the source's buffer in bytes.
	ReadLimit int
	// Chunks is the decoder's state; Trailer of it is passed on.
	Chunks wire.Chunks
	// Framed counts the bytes that went through the buffer.
	Framed int64
}

var crlf = []byte("\r\n")

// Run moves the body to its end, trailer section included. Errors as of Copy; a broken chunk is a *SourceError with a *wire.Error.
func (s *Stream) Run() error {
	defer s.Close()
	for {
		data, err := s.next()
		if err != nil {
			return err
		}
		if len(data) == 0 {
			break
		}
		if err := s.send(data); err != nil {
			return err
		}
	}
	if s.ChunkedOut {
		var t *wire.Head
		if s.ChunkedIn {
			t = &s.Chunks.Trailer
		}
		s.Prefix = wire.AppendLastChunk(s.Prefix, t)
	}
	return s.flush()
}

func (s *Stream) flush() error {
	if len(s.Prefix) == 0 {
		return nil
	}
	err := s.Dst.Write(s.Prefix)
	s.Prefix = s.Prefix[:0]
	if err != nil {
		return &SinkError{err}
	}
	return nil
}

// next returns decoded bytes out of the source's buffer, valid until it is read again; none at the end. What is ready for the sink, a
// head for one, goes out before it waits. Errors: *SourceError, *SinkError.
func (s *Stream) next() ([]byte, error) {
	for {
		b := s.Src.Buffered()
		switch {
		case s.ChunkedIn:
			data, used, err := s.Chunks.Next(b)
			s.Src.Skip(used)
			if len(data) > 0 {
				return data, nil
			}
			if s.Chunks.Done() {
				return nil, nil
			}
			if err != nil && err != wire.ErrNeedMore {
				return nil, &SourceError{err}
			}
		case len(b) > 0:
			s.Src.Skip(len(b))
			return b, nil
		}
		s.Src.ReleaseIfEmpty()
		if err := s.flush(); err != nil {
			return nil, err
		}
		if s.Waiting != nil && s.Now != nil {
			s.Waiting.Store(s.Now.Load())
		}
		err := s.Src.Fill(s.ReadLimit)
		if s.Waiting != nil {
			s.Waiting.Store(0)
		}
		if err != nil {
			if !s.ChunkedIn && errors.Is(err, io.EOF) {
				return nil, nil
			}
			return nil, &SourceError{eof(err)}
		}
	}
}

// send sends what of a chunk was read, and the rest of a large one straight from socket to socket.
func (s *Stream) send(data []byte) error {
	left := int64(0)
	if s.ChunkedIn {
		if left = s.Chunks.Left(); left < passThrough {
			left = 0
		}
	}
	if left == 0 {
		return s.sendPieces(data)
	}
	if s.ChunkedOut {
		s.Prefix = wire.AppendChunkSize(s.Prefix, int64(len(data))+left)
	}
	if err := s.sendPaced(data, nil); err != nil {
		return err
	}
	if err := s.Copy(left); err != nil {
		return err
	}
	s.Chunks.Took(left)
	if s.ChunkedOut {
		s.Prefix = append(s.Prefix, crlf...)
	}
	return s.flush()
}

// sendPieces sends data as chunks of the size that the pace grants.
func (s *Stream) sendPieces(data []byte) error {
	for len(data) > 0 {
		n, err := s.grant(int64(len(data)))
		if err != nil {
			return err
		}
		var tail []byte
		if s.ChunkedOut {
			s.Prefix = wire.AppendChunkSize(s.Prefix, n)
			tail = crlf
		}
		if err := s.write(data[:n], tail); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// sendPaced sends data of a chunk whose size line is already written.
func (s *Stream) sendPaced(data, tail []byte) error {
	for len(data) > 0 {
		n, err := s.grant(int64(len(data)))
		if err != nil {
			return err
		}
		if err := s.write(data[:n], tail); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (s *Stream) grant(n int64) (int64, error) {
	if s.Pace == nil {
		return n, nil
	}
	if err := s.flush(); err != nil { // nothing ready waits for a grant
		return 0, err
	}
	s.Dst.Paced.Store(true)
	defer s.Dst.Paced.Store(false)
	return s.Pace.Take(n, s.Gone)
}

func (s *Stream) write(data, tail []byte) error {
	if err := s.Dst.Write3(s.Prefix, data, tail); err != nil {
		return &SinkError{err}
	}
	s.Prefix = s.Prefix[:0]
	n := int64(len(data))
	s.Framed += n
	s.Src.Moved.Add(n)
	s.Dst.Moved.Add(n)
	if s.Sent != nil {
		s.Sent(n)
	}
	return nil
}
