package object

import (
	"bytes"

	"github.com/arkvory/sidecar/proxy/wire"
)

// Repository returns the part of an object's name, as [Name] made it, that names the repository of which a plain client fetches several objects in one piece of
// work (rule X5), nil when there is none:
//
//	registry.example/v2/team/app/blobs/sha256:...        the layers of an image: up to the repository's name
//	forge.example/team/app.git/info/lfs/objects/...      the objects of a git-lfs batch, also where the client says that it is git-lfs
//	mirror.example/debian/pool/main/...                  the packages of one apt run, where the client says that it is apt
//
// The result is a part of name. It allocates nothing.
func Repository(h *wire.Head, name []byte) []byte {
	slash := bytes.IndexByte(name, '/')
	if slash < 0 {
		return nil
	}
	path := name[slash:]
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		path = path[:i]
	}
	end := -1
	switch userAgent := h.Get(wire.UserAgent); {
	case bytes.HasPrefix(path, []byte("/v2/")):
		end = bytes.Index(path, []byte("/blobs/"))
	case bytes.Contains(path, []byte("/info/lfs/")):
		end = bytes.Index(path, []byte("/info/lfs/"))
	case startsFold(userAgent, "git-lfs/"):
		end = bytes.LastIndexByte(path, '/')
		for up := 0; up < 2 && end > 0 && hexDir(path[:end]); up++ { // objects/ab/cd/abcd...
			end = bytes.LastIndexByte(path[:end], '/')
		}
	case startsFold(userAgent, "debian apt-http/"):
		end = bytes.Index(path, []byte("/pool/"))
	}
	if end < 0 {
		return nil
	}
	return name[:slash+end]
}

// hexDir reports whether the last segment of a path is the two hex digits by which stores spread objects over directories.
func hexDir(path []byte) bool {
	i := bytes.LastIndexByte(path, '/')
	if len(path)-i-1 != 2 {
		return false
	}
	for _, c := range path[i+1:] {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

func startsFold(b []byte, s string) bool { return len(b) >= len(s) && wire.EqualFold(b[:len(s)], s) }
