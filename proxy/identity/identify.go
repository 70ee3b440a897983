package identity

import (
	"crypto/x509"
	"net/netip"

	"github.com/arkvory/sidecar/proxy/object"
	"github.com/arkvory/sidecar/proxy/wire"
	"github.com/arkvory/sidecar/queue"
)

// Identity is who a request comes from. It holds no memory of the request and no secret in clear.
type Identity struct {
	// Principal is a printable text of at most MaxPrincipalBytes bytes, see the package comment.
	Principal string
	// Kind is the source that decided.
	Kind Kind
	// Class is the one that the live settings give to the principal, else the one of the principals file, else interactive for header, client-cert
	// and cookie and release for all others.
	Class queue.Class
	// Client is the address of the real client, unmapped and without zone; the zero address when the connection has none.
	Client netip.Addr
	// Credentials is a keyed hash of all credentials of the request, zero when there are none.
	Credentials [16]byte
}

// Identify returns who a request comes from. peer is the other end of the connection, cert the client certificate that TLS verified, nil
// for none; a certificate that was not verified must not be given.
func (d *Identifier) Identify(h *wire.Head, peer netip.Addr, cert *x509.Certificate) Identity {
	return d.IdentifyMemo(nil, h, peer, cert)
}

func (d *Identifier) identify(t *table, c *classes, h *wire.Head, peer netip.Addr, cert *x509.Certificate, before string) Identity {
	trusted := d.Trusted(peer)
	id := Identity{Client: d.client(h, peer, trusted), Class: queue.Release}
	var store [MaxPrincipalBytes]byte
	name, kind, e := d.principal(store[:0], t, h, trusted, id.Client, cert)
	id.Kind = kind
	if kind == Header || kind == ClientCert || kind == Cookie {
		id.Class = queue.Interactive
	}
	if e != nil && e.hasClass {
		id.Class = e.class
	}
	switch {
	case e != nil:
		id.Principal = e.id
	case string(name) == before:
		id.Principal = before
	default:
		id.Principal = string(name)
	}
	c.apply(&id)
	id.Credentials = d.credentials(h, cert)
	return id
}

// principal asks the sources in order. The entry, when there is one, replaces the name.
func (d *Identifier) principal(dst []byte, t *table, h *wire.Head, trusted bool, client netip.Addr, cert *x509.Certificate) ([]byte, Kind, *entry) {
	for _, src := range d.sources {
		switch src.kind {
		case Header:
			if v := onlyValue(h, src.name); trusted && len(v) > 0 {
				return d.hash.appendName(append(dst, "header:"...), v), Header, t.users[string(v)]
			}
		case ClientCert:
			if cert != nil {
				name, e := d.certificate(dst, t, cert)
				return name, ClientCert, e
			}
		case Cookie:
			if v := cookie(h, src.name); len(v) > 0 {
				return appendHash(append(dst, "cookie:"...), d.hash.sum(forCookie, []byte(src.name), v)), Cookie, t.byToken(v)
			}
		case Signature:
			if f := object.FamilyOf(h.Target); f != object.Unsigned {
				var store [512]byte
				link := object.AppendSignature(store[:0], h.Target, f)
				return appendHash(append(dst, "link:"...), d.hash.sum(forLink, []byte{byte(f)}, link)), Signature, nil
			}
		case Authorization:
			if h.Count(wire.Authorization) != 1 { // of several the upstream may take any one
				continue
			}
			if name, e, ok := d.authorization(dst, t, h.Get(wire.Authorization)); ok {
				return name, Authorization, e
			}
		case Address:
			return appendAddress(dst, client), Address, t.byAddress(client)
		}
	}
	return appendAddress(dst, client), Address, t.byAddress(client)
}

// onlyValue returns the value of a field that occurs once and reaches the upstream.
func onlyValue(h *wire.Head, name string) []byte {
	var v []byte
	for _, f := range h.Fields {
		if wire.EqualFold(h.Name(f), name) {
			if v != nil || f.Dropped() {
				return nil
			}
			v = h.Value(f)
		}
	}
	return v
}

