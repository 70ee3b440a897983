package queue

// orderKey is a place in an order: the turn (or the size key of a size order), then arrival, then number. Numbers are
// unique, so the order is total.
type orderKey struct {
	turn    int64
	arrival int64 // nanoseconds
	number  uint64
}

func (k orderKey) before(other orderKey) bool {
	if k.turn != other.turn {
		return k.turn < other.turn
	}
	if k.arrival != other.arrival {
		return k.arrival < other.arrival
	}
	return k.number < other.number
}

// numbered is what a tree holds: the number settles ties of turn and arrival.
type numbered interface{ orderNumber() uint64 }

// fanout is how many entries a leaf, and how many children an inner node of a tree has at most.
const fanout = 64

// tree is a B+ tree with counts and sums of bytes: insert, remove, rank and select cost O(log n) with few cache misses.
// The zero value is empty. It is used by one goroutine at a time.
type tree[T numbered] struct{ root *treeNode[T] }

type treeEntry[T numbered] struct {
	turn    int64
	arrival int64
	bytes   int64
	item    T
}

func (e *treeEntry[T]) key() orderKey { return orderKey{e.turn, e.arrival, e.item.orderNumber()} }

func (e *treeEntry[T]) is(k *orderKey) bool {
	return e.turn == k.turn && e.arrival == k.arrival && e.item.orderNumber() == k.number
}

// treeNode is a leaf with entries, or an inner node. Leaves are linked in order.
type treeNode[T numbered] struct {
	entries    []treeEntry[T]
	inner      *treeInner[T]
	prev, next *treeNode[T]
}

// treeInner holds the children in parallel arrays, so that sums over the earlier ones touch little memory.
type treeInner[T numbered] struct {
	n      int
	counts [fanout]int32
	sums   [fanout]int64
	firsts [fanout]orderKey // not after the first key of the child, after the last key of the child before
	kids   [fanout]*treeNode[T]
}

func (t *tree[T]) len() int {
	if t.root == nil {
		return 0
	}
	n, _ := t.root.totals()
	return n
}

// bytes returns the sum of all entries.
func (t *tree[T]) bytes() int64 {
	if t.root == nil {
		return 0
	}
	_, sum := t.root.totals()
	return sum
}

func (n *treeNode[T]) totals() (count int, bytes int64) {
	if n.inner == nil {
		for i := range n.entries {
			bytes += n.entries[i].bytes
		}
		return len(n.entries), bytes
	}
	for i := range n.inner.n {
		count += int(n.inner.counts[i])
		bytes += n.inner.sums[i]
	}
	return count, bytes
}

