// Package toolbox has the tools of a session, and reads the arguments of their calls.
package toolbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/args"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Toolbox is the tools of a session. Its tools never change.
type Toolbox struct {
	tools map[string]entry
	specs []step.Tool
}

type entry struct {
	tool   tool.Tool
	schema *args.Checker
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

// names matches names that every provider accepts.
var names = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// New combines tools. Each needs a unique name.
func New(tools ...tool.Tool) (*Toolbox, error) {
	b := &Toolbox{tools: make(map[string]entry, len(tools))}
	for _, t := range tools {
		if !names.MatchString(t.Name) {
			return nil, &NameError{Name: t.Name}
		}
		if t.Call == nil {
			return nil, fmt.Errorf("the tool %q has no Call", t.Name)
		}
		if _, taken := b.tools[t.Name]; taken {
			return nil, &DuplicateError{Name: t.Name}
		}
		b.tools[t.Name] = entry{tool: t, schema: args.NewChecker(t.Input, t.Internal.Facts())}
		b.specs = append(b.specs, step.Tool{Name: t.Name, Description: t.Description, Input: t.Input})
	}
	// The order is part of the beginning of every request: it must not depend on the order of the list.
	slices.SortFunc(b.specs, func(a, b step.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return b, nil
}

// Specs returns the descriptions for a model, sorted by name.
func (t *Toolbox) Specs() []step.Tool { return slices.Clone(t.specs) }

// Find returns the tool of that name.
func (t *Toolbox) Find(name string) (tool.Tool, bool) {
	e, ok := t.tools[name]
	return e.tool, ok
}

// Read returns valid JSON for the arguments that a model wrote for a tool: the original if it matches the schema,
// otherwise the first reading that matches, with small errors repaired. If none matches, it returns the object as it
// is, or otherwise the text as a JSON string, for [Toolbox.Check] to describe the error.
func (t *Toolbox) Read(name, raw string) json.RawMessage {
	e, known := t.tools[name]
	all := args.Readings(raw)
	for _, one := range all {
		if known && e.schema.Check(name, one.Args) == nil {
			return one.Args
		}
	}
	if len(all) > 0 && !all[0].Guessed {
		return all[0].Args
	}
	quoted, _ := json.Marshal(raw) // a string always is JSON
	return quoted
}

// Check holds arguments to a tool's schema; nil means that they fit.
func (t *Toolbox) Check(name string, given json.RawMessage) *tool.Error {
	e, known := t.tools[name]
	if !known {
		return nil // there is nothing to hold them to
	}
	wrong := e.schema.Check(name, given)
	if wrong == nil {
		return nil
	}
	return &tool.Error{Message: wrong.Message, Recommendations: wrong.Recommendations}
}

// TakeUnvalidated returns why [Toolbox.Check] did not validate arguments for a tool, the first
// time that it is asked since; empty: all were validated.
func (t *Toolbox) TakeUnvalidated(name string) string {
	e, known := t.tools[name]
	if !known {
		return ""
	}
	return e.schema.TakeUnvalidated()
}
