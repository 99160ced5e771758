package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Stack has layers in their order, outermost first. A nil Stack has none.
type Stack struct {
	layers       []Layer
	tools        []tool.Tool
	instructions string
}

// Build sorts layers. Each layer needs a unique name, and so does each of their tools.
func Build(layers ...Layer) (*Stack, error) {
	s := &Stack{layers: slices.Clone(layers)}
	slices.SortStableFunc(s.layers, func(a, b Layer) int { return cmp.Compare(a.Priority, b.Priority) })
	var words []string
	names, owners := map[string]int{}, map[string]string{}
	for i, l := range s.layers {
		if l.Name == "" {
			return nil, fmt.Errorf("the layer of priority %d has no name", l.Priority)
		}
		if first, ok := names[l.Name]; ok {
			return nil, fmt.Errorf("two layers are named %q, of the priorities %d and %d; rename one", l.Name, s.layers[first].Priority, l.Priority)
		}
		names[l.Name] = i
		if err := own(owners, l); err != nil {
			return nil, err
		}
		s.tools = append(s.tools, l.Tools...)
		if l.Instructions != "" {
			words = append(words, l.Instructions)
		}
	}
	s.instructions = strings.Join(words, "\n\n")
	return s, nil
}

// own notes which layer brings which tool, and refuses a second one.
func own(owners map[string]string, l Layer) error {
	for i, t := range l.Tools {
		if t.Call == nil {
			return fmt.Errorf("tool %d of the layer %q has no Call", i+1, l.Name)
		}
		name := t.Name
		first, ok := owners[name]
		switch {
		case ok && first == l.Name:
			return fmt.Errorf("the layer %q brings the tool %q twice", l.Name, name)
		case ok:
			return fmt.Errorf("the layers %q and %q both bring a tool %q; rename one", first, l.Name, name)
		}
		owners[name] = l.Name
	}
	return nil
}

// Tools returns the tools of all layers, outermost first.
func (s *Stack) Tools() []tool.Tool {
	if s == nil {
		return nil
	}
	return slices.Clone(s.tools)
}

// Instructions returns the instructions of all layers, outermost first, separated by blank lines.
func (s *Stack) Instructions() string {
	if s == nil {
		return ""
	}
	return s.instructions
}

// Model wraps core with the layers. Each call composes them again: call it once per session and keep the result. A
// panic in a layer becomes an error.
func (s *Stack) Model(core ModelFunc) ModelFunc {
	if s == nil {
		return core
	}
	wrapped := false
	for _, l := range slices.Backward(s.layers) {
		if l.Model != nil {
			core, wrapped = l.Model(core), true
		}
	}
	if !wrapped {
		return core
	}
	return func(ctx context.Context, t *Turn) (resp model.Response, err error) {
		defer caught(&err)
		return core(ctx, t)
	}
}

// Tool puts the layers around core, as Model does.
func (s *Stack) Tool(core ToolFunc) ToolFunc {
	if s == nil {
		return core
	}
	wrapped := false
	for _, l := range slices.Backward(s.layers) {
		if l.Tool != nil {
			core, wrapped = l.Tool(core), true
		}
	}
	if !wrapped {
		return core
	}
	return func(ctx context.Context, c *tool.Call) (result tool.Result, err error) {
		defer caught(&err)
		return core(ctx, c)
	}
}

// caught turns a panic into an error: a panic in custom code must not end the program.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic in a layer: %v\n%s", p, debug.Stack())
	}
}

// Start starts the layers, outer ones first. If a layer fails, the layers that have started
// are stopped with a SessionEnd without a Reason. The error of the failed layer is joined
// with errors of stopping.
func (s *Stack) Start(ctx context.Context, o *SessionStart) error {
	if s == nil {
		return nil
	}
	for i, l := range s.layers {
		if l.Start == nil {
			continue
		}
		if err := guard("starting", l.Name, func() error { return l.Start(ctx, o) }); err != nil {
			return errors.Join(err, stop(ctx, s.layers[:i], SessionEnd{Scope: o.Scope}))
		}
	}
	return nil
}

// Stop stops all layers, inner ones first, even if one fails.
func (s *Stack) Stop(ctx context.Context, c SessionEnd) error {
	if s == nil {
		return nil
	}
	return stop(ctx, s.layers, c)
}

func stop(ctx context.Context, layers []Layer, c SessionEnd) error {
	var errs []error
	for _, l := range slices.Backward(layers) {
		if l.Stop != nil {
			errs = append(errs, guard("stopping", l.Name, func() error { return l.Stop(ctx, c) }))
		}
	}
	return errors.Join(errs...)
}

// guard turns a panic into an error, so that a panic in one layer does not prevent calls of the others.
func guard(doing, name string, f func() error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s the layer %q: %w", doing, name, err)
		}
	}()
	defer caught(&err)
	return f()
}
