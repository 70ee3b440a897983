package identity

import "testing"

func BenchmarkIdentify(b *testing.B) {
	d := newIdentifier(b, Settings{})
	h := request(b, "/v2/a/blobs/sha256:0", "User-Agent: docker/20", "Accept: */*", "Authorization: Bearer "+jwt(`{"iss":"i","sub":"s"}`))
	b.Run("memo", func(b *testing.B) {
		var m Memo
		b.ReportAllocs()
		for b.Loop() {
			d.IdentifyMemo(&m, h, addr("192.0.2.1"), nil)
		}
	})
	b.Run("anew", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.Identify(h, addr("192.0.2.1"), nil)
		}
	})
}

// BenchmarkIdentifyWithClasses is BenchmarkIdentify with the classes of a full record in force.
func BenchmarkIdentifyWithClasses(b *testing.B) {
	d := newIdentifier(b, Settings{})
	d.SetClasses(manyClasses("user:ann"))
	h := request(b, "/v2/a/blobs/sha256:0", "User-Agent: docker/20", "Accept: */*", basicField("ann", "pw-1"))
	b.Run("memo", func(b *testing.B) {
		var m Memo
		b.ReportAllocs()
		for b.Loop() {
			d.IdentifyMemo(&m, h, addr("192.0.2.1"), nil)
		}
	})
	b.Run("anew", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.Identify(h, addr("192.0.2.1"), nil)
		}
	})
}
