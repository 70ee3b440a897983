package object

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// MaxEntryBytes bounds the memory of one entry of a [Cache] with the longest validator that is kept: its slot (128 bytes), its place in the
// shard's map (up to 100 bytes while the map grows) and the validator.
const MaxEntryBytes = 512

// Bounds of the settings of a cache.
const (
	maxEntries = 1 << 24
	maxShards  = 64
)

// CacheSettings sizes a [Cache].
type CacheSettings struct {
	Entries  int           // most entries, 1..2^24; shared out evenly over the shards, so that a shard may drop one before all are full
	Lifetime time.Duration // how long an entry holds after Put, above 0
}

// Validate returns what is wrong with the settings, nil when nothing is.
func (s CacheSettings) Validate() error {
	var faults []error
	if s.Entries < 1 || s.Entries > maxEntries {
		faults = append(faults, fmt.Errorf("cache entries %d: must be 1 to %d", s.Entries, maxEntries))
	}
	if s.Lifetime <= 0 {
		faults = append(faults, fmt.Errorf("cache lifetime %s: must be above 0", s.Lifetime))
	}
	return errors.Join(faults...)
}

// Cache remembers facts about objects: bounded, expiring, least recently used out first.
//
// Invariants: at most Entries entries; each shard's list holds exactly the slots of its map, in the order of use; an entry is never
// returned at or after its expiry. Each shard is guarded by its own mutex; no lock covers two shards.
type Cache struct {
	lifetime time.Duration
	mask     uint64
	shards   []shard
}

type shard struct {
	mu      sync.Mutex
	limit   int
	index   map[Key]int32
	slots   []slot
	newest  int32 // -1 when empty
	oldest  int32
	vacant  int32         // list of deleted slots through older, -1 when empty
	_       [64 - 24]byte // keeps the mutexes of two shards out of one cache line
	evicted uint64
}

type slot struct {
	key          Key
	facts        Facts
	expires      time.Duration
	newer, older int32
}

// NewCache returns an empty cache. It allocates a few kilobytes; entries are allocated as they come.
func NewCache(s CacheSettings) (*Cache, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	n := 1
	for n < maxShards && n*2*32 <= s.Entries { // a shard of few entries would drop what a whole cache has room for
		n *= 2
	}
	c := &Cache{lifetime: s.Lifetime, mask: uint64(n - 1), shards: make([]shard, n)}
	for i := range c.shards {
		sh := &c.shards[i]
		sh.limit = s.Entries / n
		sh.index = make(map[Key]int32)
		sh.newest, sh.oldest, sh.vacant = -1, -1, -1
	}
	return c, nil
}

func (c *Cache) shard(k *Key) *shard { return &c.shards[binary.LittleEndian.Uint64(k[:8])&c.mask] }

// Get returns the facts under a key that have not expired at now.
func (c *Cache) Get(now time.Duration, key Key) (Facts, bool) {
	s := c.shard(&key)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[key]
	if !ok || now >= s.slots[i].expires {
		return Facts{}, false
	}
	s.unlink(i)
	s.push(i)
	return s.slots[i].facts, true
}

// Put keeps the facts under a key until now plus the lifetime and drops the least recently used entry of the shard when there is no
// room. Facts whose size is not known take the entry away. It reports whether the object changed: an earlier entry, expired or not,
// had another size, or both had a validator and these differ. The caller then forgets what it covered of the object.
func (c *Cache) Put(now time.Duration, key Key, f Facts) (changed bool) {
	s := c.shard(&key)
	if len(f.Validator) > MaxValidatorBytes {
		f.Validator, f.Strong = "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[key]
	if ok {
		changed = differ(&s.slots[i].facts, &f)
	}
	switch {
	case !f.Known:
		if ok {
			s.drop(i)
		}
		return changed
	case ok:
		s.unlink(i)
	default:
		i = s.take()
		s.index[key] = i
		s.slots[i].key = key
	}
	p := &s.slots[i]
	if p.facts.Validator == f.Validator {
		f.Validator = p.facts.Validator // keeps the memory already held
	} else {
		f.Validator = strings.Clone(f.Validator)
	}
	p.facts, p.expires = f, now+c.lifetime
	s.push(i)
	return changed
}

func differ(old, now *Facts) bool {
	if now.Known && old.SizeBytes != now.SizeBytes {
		return true
	}
	return old.Validator != "" && now.Validator != "" && old.Validator != now.Validator
}

// Forget takes the entry of a key away, as after a 401 or 404 to these credentials.
func (c *Cache) Forget(key Key) {
	s := c.shard(&key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.index[key]; ok {
		s.drop(i)
	}
}

// Stats are counts over all shards, each shard read by itself.
type Stats struct {
	Entries  int    // held, expired ones included
	Capacity int    // most that can be held
	Evicted  uint64 // entries dropped for want of room since the start
}

// Stats walks the shards and takes their locks one after another.
func (c *Cache) Stats() Stats {
	var t Stats
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		t.Entries += len(s.index)
		t.Capacity += s.limit
		t.Evicted += s.evicted
		s.mu.Unlock()
	}
	return t
}

// take returns a slot that is in no list: a vacant one, a new one, or the oldest entry's.
func (s *shard) take() int32 {
	if i := s.vacant; i >= 0 {
		s.vacant = s.slots[i].older
		return i
	}
	if len(s.slots) < s.limit {
		if len(s.slots) == cap(s.slots) { // growth by the rule of append would pass the limit by a quarter
			grown := make([]slot, len(s.slots), min(max(2*cap(s.slots), 8), s.limit))
			copy(grown, s.slots)
			s.slots = grown
		}
		s.slots = append(s.slots, slot{})
		return int32(len(s.slots) - 1)
	}
	i := s.oldest
	s.unlink(i)
	delete(s.index, s.slots[i].key)
	s.evicted++
	return i
}

func (s *shard) drop(i int32) {
	s.unlink(i)
	delete(s.index, s.slots[i].key)
	s.slots[i] = slot{older: s.vacant}
	s.vacant = i
}

func (s *shard) unlink(i int32) {
	p := &s.slots[i]
	if p.newer >= 0 {
		s.slots[p.newer].older = p.older
	} else {
		s.newest = p.older
	}
	if p.older >= 0 {
		s.slots[p.older].newer = p.newer
	} else {
		s.oldest = p.newer
	}
}

func (s *shard) push(i int32) {
	p := &s.slots[i]
	p.newer, p.older = -1, s.newest
	if s.newest >= 0 {
		s.slots[s.newest].newer = i
	} else {
		s.oldest = i
	}
	s.newest = i
}
