package waitpage

import (
	_ "embed" // the script and the style are files of their own
	"strings"
)

//go:embed page.js
var scriptSource string

//go:embed page.css
var styleSource string

// script and style as they stand in the page; ContentSecurityPolicy names their hashes.
var script, style = compact(scriptSource), compact(styleSource)

// compact leaves out indentation, empty lines and lines that are only a comment. It knows nothing of the languages: the sources have
// neither block comments nor string literals of several lines.
func compact(source string) string {
	var b strings.Builder
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
