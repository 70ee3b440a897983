package object

import "bytes"

// Family is a maker of presigned links. The zero value is no such link.
type Family uint8

// Families; the comments name the parameters that tell one, each with a value, and the form of the signature.
const (
	Unsigned   Family = iota
	S3v4              // X-Amz-Signature (64 hexadecimal digits, or the 130 to 144 of SigV4A), X-Amz-Credential and X-Amz-Date
	S3v2              // Signature (20 or 32 bytes in base64), AWSAccessKeyId and Expires
	GCSv4             // X-Goog-Signature (64 digits, or the 256 to 2048 of RSA), X-Goog-Credential and X-Goog-Date
	GCSv2             // Signature (20 bytes, or the 128 to 1024 of RSA, in base64), GoogleAccessId and Expires
	Azure             // sig (32 bytes in base64) with sv or se
	CloudFront        // Signature (64 to 1024 bytes in its own base64) and Key-Pair-Id with Expires or Policy
)

func (f Family) String() string {
	return [...]string{"unsigned", "s3v4", "s3v2", "gcsv4", "gcsv2", "azure", "cloudfront"}[min(f, CloudFront)]
}

// param is what a query parameter means to the families, one bit each; the name decides it.
type param uint32

const (
	pAmzSignature param = 1 << iota
	pAmzCredential
	pAmzDate
	pAmz
	pGoogSignature
	pGoogCredential
	pGoogDate
	pGoog
	pSignature
	pAwsAccessKeyID
	pGoogleAccessID
	pKeyPairID
	pExpires
	pPolicy
	pHashAlgorithm
	pAmzToken
	pXID
	pSig
	pSv
	pSe
	pAzure
)

// strips lists, by family, the parameters that belong to the signature and not to the object.
var strips = [...]param{
	S3v4:       pAmzSignature | pAmzCredential | pAmzDate | pAmz | pAmzToken | pXID,
	S3v2:       pSignature | pAwsAccessKeyID | pExpires | pAmzToken,
	GCSv4:      pGoogSignature | pGoogCredential | pGoogDate | pGoog,
	GCSv2:      pSignature | pGoogleAccessID | pExpires,
	Azure:      pSig | pSv | pSe | pAzure,
	CloudFront: pSignature | pKeyPairID | pExpires | pPolicy | pHashAlgorithm,
}

// carries is the parameter that holds the signature itself.
var carries = [...]param{
	S3v4: pAmzSignature, S3v2: pSignature, GCSv4: pGoogSignature, GCSv2: pSignature, Azure: pSig, CloudFront: pSignature,
}

const pCarriers = pAmzSignature | pGoogSignature | pSignature | pSig

// params names the parameters in lower case. S3 and GCS compare them in one case only, which a client keeps; comparing without
// regard to case takes nothing from an object's name that an origin would tell apart.
var params = map[string]param{
	"x-amz-signature": pAmzSignature, "x-amz-algorithm": pAmz, "x-amz-credential": pAmzCredential, "x-amz-date": pAmzDate, "x-amz-expires": pAmz,
	"x-amz-signedheaders": pAmz, "x-amz-content-sha256": pAmz, "x-amz-s3session-token": pAmz, "x-amz-region-set": pAmz,
	"x-amz-security-token": pAmzToken, "x-id": pXID,
	"x-goog-signature": pGoogSignature, "x-goog-algorithm": pGoog, "x-goog-credential": pGoogCredential, "x-goog-date": pGoogDate,
	"x-goog-expires": pGoog, "x-goog-signedheaders": pGoog, "x-goog-security-token": pGoog,
	"signature": pSignature, "awsaccesskeyid": pAwsAccessKeyID, "googleaccessid": pGoogleAccessID, "key-pair-id": pKeyPairID,
	"expires": pExpires, "policy": pPolicy, "hash-algorithm": pHashAlgorithm,
	"sig": pSig, "sv": pSv, "se": pSe, "ss": pAzure, "srt": pAzure, "sr": pAzure, "st": pAzure, "sp": pAzure, "sip": pAzure,
	"spr": pAzure, "si": pAzure, "sdd": pAzure, "ses": pAzure, "skoid": pAzure, "sktid": pAzure, "skt": pAzure, "ske": pAzure,
	"sks": pAzure, "skv": pAzure, "saoid": pAzure, "suoid": pAzure, "scid": pAzure,
}

