package queue

import (
	"errors"
	"fmt"
)

// checkOperated recounts what the operator's actions and view keep: sessions that stand apart, that are parked or stopped, and the indexes by age.
func (s *Scheduler) checkOperated() error {
	var waits int
	var bytes [Classes]int64
	var entered [stateCount]int
	apart := 0
	for ses := range s.sessions.all {
		switch {
		case ses.state == parked && (!ses.stopped || ses.moved || ses.present != nil && ses.present.index >= 0):
			return fmt.Errorf("I1: session %d is parked and not stopped, moved, or among the present", ses.number)
		case ses.state == waiting && ses.stopped:
			return fmt.Errorf("I1: session %d is stopped and waits for a slot", ses.number)
		case ses.moved && ses.state != waiting:
			return fmt.Errorf("I1: session %d is moved and does not wait", ses.number)
		}
		if ses.state == waiting || ses.state == parked {
			bytes[ses.class] += ses.weight()
		}
		if ses.state != waiting {
			entered[ses.state]++
			if e := s.entered[ses.state].find(ses.ageKey()); e == nil || e.item != ses {
				return fmt.Errorf("I1: session %d is not found by its state and the start of that", ses.number)
			}
		}
		if l := s.apart[ses]; l != nil {
			apart++
			strays := s.strays[strayOf{ses.principal, ses.lifted}]
			if !ses.moved || s.policy.Strategy != Ordered || l.one != ses || l.class != ses.lifted || strays == nil || strays.find(l.turnKey(0)) == nil {
				return fmt.Errorf("I4: session %d stands apart in a wrong place", ses.number)
			}
		}
	}
	strays := 0
	for _, t := range s.strays {
		if err := t.check(); err != nil {
			return fmt.Errorf("I4: those apart: %w", err)
		}
		strays += t.len()
	}
	if apart != len(s.apart) || strays != len(s.apart) {
		return fmt.Errorf("I4: %d sessions stand apart, %d are filed, %d by their principals", apart, len(s.apart), strays)
	}
	if bytes != s.waiting.bytes {
		return fmt.Errorf("I1: %d bytes wait by class, counters say %d", bytes, s.waiting.bytes)
	}
	var last *session
	for ses := range s.waiting.all {
		if ses.state != waiting || last != nil && !last.ageKey().before(ses.ageKey()) {
			return fmt.Errorf("I1: session %d stands in a wrong place among those that wait", ses.number)
		}
		waits++
		last = ses
	}
	for c := range Class(Classes) {
		oldest := s.waiting.oldest(c)
		for ses := range s.waiting.all {
			if ses.class == c && oldest != ses {
				return fmt.Errorf("I1: session %d has waited longest in class %d, and is not found", ses.number, c)
			} else if ses.class == c {
				break
			}
		}
	}
	if waits != s.waiting.count || waits != total(s.byClass[waiting]) {
		return fmt.Errorf("I1: %d sessions wait, %d are counted", waits, s.waiting.count)
	}
	for state := range s.entered {
		if s.entered[state].len() != entered[state] {
			return fmt.Errorf("I1: %d sessions are in state %d, %d are found by age", entered[state], state, s.entered[state].len())
		}
	}
	if len(s.expelled.order) > maxExpelled || len(s.expelled.byKey) > len(s.expelled.order) {
		return errors.New("I5: more kicked sessions are remembered than may be")
	}
	return nil
}
