package config

import (
	"errors"
	"strconv"
	"strings"
)

// maxPrincipalSources bounds the identity list: every request walks it.
const maxPrincipalSources = 16

// parsePrincipalSources reads an ordered list of identity kinds. Blanks around entries are ignored.
func parsePrincipalSources(text string) (PrincipalSources, error) {
	entries := strings.Split(text, ",")
	if len(entries) > maxPrincipalSources {
		return nil, errors.New("has more than " + strconv.Itoa(maxPrincipalSources) + " entries")
	}
	list := make(PrincipalSources, 0, len(entries))
	seen := make(map[string]bool, len(entries))
	for i, entry := range entries {
		source, err := parsePrincipalSource(strings.TrimSpace(entry))
		if err != nil {
			return nil, errors.New("has an entry " + strconv.Itoa(i+1) + " that " + err.Error())
		}
		// Header names are equal in any case (RFC 9110, 5.1), cookie names are not.
		key := source.String()
		if source.Kind == KindHeader {
			key = strings.ToLower(key)
		}
		if seen[key] {
			return nil, errors.New("has an entry " + strconv.Itoa(i+1) + " that stands in the list already")
		}
		seen[key] = true
		list = append(list, source)
	}
	return list, nil
}

func parsePrincipalSource(text string) (PrincipalSource, error) {
	word, name, hasName := strings.Cut(text, ":")
	kind := PrincipalKind(word)
	switch kind {
	case KindHeader, KindCookie:
		if !hasName || name == "" {
			return PrincipalSource{}, errors.New("lacks a name; write " + word + ":NAME")
		}
		if !isToken(name) {
			return PrincipalSource{}, errors.New("has a name with characters that no " + word + " name has")
		}
	case KindClientCert, KindSignature, KindAuthorization, KindAddress:
		if hasName {
			return PrincipalSource{}, errors.New("gives a name to " + word + ", which takes none")
		}
	case "":
		return PrincipalSource{}, errors.New("is empty")
	default:
		return PrincipalSource{}, errors.New("is no kind of identity")
	}
	return PrincipalSource{Kind: kind, Name: name}, nil
}

func checkPrincipalSources(text string) (string, error) {
	list, err := parsePrincipalSources(text)
	return list.String(), err
}

// parseWeights reads class=weight pairs; classes that are left out keep their default.
func parseWeights(text string) (Weights, error) {
	weights := DefaultWeights
	fields := map[string]*int{
		"interactive": &weights.Interactive, "release": &weights.Release,
		"bulk": &weights.Bulk, "background": &weights.Background,
	}
	entries := strings.Split(text, ",")
	for i, entry := range entries {
		class, number, found := strings.Cut(strings.TrimSpace(entry), "=")
		field := fields[class]
		where := "has an entry " + strconv.Itoa(i+1) + " that "
		switch {
		case !found:
			return Weights{}, errors.New(where + "is no class=weight")
		case field == nil:
			return Weights{}, errors.New(where + "names no class, or one that stands in the list already")
		case number == "" || strings.Trim(number, "0123456789") != "":
			return Weights{}, errors.New(where + "has a weight that is no whole number")
		}
		value, err := strconv.Atoi(number)
		if err != nil || value < 1 || value > 1000 {
			return Weights{}, errors.New(where + "has a weight outside 1..1000")
		}
		*field = value
		// A class is written once: with two weights for it one would be silently lost.
		delete(fields, class)
	}
	return weights, nil
}

func checkWeights(text string) (string, error) {
	weights, err := parseWeights(text)
	return weights.String(), err
}
