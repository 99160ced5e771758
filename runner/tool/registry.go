package tool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Registry is the tools of a session. Its tools never change.
type Registry struct {
	tools map[string]entry
	specs []step.Tool
}

type entry struct {
	tool   Tool
	schema *checker
}

// A DuplicateError means that two tools have the same name.
type DuplicateError struct{ Name string }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("two tools are named %q", e.Name)
}

// A NameError means that a tool has a name that providers refuse.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("%q is no name for a tool: it must have 1 to 64 letters, digits, _ or -", e.Name)
}

// names are those that every provider accepts.
var names = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// NewRegistry puts tools together. Each needs a name of its own.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: make(map[string]entry, len(tools))}
	for _, t := range tools {
		if !names.MatchString(t.Name) {
			return nil, &NameError{Name: t.Name}
		}
		if t.Call == nil {
			return nil, fmt.Errorf("the tool %q has no Call", t.Name)
		}
		if _, taken := r.tools[t.Name]; taken {
			return nil, &DuplicateError{Name: t.Name}
		}
		r.tools[t.Name] = entry{tool: t, schema: newChecker(t.Spec)}
		r.specs = append(r.specs, step.Tool{Name: t.Name, Description: t.Description, Input: t.Input})
	}
	// The order is part of every request's prefix: it must not depend on who
	// made the list.
	slices.SortFunc(r.specs, func(a, b step.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return r, nil
}

// Specs are the descriptions for a model, sorted by name.
func (r *Registry) Specs() []step.Tool { return slices.Clone(r.specs) }

// Find returns the tool of that name.
func (r *Registry) Find(name string) (Tool, bool) {
	e, ok := r.tools[name]
	return e.tool, ok
}

// Read makes valid JSON of the arguments that a model wrote for a tool. That is
// what it wrote, where that fits the tool; else the first way to read it that
// fits, with small errors repaired. What does not fit at all is returned for
// [Registry.Check] to say what is wrong: as the object that it is, otherwise as
// a JSON string.
func (r *Registry) Read(name, raw string) json.RawMessage {
	e, known := r.tools[name]
	all := readings(raw)
	for _, one := range all {
		if known && e.schema.check(name, one.args) == nil {
			return one.args
		}
	}
	if len(all) > 0 && !all[0].guessed {
		return all[0].args
	}
	quoted, _ := json.Marshal(raw) // a string always is JSON
	return quoted
}

// Check holds arguments to a tool's schema; nil means that they fit.
func (r *Registry) Check(name string, args json.RawMessage) *Error {
	e, known := r.tools[name]
	if !known {
		return nil // there is nothing to hold them to
	}
	return e.schema.check(name, args)
}

// TakeUnvalidated returns why [Registry.Check] did not validate arguments for a tool, the first
// time that it is asked since; empty: all were validated.
func (r *Registry) TakeUnvalidated(name string) string {
	e, known := r.tools[name]
	if !known {
		return ""
	}
	return e.schema.takeUnvalidated()
}
