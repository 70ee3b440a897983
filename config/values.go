package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
)

// Secret is a value that formats as "(set)" or "(unset)" with every verb, in text and in JSON. Reveal gives the text.
type Secret string

// Reveal returns the secret itself; the result must not reach a log, an error or a metric.
func (s Secret) Reveal() string { return string(s) }

// String returns "(set)", or "(unset)" when the secret is empty.
func (s Secret) String() string {
	if s == "" {
		return "(unset)"
	}
	return "(set)"
}

// Format hides the value from every verb: fmt shows the underlying string for a verb it finds wrong, so String alone is
// not enough.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Strategy names how downloads of large objects are admitted.
type Strategy string

// The strategies of this version.
const (
	// StrategyOrdered queues whole sessions by weighted classes, principals in turn, arrival.
	StrategyOrdered Strategy = "ordered"
	// StrategySmallestFirst queues them by weighted classes, smaller objects first, long waits counting like smaller sizes.
	StrategySmallestFirst Strategy = "smallest-first"
	// StrategyFairSojourn queues them by weighted classes and the order in which they would end if all shared the link.
	StrategyFairSojourn Strategy = "fair-sojourn"
	// StrategyShared admits each request on its own.
	StrategyShared Strategy = "shared"
)

// PrincipalKind is a place where an identity may be found.
type PrincipalKind string

// The kinds of identity; KindHeader and KindCookie carry the name of the header or cookie.
const (
	KindHeader        PrincipalKind = "header"
	KindClientCert    PrincipalKind = "client-cert"
	KindCookie        PrincipalKind = "cookie"
	KindSignature     PrincipalKind = "signature"
	KindAuthorization PrincipalKind = "authorization"
	KindAddress       PrincipalKind = "address"
)

// PrincipalSource is one entry of the identity list. Name is set for KindHeader and KindCookie only, as it was written.
type PrincipalSource struct {
	Kind PrincipalKind
	Name string
}

// String returns the entry as it is written in ARKVORY_PRINCIPAL_FROM.
func (s PrincipalSource) String() string {
	if s.Name == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.Name
}

// PrincipalSources is an ordered list of places to look for an identity; the first hit wins.
type PrincipalSources []PrincipalSource

// String returns the list as it is written in ARKVORY_PRINCIPAL_FROM.
func (s PrincipalSources) String() string {
	parts := make([]string, len(s))
	for i, one := range s {
		parts[i] = one.String()
	}
	return strings.Join(parts, ",")
}

// Uses reports whether the list has an entry of the kind.
func (s PrincipalSources) Uses(kind PrincipalKind) bool {
	for _, one := range s {
		if one.Kind == kind {
			return true
		}
	}
	return false
}

// UnmarshalText replaces the list with the parsed text. The errors name the entry and what is wrong with it.
func (s *PrincipalSources) UnmarshalText(text []byte) error {
	parsed, err := parsePrincipalSources(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// Origins is a list of equal origins.
type Origins []*url.URL

// String returns the list as it is written in ARKVORY_UPSTREAM.
func (o Origins) String() string {
	parts := make([]string, len(o))
	for i, one := range o {
		parts[i] = one.String()
	}
	return strings.Join(parts, ",")
}

// UnmarshalText replaces the list with the parsed text. The errors name the entry and what is wrong with it.
func (o *Origins) UnmarshalText(text []byte) error {
	checked, err := checkOrigins(string(text))
	if err != nil {
		return err
	}
	list := Origins{}
	for entry := range strings.SplitSeq(checked, ",") {
		one, err := url.Parse(entry)
		if err != nil {
			return errors.New("is not a URL")
		}
		list = append(list, one)
	}
	*o = list
	return nil
}

// Weights are the shares of the four classes in the free slots, each 1..1000.
type Weights struct {
	Interactive, Release, Bulk, Background int
}

// DefaultWeights are the weights of classes that ARKVORY_DOWNLOAD_WEIGHTS does not name.
var DefaultWeights = Weights{Interactive: 8, Release: 4, Bulk: 2, Background: 1}

// String returns the weights as they are written in ARKVORY_DOWNLOAD_WEIGHTS, all four.
func (w Weights) String() string {
	return "interactive=" + strconv.Itoa(w.Interactive) + ",release=" + strconv.Itoa(w.Release) +
		",bulk=" + strconv.Itoa(w.Bulk) + ",background=" + strconv.Itoa(w.Background)
}

// UnmarshalText replaces the weights with the parsed text; classes the text leaves out get their default.
func (w *Weights) UnmarshalText(text []byte) error {
	parsed, err := parseWeights(string(text))
	if err != nil {
		return err
	}
	*w = parsed
	return nil
}
