package live

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
)

// TestS3_AnotherRecordOfTheSameRevisionIsInForceToo: the database was restored and changed by another process until it had this one's revision again. What is in force
// here would differ from what is stored, and no problem would say so.
func TestS3_AnotherRecordOfTheSameRevisionIsInForceToo(t *testing.T) {
	following(t, func(b *bench, s *shared) {
		b.must(`{"sessions":5}`)
		b.must(`{"sessions":6}`)
		s.set(func(s *shared) { s.kept = nil }) // a restore
		s.set(func(s *shared) { s.deaf = true })
		s.elsewhere(t, 0, `{"sessions":8}`)
		s.elsewhere(t, 1, `{"sessions":9}`)
		pass(followEvery + loadTime)
		if doc := b.Current(); doc.Revision != 2 || doc.Effective.Sessions != 9 || doc.UpdatedBy != "10.0.0.2" || doc.Problem != "" {
			t.Fatalf("%+v", doc)
		}
		pass(3 * followEvery)
		if len(b.applied) != 3 {
			t.Errorf("applied %d times", len(b.applied))
		}
	})
}

// TestS3_AnAnswerFromBeforeARestoreUndoesNothing: its revision is higher than that of the change that was made since.
func TestS3_AnAnswerFromBeforeARestoreUndoesNothing(t *testing.T) {
	following(t, func(b *bench, s *shared) {
		for _, one := range []string{`{"sessions":4}`, `{"sessions":5}`, `{"sessions":6}`} {
			b.must(one)
		}
		hang := make(chan struct{})
		s.set(func(s *shared) { s.hang = hang })
		pass(followEvery) // a look has read revision 3 and is on its way
		s.set(func(s *shared) { s.kept = nil })
		if _, err := b.Change(context.Background(), []byte(`{"expectedRevision":0,"overrides":{"sessions":7}}`), "token"); err != nil {
			t.Fatal(err)
		}
		s.set(func(s *shared) { s.hang = nil })
		close(hang)
		synctest.Wait()
		if doc := b.Current(); doc.Revision != 1 || doc.Effective.Sessions != 7 || doc.Problem != "" {
			t.Errorf("%+v", doc)
		}
		pass(2 * followEvery)
		if doc := b.Current(); doc.Revision != 1 || doc.Effective.Sessions != 7 || strings.Contains(doc.Problem, "went back") {
			t.Errorf("later: %+v", doc)
		}
	})
}
