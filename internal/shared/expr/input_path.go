package expr

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// Follow finds what a path leads to in an input of the type, without CEL. Absent is the
// message of [Env.Compile] if a field on the way may be absent.
func (t Type) Follow(p template.Path) (found bool, absent string) {
	w, found := t.walk(p)
	if !found || w.optional < 0 {
		return found, ""
	}
	return true, fmt.Sprintf("%s may be absent: write %s", written(w.all, len(w.all)), withDefault(w.all, w.optional, w.end))
}

// NoValue returns the message about a path that has no value, with what to write.
func (t Type) NoValue(p template.Path) string {
	w, _ := t.walk(p)
	return fmt.Sprintf("%s has no value: write %s", written(w.all, len(w.all)), withDefault(w.all, max(w.unsure, 0), w.end))
}

// A walk is a path in a type.
type walk struct {
	all []step
	// optional is the index of the first field that may be absent. Unsure is that too, or of the
	// first step into a map, a list or any value. -1: there is none.
	optional, unsure int
	end              Type
}

// walk follows a path; false: it leads to nothing.
func (t Type) walk(p template.Path) (walk, bool) {
	w := walk{all: []step{{text: "input", itself: true}}, optional: -1, unsure: -1, end: t}
	for i, k := range p {
		next, found := w.end.under(k)
		if !found {
			return w, false
		}
		if next.kind == optionalKind && w.optional < 0 {
			w.optional = i + 1
		}
		if (next.kind == optionalKind || w.end.kind != objectKind) && w.unsure < 0 {
			w.unsure = i + 1
		}
		w.all, w.end = append(w.all, stepOf(k)), next.value()
	}
	return w, true
}

// stepOf returns the step of a key.
func stepOf(k template.Key) step {
	if k.Index >= 0 {
		return step{text: fmt.Sprintf("[%d]", k.Index)}
	}
	return step{text: k.Name, field: true}
}

// under returns the type of the value of a key. It reports false if there is no such key.
func (t Type) under(k template.Key) (Type, bool) {
	isName := k.Index < 0
	switch {
	case t.kind == dynKind:
		return Dyn(), true
	case t.kind == listKind && !isName, t.kind == mapKind && isName:
		return *t.of, true
	case t.kind != objectKind || !isName:
		return Type{}, false
	}
	of, ok := t.fields[k.Name]
	if !ok && t.open != nil {
		return Optional(*t.open), true
	}
	return of, ok
}
