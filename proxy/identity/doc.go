// Package identity tells who a request comes from: its principal, its class, its client's address and a hash of its credentials
// (rules I1 to I5, and P2 for the forwarding fields).
//
// # Principal
//
// Settings.From is an ordered list of sources; the first that finds something decides. When none does, the address decides, so that
// every request has exactly one principal. A principal is a short printable string with a prefix that no other source uses:
//
//	header:NAME     "header:alice"           from trusted peers only
//	client-cert     "cert:CN=alice,O=Acme"   subject of a certificate that TLS verified, else its first SAN
//	cookie:NAME     "cookie:<hash>"
//	signature       "link:<hash>"            of the signature of a presigned link
//	authorization   "user:jenkins"           Basic and Digest
//	                "key:AKIAEXAMPLE"        S3, GCS and Azure request signatures
//	                "jwt:<hash>"             of issuer and subject
//	                "token:<hash>"           any other bearer token
//	address         "addr:10.0.0.1"          or "addr:2001:db8:1:2::/64"
//	principals file the id as written there, without a colon, so that no client can make it up
//
// <hash> is HMAC-SHA256 under Settings.Key, cut to 128 bits, in base64url. Names above [maxClear] bytes or with bytes outside a plain
// alphabet are hashed as well ("user:#<hash>"). So a principal is at most [MaxPrincipalBytes] long and never holds a token, a
// signature or a cookie in clear (I5). Public IPv6 addresses count by their /64, which is what one subscriber gets; private ones count singly.
//
// # Class
//
//	class of a request = Arkvory-Download-Class, where it is not above
//	                     class of the principal's id in the live settings ([Identifier.SetClasses]), else
//	                     class of its row in the principals file, else that of its source
//
// A later line counts where the ones before say nothing. The settings come first because they are what an operator changes at once and for one
// principal; they may raise. A change acts from the next request on: active sessions keep what they have, waiting ones change at their next contact.
//
// # Nothing here is proof
//
// Identify checks no password, no signature and no JWT, and need not: a principal only decides whose turn and whose share it is, and by
// rule I2 the caller makes a session only after the upstream answered 2xx to these very credentials. A forged iss and sub, or a guessed
// user name, is refused by the upstream and never reaches the queue under that name. What remains: an upstream that serves a public object
// whatever Authorization says lets a client choose its principal. It then takes a share of the name it chose, at most; where that matters,
// set ARKVORY_PRINCIPAL_FROM to address. The same holds for presigned links at an origin that ignores queries: only a complete link with one
// signature of its maker's form counts, so that no ordinary query makes a principal, but a client that invents the whole form makes one. At
// such an origin leave signature out of the list.
//
// # Basic users that are no names
//
// Some clients put the token into the user name (empty or one-letter password, "x-oauth-basic") or use one fixed name for all
// accounts ("oauth2", "AWS", "_json_key", ...). There the principal is the keyed hash of user and password. JWTs without a subject
// (anonymous pulls of registries), and schemes whose value changes with each request (Negotiate, NTLM, OAuth 1), name nobody: the next source is
// asked.
//
// # Credentials
//
// Identity.Credentials is a keyed hash over everything that the upstream could take for a credential: Authorization, Cookie, the signature
// parameters of the target, well-known token fields, the identity fields of the settings and the client certificate. Facts
// learned under one value say nothing about another. Zero means that there were none. Fields that Connection names are left out, as
// they do not reach the upstream.
//
// # Addresses
//
// The client is the peer, unless the peer is trusted: then the rightmost element of X-Forwarded-For that is not trusted. An element that is no
// address ends the walk at the last trusted one. Forwarded is read only when X-Forwarded-For is absent: a proxy that writes one of the two
// often passes the other on as the client sent it, and X-Forwarded-For is the one that is written. A trusted proxy that writes only
// Forwarded must therefore remove X-Forwarded-For.
//
// # Failure, restart, concurrency
//
// A faulty principals file stops [New]; a faulty edit later leaves the last good table in force and shows in [Identifier.Problem]. With
// Settings.Key nil the hashes are of this process only: after a restart, or in another process, unmapped tokens are other principals. Processes
// that share a queue must share a key. An Identifier is safe for any number of goroutines, a [Memo] belongs to one connection.
//
// # Decisions
//
// JWTs are not verified: the proxy would need the keys of every issuer, and I2 makes it needless. Digest and Basic share the
// prefix "user:", for both name an account of the same upstream. A memo compares credential bytes instead of hashes: it is several times cheaper than SHA-256 and
// cannot collide; it keeps at most [maxMemo] bytes a connection, which the connection's read buffer held anyway.
package identity
