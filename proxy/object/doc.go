// Package object names what a request asks for and says what is known about it: the object's name, its size and its validator
// (rules O1 to O3).
//
// # Name
//
//	name = lower-case authority + target without the parameters of a presigned link
//
// Two links to one thing differ only in their signatures and so have one name; all other parameters keep their bytes and their order,
// since versionId or partNumber name another thing. Nothing is decoded or normalised: the proxy cannot know which of two spellings
// an origin takes for one. The families of links are S3 (SigV4, SigV2), GCS (V4, V2), Azure SAS and CloudFront, see [Family].
// A target is a link only when it has the family's parameters and one signature of the family's form; anything else keeps its whole query in
// its name, so that parameters that merely share a name with those of a link still tell two things apart.
// Links of other makers keep their signatures in the name: such a link is then an object of its own, which costs sharing and
// harms nothing.
//
// # Facts
//
// [FromResponse] reads size and validator from a response head. Sizes are whole bytes of the selected representation. A validator is strong when
// bytes of two responses that carry it may be joined: a strong entity tag, or a Last-Modified at least a minute older than Date (RFC 9110
// section 8.8.2.2 asks for a second; a minute also covers origins whose clocks are moved). The strong one of the two wins, then the tag.
//
// # Cache
//
// [Cache] keeps facts under [Key] = hash of name and credentials: what an origin told one client says nothing about what it would tell
// another. It has no goroutine and reads no clock: now is monotonic time since any fixed moment, given with each call. Entries are
// spread over up to 64 shards by their hash, each behind its own mutex with its own least-recently-used list. After a restart it is empty.
//
// Memory: an entry costs about 250 bytes with an ordinary entity tag, at most [MaxEntryBytes] with the longest that is kept
// ([MaxValidatorBytes]). A cache of 65536 entries so stays below 32 MiB whatever clients do, ordinarily at 16 MiB. Slots are
// allocated as they are first needed and then reused.
//
// # Decisions
//
// The key is SHA-256, not a 64-bit hash: both parts of it are in a client's hands, and a collision would show one client the size of
// another's object. Expiry is looked at on Get and not swept: an expired entry costs its slot until it is the oldest of its shard.
//
// All functions are pure; a Cache may be used from any number of goroutines.
package object
