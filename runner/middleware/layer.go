// Package middleware has the layers around an agent's calls.
//
// A Layer is data: a name, a priority, tools, instructions, and optional functions that wrap the model
// call and the tool call or run at the start and at the end of a session. A smaller priority is further out; layers of
// equal priority keep their order. By convention 0 to 100 are internal layers of the runner, 100 to 500 built-in ones,
// and 500 to 1000 those of a custom runner.
//
// Build sorts layers, and Stack.Model and Stack.Tool compose them once per session. The innermost function is the
// loop's own. It records the action and executes it, so the values that the last layer passes on are final.
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
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Layer is one layer around the calls. Only Name is required; a nil function costs nothing.
type Layer struct {
	Name string
	// Priority orders layers: smaller is further out.
	Priority int
	// Tools are added to the agent's tools. Their Closers are closed before Close is called.
	Tools []tool.Tool
	// Instructions are added to the agent's instructions, once, when it is built.
	Instructions string
	// Start runs before the first turn of a session, outer layers first; not when a session is resumed. It may change
	// the SessionStart.
	Start func(ctx context.Context, o *SessionStart) error
	// Model and Tool wrap the model call and the tool call.
	Model func(next ModelFunc) ModelFunc
	Tool  func(next ToolFunc) ToolFunc
	// Stop runs when a session has ended, inner layers first. It must not change anything; its error is logged.
	Stop func(ctx context.Context, c SessionEnd) error
	// Close releases the layer's resources. It is called once, also if the session never began: when its session has
	// ended or, for the first session of an Agent, when the attempt ends.
	Close func() error
}

// A SessionStart describes a session that is about to begin.
type SessionStart struct {
	Scope step.Scope
	// Prompt is the first user message.
	Prompt string
}

// A SessionEnd describes how a session ended.
type SessionEnd struct {
	Scope step.Scope
	// Reason is why the session ended, Text the last text of the agent.
	Reason, Text string
}

// A ModelFunc calls the model and returns its answer. An error is an error of the model, or a VetoError, which ends the
// Run with reason Denied.
type ModelFunc func(ctx context.Context, t *Turn) (model.Response, error)

// A ToolFunc executes a tool call. A failure of the tool is in the Result. An error ends the Run, unless it is a
// VetoError, which becomes the result of the call.
type ToolFunc func(ctx context.Context, c *tool.Call) (tool.Result, error)

// A Turn is a model call about to be made.
type Turn struct {
	Scope step.Scope
	// Request is the request to the model. A change of earlier content, other than an addition at its end, invalidates
	// the provider's cache.
	Request *model.Request
	// Say adds a message of the user to the session and to the Request.
	Say func(text string, note step.Note) error
	// Charge counts a model call that a layer made itself, with its usage. Calls of next are counted without it.
	Charge func(used step.Usage)
}

// A VetoError forbids the action. Around a tool call the model reads it as the result; around a model call, and at the
// start, it ends the Run with reason Denied.
type VetoError struct {
	// By names the layer or service that forbids.
	By     string
	Reason string
}

func (e *VetoError) Error() string { return fmt.Sprintf("%s does not allow it: %s", e.By, e.Reason) }

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
