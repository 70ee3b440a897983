package queue

// orderKey is the place of a waiting session within its class: the round of its principal, then arrival, then number.
// Numbers are unique, so the order is total.
type orderKey struct {
	round   uint64
	arrival int64 // nanoseconds
	number  uint64
}

func (k orderKey) before(other orderKey) bool {
	if k.round != other.round {
		return k.round < other.round
	}
	if k.arrival != other.arrival {
		return k.arrival < other.arrival
	}
	return k.number < other.number
}

// node makes a session a member of one tree.
type node struct {
	order       orderKey
	left, right *session
	priority    uint64
	count       int   // sessions in this subtree
	bytes       int64 // sizes of the sessions in this subtree
}

// tree is a treap of waiting sessions in their order, with counts and byte sums: insert, remove, rank and bytes ahead
// cost O(log n). Priorities come from a hash of the number, so equal histories build equal trees.
type tree struct{ root *session }

func (t *tree) len() int { return countOf(t.root) }

func countOf(s *session) int {
	if s == nil {
		return 0
	}
	return s.node.count
}

func bytesOf(s *session) int64 {
	if s == nil {
		return 0
	}
	return s.node.bytes
}

func (s *session) pull() {
	s.node.count = 1 + countOf(s.node.left) + countOf(s.node.right)
	s.node.bytes = s.size + bytesOf(s.node.left) + bytesOf(s.node.right)
}

func (t *tree) insert(s *session, order orderKey) {
	s.node = node{order: order, priority: mix(order.number)}
	t.root = insertNode(t.root, s)
}

func insertNode(root, s *session) *session {
	if root == nil {
		s.pull()
		return s
	}
	if s.node.priority > root.node.priority {
		s.node.left, s.node.right = splitNode(root, s.node.order)
		s.pull()
		return s
	}
	if s.node.order.before(root.node.order) {
		root.node.left = insertNode(root.node.left, s)
	} else {
		root.node.right = insertNode(root.node.right, s)
	}
	root.pull()
	return root
}

func splitNode(root *session, order orderKey) (left, right *session) {
	if root == nil {
		return nil, nil
	}
	if root.node.order.before(order) {
		root.node.right, right = splitNode(root.node.right, order)
		root.pull()
		return root, right
	}
	left, root.node.left = splitNode(root.node.left, order)
	root.pull()
	return left, root
}

// remove takes s out of the tree; s must be a member.
func (t *tree) remove(s *session) {
	t.root = removeNode(t.root, s)
	s.node.left, s.node.right = nil, nil
}

func removeNode(root, s *session) *session {
	if root == s {
		return mergeNodes(s.node.left, s.node.right)
	}
	if s.node.order.before(root.node.order) {
		root.node.left = removeNode(root.node.left, s)
	} else {
		root.node.right = removeNode(root.node.right, s)
	}
	root.pull()
	return root
}

func mergeNodes(left, right *session) *session {
	if left == nil {
		return right
	}
	if right == nil {
		return left
	}
	if left.node.priority > right.node.priority {
		left.node.right = mergeNodes(left.node.right, right)
		left.pull()
		return left
	}
	right.node.left = mergeNodes(left, right.node.left)
	right.pull()
	return right
}

// ahead returns how many members come before s and the sum of their sizes.
func (t *tree) ahead(s *session) (count int, bytes int64) {
	for at := t.root; at != nil; {
		if at == s || s.node.order.before(at.node.order) {
			if at == s {
				return count + countOf(at.node.left), bytes + bytesOf(at.node.left)
			}
			at = at.node.left
			continue
		}
		count += countOf(at.node.left) + 1
		bytes += bytesOf(at.node.left) + at.size
		at = at.node.right
	}
	return count, bytes
}

// firstBytes returns the sum of the sizes of the first n members.
func (t *tree) firstBytes(n int) (bytes int64) {
	if n >= t.len() {
		return bytesOf(t.root)
	}
	for at := t.root; at != nil && n > 0; {
		left := countOf(at.node.left)
		if n <= left {
			at = at.node.left
			continue
		}
		bytes += bytesOf(at.node.left) + at.size
		n -= left + 1
		at = at.node.right
	}
	return bytes
}

// cursor walks a tree in order; the tree must not change meanwhile.
type cursor struct{ stack []*session }

func (c *cursor) reset(t *tree) {
	c.stack = c.stack[:0]
	c.push(t.root)
}

func (c *cursor) push(s *session) {
	for ; s != nil; s = s.node.left {
		c.stack = append(c.stack, s)
	}
}

// next returns the next session, nil at the end.
func (c *cursor) next() *session {
	if len(c.stack) == 0 {
		return nil
	}
	s := c.stack[len(c.stack)-1]
	c.stack = c.stack[:len(c.stack)-1]
	c.push(s.node.right)
	return s
}

// mix spreads a number over 64 bits (the finalizer of SplitMix64, Steele et al. 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