const maxParamName = 24 // the longest name above is 21 bytes

// classify returns the meaning of a parameter name, percent-encoded letters included: origins decode names before they compare them.
func classify(name []byte) param {
	var b [maxParamName]byte
	n := 0
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '%' {
			d, ok := unhex(name[i+1:])
			if !ok {
				return 0
			}
			c = d
			i += 2
		}
		if n == len(b) {
			return 0
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		b[n] = c
		n++
	}
	return params[string(b[:n])]
}

// unhex reads the two digits of a percent escape.
func unhex(b []byte) (byte, bool) {
	if len(b) < 2 {
		return 0, false
	}
	hi, lo := digit(b[0]), digit(b[1])
	return hi<<4 | lo&15, hi < 16 && lo < 16
}

func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// next cuts the first parameter off a query.
func next(query []byte) (p, rest []byte) {
	if i := bytes.IndexByte(query, '&'); i >= 0 {
		return query[:i], query[i+1:]
	}
	return query, nil
}

func nameOf(p []byte) []byte {
	if i := bytes.IndexByte(p, '='); i >= 0 {
		return p[:i]
	}
	return p
}

// splitTarget returns the path and the query; hasQuery tells "/x?" from "/x".
func splitTarget(target []byte) (path, query []byte, hasQuery bool) {
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		return target[:i], target[i+1:], true
	}
	return target, nil, false
}

// FamilyOf tells whose presigned link a request target is: all parameters that the family's makers write are there, and the signature has the form that
// they give it. A target with a second parameter that could hold a signature, of any family, is Unsigned: the origin may check either, and the
// other would be the client's to choose. It allocates nothing.
func FamilyOf(target []byte) Family {
	_, query, _ := splitTarget(target)
	var all param
	var signature []byte
	signatures := 0
	for len(query) > 0 {
		var p []byte
		p, query = next(query)
		name := nameOf(p)
		k := classify(name)
		if k&pCarriers != 0 {
			signatures++
			signature = p[min(len(name)+1, len(p)):]
		}
		if len(p) > len(name)+1 {
			all |= k
		}
	}
	if signatures != 1 {
		return Unsigned
	}
	f := Unsigned
	has := func(k param) bool { return all&k == k }
	switch {
	case has(pAmzSignature | pAmzCredential | pAmzDate):
		f = S3v4
	case has(pGoogSignature | pGoogCredential | pGoogDate):
		f = GCSv4
	case has(pSignature | pAwsAccessKeyID | pExpires):
		f = S3v2
	case has(pSignature | pGoogleAccessID | pExpires):
		f = GCSv2
	case has(pSignature|pKeyPairID) && all&(pExpires|pPolicy) != 0:
		f = CloudFront
	case has(pSig) && all&(pSv|pSe) != 0:
		f = Azure
	}
	if f == Unsigned || !formed(signature, f) {
		return Unsigned
	}
	return f
}

// AppendParams appends the raw signature parameters of a link of that family, each with a leading '&', in the order of the target: the
// credentials that its query carries. Nothing is appended for Unsigned.
func AppendParams(dst, target []byte, f Family) []byte {
	if f == Unsigned {
		return dst
	}
	_, query, _ := splitTarget(target)
	for len(query) > 0 {
		var p []byte
		p, query = next(query)
		if classify(nameOf(p))&strips[f] != 0 {
			dst = append(dst, '&')
			dst = append(dst, p...)
		}
	}
	return dst
}

// AppendSignature appends the percent-decoded value of the parameter that holds the signature itself, hexadecimal digits in lower case. It
// names the link: the order or the spelling of the other parameters, which a client can change without breaking the signature,
// do not enter it.
func AppendSignature(dst, target []byte, f Family) []byte {
	if f == Unsigned {
		return dst
	}
	_, query, _ := splitTarget(target)
	for len(query) > 0 {
		var p []byte
		p, query = next(query)
		name := nameOf(p)
		if len(name) == len(p) || classify(name)&carries[f] == 0 {
			continue
		}
		hexadecimal := f == S3v4 || f == GCSv4
		for v := p[len(name)+1:]; len(v) > 0; {
			var c byte
			c, v = decoded(v)
			if hexadecimal && c >= 'A' && c <= 'F' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
		}
		return dst
	}
	return dst
}