// search returns the index of the first entry of a leaf that is not before key.
func (n *treeNode[T]) search(key orderKey) int {
	low, high := 0, len(n.entries)
	for low < high {
		middle := int(uint(low+high) >> 1)
		e := &n.entries[middle]
		before := e.turn < key.turn
		if e.turn == key.turn {
			if before = e.arrival < key.arrival; e.arrival == key.arrival {
				before = e.item.orderNumber() < key.number
			}
		}
		if before {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// child returns the index of the child that key belongs to.
func (in *treeInner[T]) child(key orderKey) int {
	low, high := 1, in.n
	for low < high {
		middle := int(uint(low+high) >> 1)
		first := &in.firsts[middle]
		before := key.turn < first.turn
		if key.turn == first.turn {
			if before = key.arrival < first.arrival; key.arrival == first.arrival {
				before = key.number < first.number
			}
		}
		if before {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low - 1
}

// insert adds an entry; its key must not be there yet.
func (t *tree[T]) insert(key orderKey, bytes int64, item T) {
	if t.root == nil {
		t.root = &treeNode[T]{}
	}
	right := t.root.insert(key, treeEntry[T]{key.turn, key.arrival, bytes, item})
	if right == nil {
		return
	}
	in := &treeInner[T]{n: 2}
	for i, kid := range [...]*treeNode[T]{t.root, right} {
		in.put(i, kid)
	}
	t.root = &treeNode[T]{inner: in}
}

// put sets child i and its totals.
func (in *treeInner[T]) put(i int, kid *treeNode[T]) {
	count, bytes := kid.totals()
	in.kids[i], in.counts[i], in.sums[i], in.firsts[i] = kid, int32(count), bytes, kid.first()
}

func (n *treeNode[T]) first() orderKey {
	if n.inner != nil {
		return n.inner.firsts[0]
	}
	return n.entries[0].key()
}

// insert adds the entry below n and returns the node that split off to the right, nil when none did.
func (n *treeNode[T]) insert(key orderKey, e treeEntry[T]) *treeNode[T] {
	in := n.inner
	if in == nil {
		return n.insertLeaf(key, e)
	}
	i := in.child(key)
	if key.before(in.firsts[i]) {
		in.firsts[i] = key
	}
	split := in.kids[i].insert(key, e)
	if split == nil {
		in.counts[i]++
		in.sums[i] += e.bytes
		return nil
	}
	first := in.firsts[i]
	in.put(i, in.kids[i])
	in.firsts[i] = first
	if in.n < fanout {
		in.open(i + 1)
		in.put(i+1, split)
		return nil
	}
	// Full: the right half moves out; appending at the end leaves the left one full.
	right := &treeInner[T]{}
	at := fanout / 2
	if i+1 == fanout {
		at = fanout - 1
	}
	in.moveTail(right, at)
	if i+1 > at {
		right.open(i + 1 - at)
		right.put(i+1-at, split)
	} else {
		in.open(i + 1)
		in.put(i+1, split)
	}
	return &treeNode[T]{inner: right}
}

func (n *treeNode[T]) insertLeaf(key orderKey, e treeEntry[T]) *treeNode[T] {
	i := n.search(key)
	if len(n.entries) < fanout {
		n.entries = append(n.entries, treeEntry[T]{})
		copy(n.entries[i+1:], n.entries[i:])
		n.entries[i] = e
		return nil
	}
	right := &treeNode[T]{prev: n, next: n.next}
	if right.next != nil {
		right.next.prev = right
	}
	n.next = right
	at := fanout / 2
	if i == fanout {
		at = fanout
	}
	right.entries = append(make([]treeEntry[T], 0, fanout), n.entries[at:]...)
	clear(n.entries[at:])
	n.entries = n.entries[:at]
	target, j := n, i
	if i > at || i == fanout {
		target, j = right, i-at
	}
	target.entries = append(target.entries, treeEntry[T]{})
	copy(target.entries[j+1:], target.entries[j:])
	target.entries[j] = e
	return right
}

// open makes room for a child at i.
func (in *treeInner[T]) open(i int) {
	copy(in.counts[i+1:in.n+1], in.counts[i:in.n])
	copy(in.sums[i+1:in.n+1], in.sums[i:in.n])
	copy(in.firsts[i+1:in.n+1], in.firsts[i:in.n])
	copy(in.kids[i+1:in.n+1], in.kids[i:in.n])
	in.n++
}

// shut takes child i out.
func (in *treeInner[T]) shut(i int) {
	copy(in.counts[i:], in.counts[i+1:in.n])
	copy(in.sums[i:], in.sums[i+1:in.n])
	copy(in.firsts[i:], in.firsts[i+1:in.n])
	copy(in.kids[i:], in.kids[i+1:in.n])
	in.n--
	in.kids[in.n] = nil
}

// moveTail appends the children from at on to other.
func (in *treeInner[T]) moveTail(other *treeInner[T], at int) {
	copy(other.counts[other.n:], in.counts[at:in.n])
	copy(other.sums[other.n:], in.sums[at:in.n])
	copy(other.firsts[other.n:], in.firsts[at:in.n])
	copy(other.kids[other.n:], in.kids[at:in.n])
	other.n += in.n - at
	clear(in.kids[at:in.n])
	in.n = at
}

// remove takes the entry of key out and returns its bytes; false when there is none.
func (t *tree[T]) remove(key orderKey) (bytes int64, found bool) {
	if t.root == nil {
		return 0, false
	}
	bytes, found = t.root.remove(key)
	for t.root.inner != nil && t.root.inner.n == 1 {
		t.root = t.root.inner.kids[0]
	}
	if t.root.inner == nil && len(t.root.entries) == 0 {
		t.root = nil
	}
	return bytes, found
}

func (n *treeNode[T]) remove(key orderKey) (bytes int64, found bool) {
	in := n.inner
	if in == nil {
		i := n.search(key)
		if i == len(n.entries) || !n.entries[i].is(&key) {
			return 0, false
		}
		bytes = n.entries[i].bytes
		last := len(n.entries) - 1
		copy(n.entries[i:], n.entries[i+1:])
		n.entries[last] = treeEntry[T]{}
		n.entries = n.entries[:last]
		return bytes, true
	}
	i := in.child(key)
	if bytes, found = in.kids[i].remove(key); !found {
		return 0, false
	}
	in.counts[i]--
	in.sums[i] -= bytes
	in.settle(i)
	return bytes, true
}

// settle takes child i out when it is empty, and merges it with a neighbour when both together leave room.
func (in *treeInner[T]) settle(i int) {
	kid := in.kids[i]
	size := kid.size()
	switch {
	case size == 0:
		kid.unlink()
		in.shut(i)
		return
	case size > fanout/4:
		return
	}
	left := max(i-1, 0)
	if left+1 >= in.n || in.kids[left].size()+in.kids[left+1].size() > fanout*3/4 {
		return
	}
	a, b := in.kids[left], in.kids[left+1]
	if a.inner == nil {
		a.entries = append(a.entries, b.entries...)
		b.unlink()
	} else {
		b.inner.moveTail(a.inner, 0)
	}
	in.counts[left] += in.counts[left+1]
	in.sums[left] += in.sums[left+1]
	in.shut(left + 1)
}

func (n *treeNode[T]) size() int {
	if n.inner != nil {
		return n.inner.n
	}
	return len(n.entries)
}

// unlink takes a leaf out of the chain of leaves.
func (n *treeNode[T]) unlink() {
	if n.prev != nil {
		n.prev.next = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	}
}

// rank returns how many entries are before key and the sum of their bytes. Of the leaf where the key belongs the bytes are taken as
// even (but exact in a tree of one leaf): they serve estimates, and reading a leaf through costs more than the rest.
func (t *tree[T]) rank(key orderKey) (count int, bytes int64) {
	n := t.root
	if n == nil {
		return 0, 0
	}
	if n.inner == nil {
		i := n.search(key)
		for j := range n.entries[:i] {
			bytes += n.entries[j].bytes
		}
		return i, bytes
	}
	var leafBytes int64
	for n.inner != nil {
		i := n.inner.child(key)
		for j := range i {
			count += int(n.inner.counts[j])
			bytes += n.inner.sums[j]
		}
		leafBytes = n.inner.sums[i]
		n = n.inner.kids[i]
	}
	i := n.search(key)
	return count + i, bytes + leafBytes/int64(len(n.entries))*int64(i)
}

// before returns how many entries are before key.
func (t *tree[T]) before(key orderKey) (count int) {
	n := t.root
	if n == nil {
		return 0
	}
	for in := n.inner; in != nil; in = n.inner {
		i := in.child(key)
		for _, c := range in.counts[:i] {
			count += int(c)
		}
		n = in.kids[i]
	}
	return count + n.search(key)
}

// firstBytes returns the sum of the bytes of the first n entries; of the last leaf as rank does.
func (t *tree[T]) firstBytes(n int) (bytes int64) {
	at := t.root
	if at == nil {
		return 0
	}
	for in := at.inner; in != nil; in = at.inner {
		i := 0
		for ; i < in.n-1 && n >= int(in.counts[i]); i++ {
			n -= int(in.counts[i])
			bytes += in.sums[i]
		}
		if at = in.kids[i]; at.inner == nil {
			return bytes + in.sums[i]/int64(in.counts[i])*int64(min(n, int(in.counts[i])))
		}
	}
	for i := range at.entries[:min(n, len(at.entries))] {
		bytes += at.entries[i].bytes
	}
	return bytes
}

// at returns the entry of rank n, which must exist. It is valid until the tree changes.
func (t *tree[T]) at(n int) *treeEntry[T] {
	c := t.cursor(n)
	return c.entry()
}

// find returns the entry of key, nil when there is none. It is valid until the tree changes.
func (t *tree[T]) find(key orderKey) *treeEntry[T] {
	n := t.root
	if n == nil {
		return nil
	}
	for n.inner != nil {
		n = n.inner.kids[n.inner.child(key)]
	}
	if i := n.search(key); i < len(n.entries) && n.entries[i].is(&key) {
		return &n.entries[i]
	}
	return nil
}

// setBytes changes the bytes of the entry of key.
func (t *tree[T]) setBytes(key orderKey, bytes int64) {
	e := t.find(key)
	if e == nil || e.bytes == bytes {
		return
	}
	delta := bytes - e.bytes
	e.bytes = bytes
	for n := t.root; n.inner != nil; {
		i := n.inner.child(key)
		n.inner.sums[i] += delta
		n = n.inner.kids[i]
	}
}

// treeCursor walks a tree in order; the tree must not change meanwhile.
type treeCursor[T numbered] struct {
	leaf  *treeNode[T]
	index int
}

// cursor returns a cursor at the entry of rank n; it is at the end when there is none.
func (t *tree[T]) cursor(n int) treeCursor[T] {
	at := t.root
	if at == nil {
		return treeCursor[T]{}
	}
	for at.inner != nil {
		i := 0
		for ; i < at.inner.n-1 && n >= int(at.inner.counts[i]); i++ {
			n -= int(at.inner.counts[i])
		}
		at = at.inner.kids[i]
	}
	if n >= len(at.entries) {
		return treeCursor[T]{}
	}
	return treeCursor[T]{at, n}
}

// entry returns the entry at the cursor, nil at the end.
func (c *treeCursor[T]) entry() *treeEntry[T] {
	if c.leaf == nil {
		return nil
	}
	return &c.leaf.entries[c.index]
}

// advance moves to the next entry.
func (c *treeCursor[T]) advance() {
	if c.leaf == nil {
		return
	}
	if c.index++; c.index >= len(c.leaf.entries) {
		c.leaf, c.index = c.leaf.next, 0
	}
}
