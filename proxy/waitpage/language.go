package waitpage

import "strings"

// maxRanges is how many language ranges of Accept-Language are looked at: no browser sends as many, and no client makes us read more.
const maxRanges = 32

// choose returns the index in languages that an Accept-Language field asks for, 0 when it asks for none of them (RFC 9110 section
// 12.5.4; a range selects a language by its primary subtag, as a lookup of RFC 4647 would). The highest weight wins, then the range
// that stands first; "*" speaks for the languages that no other range names.
func choose(field string) int {
	type wish struct {
		named  bool
		weight int // thousandths
		order  int
	}
	var wishes [len(languages)]wish
	star := wish{order: maxRanges}
	for order := 0; field != "" && order < maxRanges; order++ {
		var item string
		item, field, _ = strings.Cut(field, ",")
		name, parameters, _ := strings.Cut(item, ";")
		weight := weightOf(parameters)
		name = strings.Trim(name, " \t")
		if weight < 0 || name == "" {
			continue
		}
		if name == "*" {
			star = wish{true, weight, order}
			continue
		}
		primary, _, _ := strings.Cut(name, "-")
		for i := range languages {
			if strings.EqualFold(primary, languages[i].tag) && (!wishes[i].named || weight > wishes[i].weight) {
				wishes[i] = wish{true, weight, order}
			}
		}
	}
	best, chosen := wish{order: maxRanges}, 0
	for i, w := range wishes {
		if !w.named {
			w = star
		}
		if w.weight > best.weight || w.weight == best.weight && w.weight > 0 && w.order < best.order {
			best, chosen = w, i
		}
	}
	return chosen
}

// weightOf reads the weight of a range in thousandths: 1000 when there is none, -1 when it is malformed.
func weightOf(parameters string) int {
	parameters = strings.Trim(parameters, " \t")
	if parameters == "" {
		return 1000
	}
	if len(parameters) < 3 || parameters[0]|0x20 != 'q' || parameters[1] != '=' {
		return -1
	}
	value := parameters[2:]
	if len(value) > 5 || value[0] != '0' && value[0] != '1' || len(value) > 1 && value[1] != '.' {
		return -1
	}
	weight := int(value[0]-'0') * 1000
	for i, unit := 2, 100; i < len(value); i, unit = i+1, unit/10 {
		if value[i] < '0' || value[i] > '9' {
			return -1
		}
		weight += int(value[i]-'0') * unit
	}
	if weight > 1000 {
		return -1
	}
	return weight
}
