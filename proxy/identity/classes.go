package identity

import (
	"maps"

	"github.com/arkvory/sidecar/queue"
)

// classes are the live settings' word on principals: an immutable value behind an atomic pointer. Two of them are the same exactly when they are
// one value in memory, which is what a memo compares.
type classes struct {
	of map[string]queue.Class // by principal id; empty = nobody
}

// SetClasses puts the classes that the live settings give to principals in force, by principal id, from the next request on; nil or empty takes them
// back. They come after identification and before everything else that gave a class, the principals file included: an id of the settings names
// exactly one principal, and the operator who wrote it may raise one above its kind. What a client asks for may only lower it from there (see
// [ApplyClass]). The map is copied. Safe for concurrent use; readers take no lock.
func (d *Identifier) SetClasses(of map[string]queue.Class) {
	d.classes.Store(&classes{of: maps.Clone(of)})
}

// apply sets the class of a principal that the settings name.
func (c *classes) apply(id *Identity) {
	if len(c.of) == 0 {
		return
	}
	if class, ok := c.of[id.Principal]; ok {
		id.Class = class
	}
}
