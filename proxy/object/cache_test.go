package object

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

func key(i int) (k Key) {
	binary.LittleEndian.PutUint64(k[:], uint64(i)) // the first bytes choose the shard
	k[31] = 1
	return k
}

func sized(n int64, v string) Facts {
	return Facts{Known: true, SizeBytes: n, Last: n - 1, Validator: v, Strong: v != ""}
}

func mustCache(t testing.TB, entries int, life time.Duration) *Cache {
	t.Helper()
	c, err := NewCache(CacheSettings{Entries: entries, Lifetime: life})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkInvariants walks every shard: its list, its map and its vacant slots cover the slots exactly.
func (c *Cache) checkInvariants(t testing.TB) {
	t.Helper()
	for n := range c.shards {
		s := &c.shards[n]
		seen, before := 0, int32(-1)
		for i := s.newest; i >= 0; i = s.slots[i].older {
			if s.slots[i].newer != before || s.index[s.slots[i].key] != i {
				t.Fatalf("shard %d: slot %d is linked or indexed wrongly", n, i)
			}
			before = i
			seen++
		}
		vacant := 0
		for i := s.vacant; i >= 0; i = s.slots[i].older {
			vacant++
		}
		if s.oldest != before || seen != len(s.index) || seen+vacant != len(s.slots) || len(s.slots) > s.limit {
			t.Fatalf("shard %d: %d listed, %d indexed, %d vacant, %d slots, limit %d", n, seen, len(s.index), vacant, len(s.slots), s.limit)
		}
	}
}

func TestO2_EntriesExpire(t *testing.T) {
	c := mustCache(t, 10, time.Minute)
	c.Put(time.Hour, key(1), sized(5, `"a"`))
	if f, ok := c.Get(time.Hour+time.Minute-1, key(1)); !ok || f != sized(5, `"a"`) {
		t.Errorf("%+v %v", f, ok)
	}
	if _, ok := c.Get(time.Hour+time.Minute, key(1)); ok {
		t.Error("an entry must end with its lifetime; reading must not renew it")
	}
}

func TestO2_AChangedValidatorIsReported(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, now Facts
		want     bool
	}{
		{"same", sized(5, `"a"`), sized(5, `"a"`), false},
		{"tag", sized(5, `"a"`), sized(5, `"b"`), true},
		{"size", sized(5, ""), sized(6, ""), true},
		{"validator lost", sized(5, `"a"`), sized(5, ""), false},
		{"size lost, tag changed", sized(5, `"a"`), Facts{SizeBytes: -1, Validator: `"b"`}, true},
		{"size lost", sized(5, `"a"`), Facts{SizeBytes: -1}, false},
	} {
		cache := mustCache(t, 10, time.Minute)
		if cache.Put(0, key(1), c.old) {
			t.Errorf("%s: the first entry is no change", c.name)
		}
		if got := cache.Put(time.Hour, key(1), c.now); got != c.want { // the old one has expired and counts all the same
			t.Errorf("%s: changed %v", c.name, got)
		}
		f, ok := cache.Get(time.Hour, key(1))
		if ok != c.now.Known || ok && f != c.now {
			t.Errorf("%s: left %+v %v", c.name, f, ok)
		}
		cache.checkInvariants(t)
	}
}

func TestL3_TheLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := mustCache(t, 3, time.Hour)
	for i := range 3 {
		c.Put(0, key(i), sized(1, ""))
	}
	c.Get(0, key(0))
	c.Put(0, key(3), sized(1, ""))
	for i, want := range []bool{true, false, true, true} {
		if _, ok := c.Get(0, key(i)); ok != want {
			t.Errorf("entry %d: held %v", i, ok)
		}
	}
	c.Forget(key(0))
	c.Forget(key(0))
	if s := c.Stats(); s != (Stats{Entries: 2, Capacity: 3, Evicted: 1}) {
		t.Errorf("%+v", s)
	}
}

