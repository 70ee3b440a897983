package object

// decoded cuts the first byte off a parameter's value, a percent escape decoded. A malformed escape stands for itself.
func decoded(v []byte) (c byte, rest []byte) {
	if v[0] == '%' {
		if d, ok := unhex(v[1:]); ok {
			return d, v[3:]
		}
	}
	return v[0], v[1:]
}

// formed reports whether the raw value of a parameter can be a signature of the family. Only the canonical spelling counts, padding included:
// a signature that could be written in several ways would be several principals.
func formed(v []byte, f Family) bool {
	switch f {
	case S3v4:
		n := hexDigits(v)
		return n == 64 || n >= 130 && n <= 144
	case GCSv4:
		n := hexDigits(v)
		return n == 64 || n >= 256 && n <= 2048
	case S3v2:
		n := base64Bytes(v, "+/=")
		return n == 20 || n == 32
	case GCSv2:
		n := base64Bytes(v, "+/=")
		return n == 20 || n >= 128 && n <= 1024
	case Azure:
		return base64Bytes(v, "+/=") == 32
	case CloudFront:
		n := base64Bytes(v, "-~_")
		return n >= 64 && n <= 1024
	}
	return false
}

// hexDigits returns how many digits a percent-encoded value of whole hexadecimal bytes has, -1 when it is none.
func hexDigits(v []byte) int {
	n := 0
	for len(v) > 0 {
		var c byte
		if c, v = decoded(v); digit(c) == 0xff {
			return -1
		}
		n++
	}
	if n%2 != 0 {
		return -1
	}
	return n
}

// base64Bytes returns how many bytes a percent-encoded value in canonical base64 stands for, -1 when it is none. marks are the characters for 62, 63
// and the padding.
func base64Bytes(v []byte, marks string) int {
	digits, padding, last := 0, 0, 0
	for len(v) > 0 {
		var c byte
		c, v = decoded(v)
		if c == marks[2] {
			padding++
			continue
		}
		value := base64Digit(c, marks)
		if value < 0 || padding > 0 {
			return -1
		}
		last = value
		digits++
	}
	if (digits+padding)%4 != 0 || padding > 2 || padding > 0 && last&(1<<(2*padding)-1) != 0 { // the bits beyond the last byte are zero
		return -1
	}
	return digits * 3 / 4
}

func base64Digit(c byte, marks string) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == marks[0]:
		return 62
	case c == marks[1]:
		return 63
	}
	return -1
}
