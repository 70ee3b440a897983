package queue

import "testing"

// TestX7_PassThroughQueuesNoPausedSessionEither: an operator paused an active session and then lets everybody pass. Its next range was told to queue, in a mode in
// which nobody does.
func TestX7_PassThroughQueuesNoPausedSessionEither(t *testing.T) {
	for name, change := range map[string]func(*Policy){"pass-through": func(p *Policy) { p.Mode = ModePassThrough }, "shared": func(p *Policy) { p.Strategy = Shared }} {
		t.Run(name, func(t *testing.T) {
			p := testPolicy(1)
			h := newHarness(t, p)
			a := askOf("p", "a")
			r, _ := h.want(Admitted, a)
			h.act(PauseIt, a, nil)
			_, _ = h.want(Queued, a) // it gives its slot up with the response that runs
			passing := p
			change(&passing)
			h.configure(passing)
			next, _ := h.want(Admitted, a)
			h.finish(r, 0, mib, true)
			h.finish(next, mib, 2*mib, true)
			h.configure(p)
			if _, v := h.want(Queued, a); v.Position != 0 {
				t.Errorf("it is paused again: %+v", v)
			}
			h.check()
		})
	}
}