// cookie returns the value of the first cookie of a name in the fields that reach the upstream (RFC 6265 section 5.4).
func cookie(h *wire.Head, name string) []byte {
	for _, f := range h.Fields {
		if f.ID != wire.Cookie || f.Dropped() {
			continue
		}
		for v := h.Value(f); len(v) > 0; {
			var pair []byte
			pair, v = cut(v, ';')
			k, value := cut(trim(pair), '=')
			if string(trim(k)) == name {
				return trim(value)
			}
		}
	}
	return nil
}

// certificate names the holder of a client certificate: the subject, or the first alternative name of one that has none.
func (d *Identifier) certificate(dst []byte, t *table, cert *x509.Certificate) ([]byte, *entry) {
	subject := cert.Subject.String()
	names := make([]string, 0, 4)
	if subject != "" {
		names = append(names, subject)
	}
	for _, u := range cert.URIs {
		names = append(names, u.String())
	}
	names = append(append(names, cert.DNSNames...), cert.EmailAddresses...)
	for _, n := range names {
		if e := t.subjects[n]; e != nil {
			return dst, e
		}
	}
	dst = append(dst, "cert:"...)
	if len(names) == 0 {
		return appendHash(append(dst, '#'), d.hash.sum(forName, cert.Raw)), nil
	}
	return d.hash.appendName(dst, []byte(names[0])), nil
}

// secretNames are fields outside the known ones that origins take for credentials, by length. Fields of identity proxies are among
// them: an origin behind such a proxy answers by them.
var secretNames = func() (t [48][]string) {
	for _, n := range []string{
		"private-token", "job-token", "deploy-token", "x-jfrog-art-api", "x-api-key", "apikey", "api-key", "x-auth-token", "x-access-token",
		"x-nuget-apikey", "x-gitlab-token", "x-vault-token", "x-consul-token", "x-amz-security-token", "x-amz-s3session-token",
		"x-amz-server-side-encryption-customer-key", "x-goog-encryption-key", "x-ms-encryption-key", "x-serverless-authorization",
		"x-goog-iap-jwt-assertion", "cf-access-jwt-assertion", "cf-access-client-secret", "x-forwarded-access-token", "x-forwarded-user",
		"x-forwarded-email", "x-forwarded-groups", "x-auth-request-user", "x-auth-request-email", "x-remote-user", "remote-user",
		"x-webauth-user", "x-original-authorization", "proxy-authorization",
	} {
		t[len(n)] = append(t[len(n)], n)
	}
	return
}()

// isCredential reports whether a field is one that the upstream may take for a credential.
func (d *Identifier) isCredential(h *wire.Head, f wire.Field) bool {
	switch {
	case f.Dropped():
		return false
	case f.ID == wire.Authorization || f.ID == wire.Cookie:
		return true
	case f.ID != wire.Other && len(d.headers) == 0:
		return false
	}
	name := h.Name(f)
	if len(name) < len(secretNames) {
		for _, n := range secretNames[len(name)] {
			if wire.EqualFold(name, n) {
				return true
			}
		}
	}
	for _, n := range d.headers {
		if wire.EqualFold(name, n) {
			return true
		}
	}
	return false
}

// credentials hashes all credentials of a request.
func (d *Identifier) credentials(h *wire.Head, cert *x509.Certificate) [16]byte {
	p := buffers.Get().(*[]byte)
	t := tape{buf: (*p)[:0]}
	d.record(&t, h)
	signed := object.FamilyOf(h.Target)
	t.buf = object.AppendParams(t.buf, h.Target, signed)
	var raw []byte
	if cert != nil {
		raw = cert.Raw
	}
	var sum [16]byte
	if len(t.buf) > 0 || cert != nil {
		sum = d.hash.sum(forCredentials, t.buf, raw)
	}
	if cap(t.buf) <= maxPooled {
		clear(t.buf)
		*p = t.buf[:0]
		buffers.Put(p)
	}
	return sum
}

// record puts the credential fields of a head on a tape.
func (d *Identifier) record(t *tape, h *wire.Head) {
	for _, f := range h.Fields {
		if d.isCredential(h, f) {
			t.put(h.Name(f))
			t.put(h.Value(f))
		}
	}
}