func TestO2_CacheAgainstASlowModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		entries := rapid.IntRange(1, 8).Draw(r, "entries")
		c := mustCache(t, entries, 10)
		type held struct {
			k       int
			f       Facts
			expires time.Duration
		}
		var model []held // the most recently used last
		now := time.Duration(0)
		find := func(k int) int {
			for i := range model {
				if model[i].k == k {
					return i
				}
			}
			return -1
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			now += time.Duration(rapid.IntRange(0, 4).Draw(r, "later"))
			k := rapid.IntRange(0, 11).Draw(r, "key")
			at := find(k)
			switch rapid.IntRange(0, 4).Draw(r, "what") {
			case 0:
				c.Forget(key(k))
				if at >= 0 {
					model = append(model[:at], model[at+1:]...)
				}
			case 1, 2:
				f := sized(int64(rapid.IntRange(1, 2).Draw(r, "size")), rapid.SampledFrom([]string{"", `"a"`, `"b"`}).Draw(r, "tag"))
				want := at >= 0 && differ(&model[at].f, &f)
				if got := c.Put(now, key(k), f); got != want {
					r.Fatalf("Put %d: changed %v", k, got)
				}
				if at >= 0 {
					model = append(model[:at], model[at+1:]...)
				} else if len(model) == entries {
					model = model[1:]
				}
				model = append(model, held{k, f, now + 10})
			default:
				f, ok := c.Get(now, key(k))
				want := at >= 0 && now < model[at].expires
				if ok != want || ok && f != model[at].f {
					r.Fatalf("Get %d at %d: %+v %v, want %v", k, now, f, ok, want)
				}
				if ok {
					m := model[at]
					model = append(append(model[:at:at], model[at+1:]...), m)
				}
			}
			c.checkInvariants(t)
		}
	})
}

func TestL3_MemoryOfAnEntryIsBounded(t *testing.T) {
	if s := unsafe.Sizeof(slot{}); s > 128 {
		t.Errorf("a slot has %d bytes, the documentation says 128", s)
	}
	const n = 1 << 14
	c := mustCache(t, n, time.Hour)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 4 * n { // overfilled, so that reuse is measured too
		k := MakeKey(binary.LittleEndian.AppendUint64(nil, uint64(i)), [16]byte{})
		c.Put(0, k, sized(1, strings.Repeat("v", MaxValidatorBytes-8)+fmt.Sprintf("%08d", i)))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := c.Stats()
	per := float64(after.HeapAlloc-before.HeapAlloc) / float64(held.Capacity)
	if held.Entries != held.Capacity || per > MaxEntryBytes {
		t.Errorf("%d of %d entries, %.0f bytes each, at most %d are promised", held.Entries, held.Capacity, per, MaxEntryBytes)
	}
	runtime.KeepAlive(c)
}

func TestL3_ManyGoroutines(t *testing.T) {
	c := mustCache(t, 4096, time.Hour)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				k := key(i % 500)
				if c.Put(0, k, sized(int64(i%500), "")) {
					t.Error("nothing changed")
				}
				if f, ok := c.Get(0, k); ok && f.SizeBytes != int64(i%500) {
					t.Errorf("entry of another key: %+v", f)
				}
				if i%97 == g {
					c.Forget(k)
				}
			}
		})
	}
	wg.Wait()
	c.checkInvariants(t)
}

func TestO2_GetAllocatesNothingAndSettingsAreChecked(t *testing.T) {
	c := mustCache(t, 100, time.Hour)
	c.Put(0, key(1), sized(1, `"a"`))
	if n := testing.AllocsPerRun(100, func() { c.Get(0, key(1)); c.Put(0, key(1), sized(1, `"a"`)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if _, err := NewCache(CacheSettings{}); err == nil || !strings.Contains(err.Error(), "entries 0") || !strings.Contains(err.Error(), "lifetime 0s") {
		t.Errorf("%v", err)
	}
}
