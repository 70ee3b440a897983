package console

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"path"
	"strconv"
)

//go:embed assets
var embedded embed.FS

// contentTypes are those of the files by the end of their name; a file of another kind is a defect of the build.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

type asset struct {
	body              []byte
	contentType, etag string
}

var assets = load()

// load reads what the build put into the binary; it cannot fail on a file that a test has seen.
func load() map[string]asset {
	files, err := fs.ReadDir(embedded, "assets")
	if err != nil {
		panic(err)
	}
	all := make(map[string]asset, len(files))
	for _, file := range files {
		body, err := embedded.ReadFile("assets/" + file.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		all[file.Name()] = asset{body, contentTypes[path.Ext(file.Name())], strconv.Quote(base64.RawURLEncoding.EncodeToString(sum[:16]))}
	}
	return all
}

// Asset returns one file of the console by its path below /console/, without a leading slash; "" is the page, as "index.html" is. The bytes must not be
// changed. etag is a strong entity tag in quotes. ok is false for a path that is none of the console's. It is safe for concurrent use.
func Asset(name string) (body []byte, contentType, etag string, ok bool) {
	if name == "" {
		name = "index.html"
	}
	one, ok := assets[name]
	return one.body, one.contentType, one.etag, ok
}
