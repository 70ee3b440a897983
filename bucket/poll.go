package bucket

// Begin asks as Take does and does not wait: granted is what it got at once; when waits is true the request stays in its turn and Poll
// tells when it is granted. One request at a time: a second one before the answer of the first gets ErrBusy. A nil stream, and any stream once
// nothing limits it any more, gets want at once. For owners of many streams that look at them from one goroutine. It allocates nothing.
func (s *Stream) Begin(want int64) (granted int64, waits bool, err error) {
	if want <= 0 {
		return 0, false, nil
	}
	if s == nil || s.free.Load() {
		return want, false, nil
	}
	waits, granted, err = s.request(want)
	if waits {
		granted = 0
	}
	return granted, waits, err
}

// Poll returns the answer of the request that Begin left waiting, with done true, or done false while it still waits. It does not block. Without such a
// request it returns done with 0 bytes.
func (s *Stream) Poll() (granted int64, done bool, err error) {
	if s == nil {
		return 0, true, nil
	}
	select {
	case <-s.wake:
		granted, err = s.answer()
		return granted, true, err
	default:
	}
	s.governor.mu.Lock()
	defer s.governor.mu.Unlock()
	return 0, !s.asking, nil
}
