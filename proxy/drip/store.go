package drip

import "slices"

import "time"

// piece is one stretch of an object.
type piece struct {
	object   [32]byte
	number   int64
	first    int64 // offset of its first byte
	size     int
	data     []byte
	err      error
	failedAt time.Duration
	loading  bool
	alone    bool // of one drip, not in the store
	refs     int  // drips that stand in it

	prev, next *piece // among those that nobody stands in, the least recently used first
}

type pieceKey struct {
	object [32]byte
	number int64
}

// store keeps pieces up to a bound. Guarded by the dripper's lock.
//
// Invariants: bytes is the sum of the sizes of all pieces in index and never above limit; a piece is in the list exactly while it is in index with refs 0 and not
// loading; one that failed is in neither.
type store struct {
	limit int
	bytes int
	held  int // bytes of those that somebody stands in
	index map[pieceKey]*piece
	spare [][]byte // of mostFetch bytes each
	free  piece    // ring of those that nobody stands in
}

func newStore(limit int) store { return store{limit: limit, index: map[pieceKey]*piece{}} }

func (s *store) ring() *piece {
	if s.free.next == nil {
		s.free.next, s.free.prev = &s.free, &s.free
	}
	return &s.free
}

func (s *store) list(p *piece) {
	r := s.ring()
	p.prev, p.next = r.prev, r
	r.prev.next = p
	r.prev = p
}

func (s *store) unlist(p *piece) {
	if p.next != nil {
		p.prev.next, p.next.prev = p.next, p.prev
		p.prev, p.next = nil, nil
	}
}

// get returns a piece, nil when it is not there.
func (s *store) get(object [32]byte, number int64) *piece { return s.index[pieceKey{object, number}] }

// room makes place for that many bytes, false when what is stood in leaves none.
func (s *store) room(size int) bool {
	for s.bytes+size > s.limit {
		victim := s.ring().next
		if victim == &s.free {
			return false
		}
		s.remove(victim)
	}
	return true
}

func (s *store) remove(p *piece) {
	s.unlist(p)
	key := pieceKey{p.object, p.number}
	if s.index[key] == p {
		delete(s.index, key)
		s.bytes -= p.size
	}
}

// add makes a piece that is being loaded; nil when there is no room.
func (s *store) add(object [32]byte, number, first int64, size int) *piece {
	if !s.room(size) {
		return nil
	}
	p := &piece{object: object, number: number, first: first, size: size, loading: true}
	s.index[pieceKey{object, number}] = p
	s.bytes += size
	return p
}

// put keeps a copy of a piece that its caller has, and returns the one of the store: that, or an earlier one. Nil when there is no room.
func (s *store) put(object [32]byte, number int64, data []byte) *piece {
	if p := s.get(object, number); p != nil {
		return p
	}
	p := s.add(object, number, number*PieceBytes, len(data))
	if p != nil {
		p.data, p.loading = slices.Clone(data), false
		s.list(p)
	}
	return p
}

// hold and release count who stands in a piece.
func (s *store) hold(p *piece) {
	if p.refs++; p.refs == 1 && !p.alone {
		s.held += p.size
	}
	s.unlist(p)
}

func (s *store) release(p *piece) {
	if p.refs--; p.refs == 0 && !p.alone {
		s.held -= p.size
	}
	switch {
	case p.refs > 0 || p.loading || p.err != nil:
	case !p.alone:
		s.list(p)
	case len(s.spare) < spares:
		s.spare = append(s.spare, p.data[:mostFetch:mostFetch])
		p.data = nil
	}
}

// spares is how many buffers of fetches for one alone are kept: what many of them leave behind would be most of the garbage of a process that feeds many.
const spares = 64

// buffer returns memory for the bytes of a piece.
func (s *store) buffer(p *piece) []byte {
	if !p.alone {
		return make([]byte, p.size)
	}
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b[:p.size]
	}
	return make([]byte, p.size, mostFetch)
}

// loaded ends the fetch of a piece.
func (s *store) loaded(p *piece, data []byte, err error) {
	p.loading, p.data, p.err = false, data, err
	switch {
	case p.alone:
	case err != nil:
		s.remove(p)
	case p.refs == 0:
		s.list(p)
	}
}
