package wire

import "slices"

// Detach moves the head into memory of its own, just as large as it is, so that the buffer it was parsed in can serve others while its request waits. Slices that
// were taken from the head before stay with that buffer.
func (h *Head) Detach() {
	old := h.Raw
	h.Raw = slices.Clone(old)
	h.Method, h.Target = moved(old, h.Raw, h.Method), moved(old, h.Raw, h.Target)
	h.Reason, h.Authority = moved(old, h.Raw, h.Reason), moved(old, h.Raw, h.Authority)
}

// moved returns the part of the new memory that part is of the old one; a part that is of neither stays as it is.
func moved(old, fresh, part []byte) []byte {
	if len(part) == 0 || cap(old) == 0 {
		return part
	}
	at := cap(old) - cap(part) // both reach to the end of one array when the part was cut from old
	if at < 0 || at+len(part) > len(old) || &old[at] != &part[0] {
		return slices.Clone(part)
	}
	return fresh[at : at+len(part)]
}
