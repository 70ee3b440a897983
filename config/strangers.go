package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// reserved are the variables of later versions.
var reserved = []string{
	"ARKVORY_QUEUE",
}

// strangers returns a warning for each variable that begins like ours and is none that this version reads. A lower-case
// name counts: its owner meant us.
func strangers(all map[string]string) []Warning {
	known := make(map[string]bool, len(definitions))
	for _, one := range definitions {
		known[one.name] = true
	}
	var found []Warning
	for name, text := range all {
		switch {
		case !strings.HasPrefix(strings.ToUpper(name), "ARKVORY_") || known[name] || isServiceLink(name, text):
		case slices.Contains(reserved, name):
			if text != "" {
				found = append(found, Warning{Variable: name, Text: "not in this version, ignored"})
			}
		default:
			text := "unknown, ignored"
			if near := nearest(name); near != "" {
				text += "; did you mean " + near + "?"
			}
			found = append(found, Warning{Variable: printable(name), Text: text})
		}
	}
	return found
}

// printable keeps a name with odd characters from forging lines.
func printable(name string) string {
	if isToken(name) {
		return name
	}
	return strconv.Quote(name)
}

// isServiceLink recognises what Kubernetes puts into every container of a namespace with a Service called arkvory or
// arkvory-something.
func isServiceLink(name, text string) bool {
	if strings.HasSuffix(name, "_SERVICE_HOST") || strings.HasSuffix(name, "_SERVICE_PORT") || strings.Contains(name, "_SERVICE_PORT_") {
		return true
	}
	_, after, found := strings.Cut(name, "_PORT")
	if !found {
		return false
	}
	link := strings.HasPrefix(text, "tcp://") || strings.HasPrefix(text, "udp://") || strings.HasPrefix(text, "sctp://")
	if after == "" {
		return link
	}
	parts := strings.Split(after, "_")
	if len(parts) < 3 || parts[0] != "" || strings.Trim(parts[1], "0123456789") != "" {
		return false
	}
	return slices.Contains([]string{"TCP", "UDP", "SCTP"}, parts[2])
}

// nearest returns the known name that the fewest edits make of the given one, or "" when none is near: up to a third of
// the letters after ARKVORY_ may differ. Ties go to the first in the order of Table.
func nearest(name string) string {
	given := strings.TrimPrefix(strings.ToUpper(name), "ARKVORY_")
	if len(given) > 128 {
		return ""
	}
	best, least := "", len(given)/3+1
	for _, one := range definitions {
		if edits := slips(given, strings.TrimPrefix(one.name, "ARKVORY_")); edits < least {
			best, least = one.name, edits
		}
	}
	return best
}

// slips counts the edits between two names, where a wrong unit is one slip however long its word is.
func slips(a, b string) int {
	plain := distance(a, b)
	stemA, foundA := cutUnit(a)
	stemB, foundB := cutUnit(b)
	if foundA && foundB {
		return min(plain, distance(stemA, stemB)+1)
	}
	return plain
}

func cutUnit(name string) (stem string, found bool) {
	for _, unit := range []string{"_MS", "_SECONDS", "_MINUTES"} {
		if stem, found := strings.CutSuffix(name, unit); found {
			return stem, true
		}
	}
	return name, false
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edits := diagonal
			if a[i] != b[j] {
				edits = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], edits
		}
	}
	return row[len(b)]
}

func sortWarnings(list []Warning) {
	slices.SortFunc(list, func(a, b Warning) int {
		return cmp.Or(strings.Compare(a.Variable, b.Variable), strings.Compare(a.Text, b.Text))
	})
}
