// Package wire reads and writes HTTP/1.x heads and chunked framing exactly as they stand on the connection.
//
// # Purpose
//
// A proxy that must keep signatures valid (SigV4, presigned links) may change neither the bytes of a target nor the case, the
// order or the repetition of header fields. [Head] therefore is an index over the received bytes, never a map: parsing allocates
// nothing once its field slice has grown, and the next hop gets the very bytes of each field.
//
// # Grammar
//
// Requests are held to the strict reading of RFC 9112: CRLF line ends, no folded lines, no white space before the colon, one
// Content-Length or Transfer-Encoding: chunked and never both, one Host. What two parsers could read differently is refused
// ([Error], status 400, 501 or 505), so that nothing ambiguous reaches the next hop (RFC 9112 section 11.2). Responses may end
// lines with a bare LF, as old origins do, and are written on with CRLF; folded or malformed lines are refused there too.
//
// # Decision: an own parser beside fasthttp's
//
// fasthttp's RequestHeader takes heads apart into its own store: known fields leave in its order, cookies are re-assembled,
// and it accepts forms that this proxy must refuse (bare LF, folds). Using it as a gate and walking the raw bytes as well would
// parse every head twice on the hottest path of the product. The fuzz tests keep fasthttp's and net/http's parsers as oracles instead: whatever
// this package accepts, they frame in the same way.
//
// # Bounds
//
// A head or a trailer section has at most [MaxFields] fields, so that a Head never grows beyond 6 KiB; Reset and Shrink bring it back to
// what ordinary messages need. The bytes of a head are bounded by the caller's buffer, those of a trailer section at 16 KiB.
//
// # What is never believed
//
// Names with underscores that a CGI or WSGI origin would read as a forwarding or an Arkvory- field get the id [Shadow], for callers to drop; only
// the exact names have the ids that are believed. Trailer sections lose every field that speaks for a client's identity.
//
// Nothing here locks, blocks or keeps time. A Head and a Chunks belong to one goroutine at a time.
package wire
