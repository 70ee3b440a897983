package queue

import "time"

// maxMembers is how many objects of a bundle are told apart; what more it has is lumped into one.
const maxMembers = 64

// mostMemberBytes bounds what one object counts for, so that no size that an origin makes up carries the sum beyond its type.
const mostMemberBytes = 1 << 56

// bundle is what a session knows that covers several objects of one repository (X5). It lives behind the stay, which such a session has
// from its first request on, and only there: other sessions pay nothing for it.
//
// The sizes of the objects known so far are the size of the session. Of an object counts as delivered what responses that ran to
// their end brought, at most its size: there is no coverage, a range asked twice counts twice.
type bundle struct {
	members []member  // in the order they were asked; beyond maxMembers one more for all others
	largest int64     // size of the largest member: what the policy judges
	before  int64     // bytes delivered when it got its slot
	had     int64     // its size askedWithin after that
	known   uint8     // its objects then, 0 = not yet
	lumped  [4]uint64 // which of 256 hashes, by their last bits, are in the lump: one asked again adds nothing
}

// member is one object of a bundle.
type member struct {
	hash            uint64 // 0 of the lump
	size, delivered int64  // bytes
}

// bundle returns what a session knows of its objects, nil when it is none.
func (s *session) bundle() *bundle {
	if s.stay == nil {
		return nil
	}
	return s.stay.bundle
}

// decidedBy is the size by which the policy tells a session from a single request: of a bundle that of its largest object, since single
// requests are what its others would be.
func (s *session) decidedBy() int64 {
	if b := s.bundle(); b != nil {
		return b.largest
	}
	return s.size
}

// members counts the objects of a bundle.
func (s *session) members() int {
	if b := s.bundle(); b != nil {
		return len(b.members)
	}
	return 0
}

// know takes an object of that size in and returns its place. An object known before gets the size it has now; renewed says that the
// bundle is not active: an object that was delivered in full is then asked for once more.
func (b *bundle) know(hash uint64, size int64, renewed bool) int {
	size = min(size, mostMemberBytes)
	b.largest = max(b.largest, size)
	for i := range min(len(b.members), maxMembers) {
		m := &b.members[i]
		if m.hash != hash {
			continue
		}
		if renewed && m.delivered >= m.size {
			m.delivered = 0
		}
		m.size, m.delivered = size, min(m.delivered, size)
		return i
	}
	if len(b.members) < maxMembers {
		b.members = append(b.members, member{hash: hash, size: size})
		return len(b.members) - 1
	}
	if len(b.members) == maxMembers {
		b.members = append(b.members, member{})
	}
	lump, word, bit := &b.members[maxMembers], hash/64%4, uint64(1)<<(hash%64)
	if b.lumped[word]&bit == 0 {
		b.lumped[word] |= bit
		lump.size = min(lump.size+size, mostMemberBytes)
	}
	return maxMembers
}

// deliver counts bytes of an object that a response brought to its end.
func (b *bundle) deliver(place int, bytes int64) {
	m := &b.members[place]
	m.delivered += min(max(bytes, 0), m.size-m.delivered)
}

// size is the sum of the objects known so far.
func (b *bundle) size() (sum int64) {
	for i := range b.members {
		sum += b.members[i].size
	}
	return sum
}

// left is what of it no response has brought to its end.
func (b *bundle) left() (sum int64) {
	for i := range b.members {
		sum += b.members[i].size - b.members[i].delivered
	}
	return sum
}

// growth learns from bundles that had a slot how much more they fetch than is known of them when they get it, apart for those of which one,
// two, three or more objects are known then: clients ask for three or so at a time, and one that asks for fewer has no more. The sums
// fade with each bundle that is learned from.
type growth [4]struct{ knew, fetched float64 }

// class is the place of a bundle of which so many objects are known.
func (g *growth) class(members int) int { return min(max(members, 1), len(g)) - 1 }

// askedWithin is the time in which a client that got a slot asks for all it asks for at once.
const askedWithin = time.Second

// begin notes that a bundle gets a slot, look what is known of it soon after that.
func (b *bundle) begin() { b.before, b.known = b.size()-b.left(), 0 }

func (b *bundle) look(held time.Duration) {
	if b.known == 0 && held >= askedWithin {
		b.had, b.known = b.size(), uint8(len(b.members))
	}
}

// learn takes in a bundle that got all it asked for.
func (g *growth) learn(b *bundle) {
	if b.known == 0 || b.had <= b.before {
		return
	}
	const fades = 1.0 / 16
	of := &g[g.class(int(b.known))]
	of.knew += float64(b.had-b.before) - of.knew*fades
	of.fetched += float64(b.size()-b.before) - of.fetched*fades
}

// factor is what known bytes of a bundle with so many known objects are multiplied by, at least 1; 1 before anything was learned.
func (g *growth) factor(members int) float64 {
	of := &g[g.class(members)]
	if of.knew <= 0 {
		return 1
	}
	return max(of.fetched/of.knew, 1)
}

// expected counts the bytes that a session will still want, for the forecast alone: of a bundle more than is known of it, until as much came as
// others of its kind grew by. One without responses is taken at its word: either it asks at once, or its slot is free soon.
func (g *growth) expected(s *session) float64 {
	left := float64(s.remaining())
	b := s.bundle()
	switch {
	case b == nil || s.state == active && s.stay.running == 0:
		return left
	case s.state == active && b.known == 0:
		return left
	case s.state == active:
		return left + max(float64(b.had-b.before)*(g.factor(int(b.known))-1)-float64(b.size()-b.had), 0)
	default:
		return left * g.factor(len(b.members))
	}
}

// holds is how long a session that has all its bytes keeps its slot nevertheless.
func (s *session) holds(now time.Duration) time.Duration {
	switch {
	case s.bundle() == nil:
		return 0
	case s.state == active && s.stay.running == 0:
		return max(s.stay.idleAt-now, 0)
	default:
		return BundleHold
	}
}

// describe takes over what a request says about the object, and returns the size of the session. It is called once a request.
func (s *session) describe(a *Ask) (size int64) {
	b := s.bundle()
	if b == nil {
		s.validate(a.Validator)
		return a.SizeBytes
	}
	a.place = b.know(a.Member, a.SizeBytes, s.state != active)
	return b.size()
}

// asBundle settles whether a request belongs to a bundle: the first request of a session decides for all of them.
func (s *session) asBundle(a *Ask) bool {
	if s == nil {
		return a.Bundle && !a.Protocol
	}
	return s.bundle() != nil
}

// rest frees the slot of a session without responses for too long. What is remembered of a bundle depends on whether it has all it asked for.
func (s *Scheduler) rest(now time.Duration, ses *session) {
	reason := ReasonIdle
	if b := ses.bundle(); b != nil && b.left() == 0 {
		reason = ReasonCompleted
		s.model.done(ses)
	}
	s.freeSlot(now, ses, reason)
	s.remember(now, ses)
}

// memory is how long a paused session is remembered. A bundle that has all it asked for only keeps its place for downloads that are started
// within the idle time of each other.
func (s *Scheduler) memory(ses *session) time.Duration {
	if b := ses.bundle(); b != nil && b.left() == 0 {
		return min(s.policy.IdleFor, PauseMemory)
	}
	return PauseMemory
}
