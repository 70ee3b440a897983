package config

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// address is a host and port split apart. Host has no brackets and may be empty where a parser says so; Port is -1 when
// there is none.
type address struct {
	Host string
	Port int
}

// splitAddress takes host, host:port, [v6] or [v6]:port apart. An empty host passes here; a bare IPv6 address does not,
// since its last group would read as a port.
func splitAddress(text string) (address, error) {
	host, port, hasPort := text, "", false
	if rest, found := strings.CutPrefix(text, "["); found {
		inside, after, closed := strings.Cut(rest, "]")
		if !closed || !strings.Contains(inside, ":") {
			return address{}, errors.New("has brackets around something that is no IPv6 address")
		}
		host = inside
		if after != "" {
			if port, hasPort = strings.CutPrefix(after, ":"); !hasPort {
				return address{}, errors.New("has characters after the closing bracket that are no port")
			}
		}
	} else {
		if strings.Count(text, ":") > 1 {
			return address{}, errors.New("has more than one colon; write an IPv6 address in brackets")
		}
		host, port, hasPort = strings.Cut(text, ":")
	}
	if !hasPort {
		return address{Host: host, Port: -1}, nil
	}
	if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
		return address{}, errors.New("has a port that is no number 0..65535")
	}
	number, err := strconv.Atoi(port)
	if err != nil || number > 65535 {
		return address{}, errors.New("has a port above 65535")
	}
	return address{Host: host, Port: number}, nil
}

// checkHost judges a host: an IP address, or a name by the letters that resolvers take (underscores included, since
// container networks use them). A name that ends in a number would be taken for a wrong IPv4 address.
func checkHost(host string) error {
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return errors.New("has a host that is no IPv6 address")
		}
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, notInName) {
			return errors.New("has a host that is neither a name nor an address")
		}
	}
	if len(host) > 253 || strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return errors.New("has a host that is neither a name nor an address")
	}
	return nil
}

func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// checkListen judges the address of a listener.
func checkListen(text string) (string, error) {
	split, err := splitAddress(text)
	if err != nil {
		return "", err
	}
	if split.Port < 0 {
		return "", errors.New("has no port")
	}
	if split.Host != "" {
		if err := checkHost(split.Host); err != nil {
			return "", err
		}
	}
	return text, nil
}

// checkHostHeader judges what may stand in Host: a host, and a port if there is a colon.
func checkHostHeader(text string) (string, error) {
	split, err := splitAddress(text)
	if err != nil {
		return "", err
	}
	if split.Port == 0 {
		return "", errors.New("has port 0")
	}
	if strings.Contains(split.Host, "%") {
		return "", errors.New("has a zone, which means nothing to another machine")
	}
	return text, checkHost(split.Host)
}

// checkVia judges the received-by part of Via (RFC 9110, 7.6.3): a pseudonym, or a host with a port.
func checkVia(text string) (string, error) {
	if isToken(text) {
		return text, nil
	}
	if _, err := checkHostHeader(text); err != nil {
		return "", errors.New("is neither a word nor a host with a port")
	}
	return text, nil
}

// isToken reports whether the text is a token of RFC 9110, 5.6.2.
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return text != ""
}

// checkOrigin judges the URL of an origin and takes a lone slash off its end. Its errors never repeat a part of the
// text: a URL with a password in it is a mistake that happens.
func checkOrigin(text string) (string, error) {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("is not a URL")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return "", errors.New("does not begin with http:// or https://")
	case parsed.User != nil:
		return "", errors.New("has a user or password in it; the clients' own credentials pass through")
	case strings.ContainsAny(text, "?#"):
		return "", errors.New("has a query or a fragment")
	case parsed.Path != "" && parsed.Path != "/":
		return "", errors.New("has a path; requests pass with the path the client asked for")
	case parsed.Opaque != "" || parsed.Host == "":
		return "", errors.New("has no host")
	}
	if _, err := checkHostHeader(parsed.Host); err != nil {
		return "", err
	}
	return parsed.Scheme + "://" + parsed.Host, nil
}

// maxOrigins bounds the list of equal origins.
const maxOrigins = 32

