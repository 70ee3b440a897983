package identity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/arkvory/sidecar/proxy/wire"
)

// Bounds of what is decoded from one Authorization value; longer ones are hashed whole.
const (
	maxBasic = 8 << 10
	maxJWT   = 16 << 10
)

// authorization finds the principal in an Authorization value. ok is false when the value names nobody.
func (d *Identifier) authorization(dst []byte, t *table, v []byte) (name []byte, e *entry, ok bool) {
	scheme, rest := cut(v, ' ')
	rest = trim(rest)
	if len(rest) == 0 {
		return dst, nil, false
	}
	switch {
	case wire.EqualFold(scheme, "basic"):
		return d.basic(dst, t, rest)
	case wire.EqualFold(scheme, "digest"):
		if user, ok := param(rest, "username"); ok {
			return d.hash.appendName(append(dst, "user:"...), user), t.users[string(user)], true
		}
		return dst, nil, false
	case wire.EqualFold(scheme, "aws"), wire.EqualFold(scheme, "goog1"), wire.EqualFold(scheme, "sharedkey"), wire.EqualFold(scheme, "sharedkeylite"):
		if i := bytes.LastIndexByte(rest, ':'); i > 0 {
			return d.key(dst, t, rest[:i])
		}
		return dst, nil, false
	case hasFold(scheme, "aws4-"), hasFold(scheme, "goog4-"):
		credential, ok := param(rest, "credential")
		id, scope := cut(credential, '/')
		if !ok || len(id) == 0 || len(scope) == 0 {
			return dst, nil, false
		}
		return d.key(dst, t, id)
	case wire.EqualFold(scheme, "negotiate"), wire.EqualFold(scheme, "ntlm"), wire.EqualFold(scheme, "kerberos"):
		return dst, nil, false // the value is another one in each request
	}
	if bytes.ContainsAny(rest, " ,\t") {
		return dst, nil, false // parameters of a scheme that is not known here: a nonce or a signature may be among them
	}
	return d.bearer(dst, t, rest)
}

func cut(b []byte, sep byte) (before, after []byte) {
	if i := bytes.IndexByte(b, sep); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

func hasFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && wire.EqualFold(b[:len(prefix)], prefix)
}

func (d *Identifier) key(dst []byte, t *table, id []byte) ([]byte, *entry, bool) {
	return d.hash.appendName(append(dst, "key:"...), id), t.keys[string(id)], true
}

// bearer tells a JWT from other tokens.
func (d *Identifier) bearer(dst []byte, t *table, token []byte) ([]byte, *entry, bool) {
	if e := t.byToken(token); e != nil {
		return dst, e, true
	}
	iss, sub, isJWT := claims(token)
	switch {
	case !isJWT:
		return appendHash(append(dst, "token:"...), d.hash.sum(forToken, token)), nil, true
	case sub == "": // an anonymous pull: a registry mints such a token for everyone
		return dst, nil, false
	}
	if len(t.subjects) > 0 {
		if e := t.subjects[iss+"|"+sub]; e != nil {
			return dst, e, true
		}
	}
	return appendHash(append(dst, "jwt:"...), d.hash.sum(forJWT, []byte(iss), []byte(sub))), nil, true
}

// claims reads issuer and subject of a JWT in compact form (RFC 7519) without checking its signature; the package comment says why
// that is safe.
func claims(token []byte) (iss, sub string, ok bool) {
	header, rest := cut(token, '.')
	payload, signature := cut(rest, '.')
	if len(header) == 0 || len(payload) == 0 || len(payload) > maxJWT || bytes.IndexByte(signature, '.') >= 0 || bytes.Count(token, []byte(".")) != 2 {
		return "", "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(payload), "="))
	if err != nil {
		return "", "", false
	}
	var c struct {
		Iss string `json:"iss"`
		Sub string `json:"sub"`
	}
	if json.Unmarshal(text, &c) != nil {
		return "", "", false
	}
	return c.Iss, c.Sub, true
}

// shared are user names that stand for a kind of credential and not for a person; clients of every account send them.
var shared = map[string]bool{
	"": true, "oauth2": true, "oauth": true, "oauth2accesstoken": true, "x-access-token": true, "x-token-auth": true, "x-oauth-basic": true,
	"token": true, "__token__": true, "_token": true, "_json_key": true, "_json_key_base64": true, "aws": true, "api": true, "apikey": true,
	"api_key": true, "bearer": true, "gitlab-ci-token": true, "_authtoken": true, "$oauthtoken": true, "x-apikey": true,
	"unused": true, "any": true, "00000000-0000-0000-0000-000000000000": true,
}

// basic finds the user of Basic credentials (RFC 7617); where the user name holds or hides a token, the hash of both.
func (d *Identifier) basic(dst []byte, t *table, v []byte) ([]byte, *entry, bool) {
	v = bytes.TrimRight(v, "=")
	if len(v) > maxBasic {
		return dst, nil, false
	}
	var store [512]byte
	text, err := base64.RawStdEncoding.AppendDecode(store[:0], v)
	defer clear(text)
	colon := bytes.IndexByte(text, ':')
	if err != nil || colon < 0 || len(text) == 1 {
		return dst, nil, false
	}
	user, password := text[:colon], text[colon+1:]
	if e := t.users[string(user)]; e != nil {
		return dst, e, true
	}
	if e := t.byToken(password); e != nil {
		return dst, e, true
	}
	if e := t.byToken(user); e != nil {
		return dst, e, true
	}
	if len(password) < 2 || len(user) > 48 || string(password) == "x-oauth-basic" || shared[strings.ToLower(string(user))] {
		return appendHash(append(dst, "token:"...), d.hash.sum(forBasic, user, password)), nil, true
	}
	return d.hash.appendName(append(dst, "user:"...), user), nil, true
}

// param finds a parameter in a comma list of name=value (RFC 9110 section 11.2). A quoted value with escapes is not taken: no
// user or key id needs them.
func param(v []byte, name string) ([]byte, bool) {
	for len(v) > 0 {
		v = bytes.TrimLeft(v, " \t,")
		eq := bytes.IndexByte(v, '=')
		if eq <= 0 {
			return nil, false
		}
		key := trim(v[:eq])
		v = bytes.TrimLeft(v[eq+1:], " \t")
		var value []byte
		if len(v) > 0 && v[0] == '"' {
			end := 1
			for end < len(v) && v[end] != '"' {
				if v[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(v) {
				return nil, false
			}
			value, v = v[1:end], v[end+1:]
		} else {
			end := bytes.IndexByte(v, ',')
			if end < 0 {
				end = len(v)
			}
			value, v = trim(v[:end]), v[end:]
		}
		if wire.EqualFold(key, name) {
			return value, len(value) > 0 && bytes.IndexByte(value, '\\') < 0
		}
	}
	return nil, false
}