// checkOrigins judges a list of origins.
func checkOrigins(text string) (string, error) {
	entries := strings.Split(text, ",")
	if len(entries) > maxOrigins {
		return "", errors.New("has more than " + strconv.Itoa(maxOrigins) + " entries")
	}
	seen := make(map[string]bool, len(entries))
	for i, entry := range entries {
		one, err := checkOrigin(strings.TrimSpace(entry))
		switch {
		case err != nil && len(entries) == 1:
			return "", err
		case err != nil:
			return "", errors.New("has an entry " + strconv.Itoa(i+1) + " that " + err.Error())
		case seen[strings.ToLower(one)]:
			return "", errors.New("has an entry " + strconv.Itoa(i+1) + " that stands in the list already")
		}
		seen[strings.ToLower(one)] = true
		entries[i] = one
	}
	return strings.Join(entries, ","), nil
}

// checkResolver judges the address of a name server.
func checkResolver(text string) (string, error) {
	server, err := netip.ParseAddrPort(text)
	if err != nil || server.Port() == 0 {
		return "", errors.New("is no address with a port; a name could not be resolved without it")
	}
	return server.String(), nil
}

// checkFloor judges the floor of ready connections.
func checkFloor(text string) (string, error) {
	if text == "adaptive" {
		return text, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 4096 {
		return "", errors.New("is neither adaptive nor a whole number 1..4096")
	}
	return strconv.Itoa(n), nil
}

// checkProbePath judges a target in origin form.
func checkProbePath(text string) (string, error) {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' || text[i] == '#' {
			return "", errors.New("has characters that no path has")
		}
	}
	if text[0] != '/' {
		return "", errors.New("does not begin with /")
	}
	return text, nil
}

// maxNetworks bounds the list of trusted proxies, which every request may have to walk.
const maxNetworks = 4096

// checkNetworks judges a list of addresses and CIDR networks. The canonical text holds masked networks, IPv4-mapped ones
// in IPv4 form.
func checkNetworks(text string) (string, error) {
	entries := strings.Split(text, ",")
	if len(entries) > maxNetworks {
		return "", errors.New("has more than " + strconv.Itoa(maxNetworks) + " entries")
	}
	for i, entry := range entries {
		network, err := parseNetwork(strings.TrimSpace(entry))
		if err != nil {
			return "", errors.New("has an entry " + strconv.Itoa(i+1) + " that " + err.Error())
		}
		entries[i] = network.String()
	}
	return strings.Join(entries, ","), nil
}

// parseNetwork reads one address or CIDR network and masks it.
func parseNetwork(text string) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, errors.New("is empty")
	}
	if !strings.Contains(text, "/") {
		single, err := netip.ParseAddr(text)
		if err != nil || single.Zone() != "" {
			return netip.Prefix{}, errors.New("is no address without a zone")
		}
		single = single.Unmap()
		return netip.PrefixFrom(single, single.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, errors.New("is no address with a prefix length")
	}
	if network.Addr().Is4In6() {
		if network.Bits() < 96 {
			return netip.Prefix{}, errors.New("covers more than the IPv4-mapped addresses; write the IPv4 network")
		}
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	return network.Masked(), nil
}

// collide reports whether two listen addresses cannot both be bound: one port, and one host or a wildcard. Port 0 asks
// for a free port and never collides. localhost stands for every loopback address.
func collide(left, right string) bool {
	one, oneErr := splitAddress(left)
	other, otherErr := splitAddress(right)
	if oneErr != nil || otherErr != nil || one.Port != other.Port || one.Port == 0 {
		return false
	}
	if isWildcard(one.Host) || isWildcard(other.Host) || strings.EqualFold(one.Host, other.Host) {
		return true
	}
	a, aErr := netip.ParseAddr(one.Host)
	b, bErr := netip.ParseAddr(other.Host)
	switch {
	case aErr == nil && bErr == nil:
		return a.Unmap() == b.Unmap()
	case aErr == nil:
		return a.IsLoopback() && strings.EqualFold(other.Host, "localhost")
	case bErr == nil:
		return b.IsLoopback() && strings.EqualFold(one.Host, "localhost")
	}
	return false
}

func isWildcard(host string) bool {
	parsed, err := netip.ParseAddr(host)
	return host == "" || err == nil && parsed.Unmap().IsUnspecified()
}
