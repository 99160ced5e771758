package config

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/engine"
	"github.com/deckhand-dev/deckhand/runner/model/price"
	"github.com/deckhand-dev/deckhand/runner/model/retry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
	"github.com/deckhand-dev/deckhand/runner/tool/files"
)

// Parts are what a task is built with.
type Parts struct {
	Task     task.Task
	Snapshot task.Snapshot
	// Workspace is what the file tools see.
	Workspace backend.Backend
	// Key is where the key of the Agent's Model is read; see ModelSpec.
	Key func() (string, error)
}

// Built is what follows from a task.
type Built struct {
	// Engine still lacks what belongs to the place where it runs: the journal,
	// the events, the reporter, the signals, the clock.
	Engine engine.Config
	// Files know which files the session changed.
	Files *files.Toolset
}

// Build makes what follows from the task. What cannot work is a *task.EndError
// with the reason Misconfigured.
func (r *Registry) Build(p Parts) (Built, error) {
	m, err := r.model(p)
	if err != nil {
		return Built{}, err
	}
	toolset := files.New(p.Workspace, task.Workspace)
	tools, err := r.toolbox(p.Snapshot.Agent, toolset)
	if err != nil {
		return Built{}, err
	}
	return Built{
		Engine: engine.Config{
			Task: p.Task, Agent: p.Snapshot.Agent, Model: m, Tools: tools,
			Recall: toolset.Replay,
		},
		Files: toolset,
	}, nil
}

// model makes the Agent's Model: priced by the try, and tried again.
func (r *Registry) model(p Parts) (engine.Model, error) {
	spec := p.Snapshot.Models[0]
	driver, ok := r.models[spec.Provider]
	if !ok {
		return engine.Model{}, misconfigured("Model %s: this runner has no provider %q; it has %s", spec.Name, spec.Provider, names(r.models))
	}
	if p.Task.Limits.CostMicroUSD > 0 && spec.Prices == nil {
		return engine.Model{}, misconfigured("Model %s has no prices, so limits.cost cannot be held; set its prices", spec.Name)
	}
	driven, err := driver(ModelSpec{Model: spec, Key: p.Key})
	if err != nil {
		return engine.Model{}, misconfigured("Model %s: %w", spec.Name, err)
	}
	m := engine.Model{
		Model:  retry.New(price.New(driven, spec.Prices), retry.Options{}),
		Name:   spec.Name,
		Params: spec.Params,
	}
	if m.Params.MaxOutputTokens == 0 {
		m.Params.MaxOutputTokens = spec.MaxOutputTokens
	}
	if spec.Secret != "" {
		m.Credential = fmt.Sprintf("the key %s of the Secret %s", spec.Key, spec.Secret)
	}
	if spec.Prices != nil {
		m.Price = func(u step.Usage) step.Usage { return price.Of(u, *spec.Prices) }
	}
	return m, nil
}

// toolbox gathers the Agent's tools and those that every Agent has.
func (r *Registry) toolbox(agent task.Agent, toolset *files.Toolset) (engine.Toolbox, error) {
	tools, err := ending(agent)
	if err != nil {
		return nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	for _, entry := range agent.Tools {
		factory, ok := r.tools[entry.Builtin]
		if !ok {
			return nil, misconfigured("Agent %s: this runner has no builtin %q; it has %s", agent.Name, entry.Builtin, names(r.tools))
		}
		made, err := factory(ToolSpec{Agent: agent, Files: toolset})
		if err != nil {
			return nil, misconfigured("Agent %s: making the tools of %s: %w", agent.Name, entry.Builtin, err)
		}
		tools = append(tools, within(made, time.Duration(entry.TimeoutSeconds)*time.Second)...)
	}
	box, err := tool.NewRegistry(tools...)
	if err != nil {
		return nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	return box, nil
}

// A bounded tool has the timeout that the Agent gave it.
type bounded struct {
	tool.Tool
	timeout time.Duration
}

// Spec implements [tool.Tool].
func (b bounded) Spec() tool.Spec {
	s := b.Tool.Spec()
	s.Timeout = b.timeout
	return s
}

// within bounds tools; 0 leaves each its own bound.
func within(tools []tool.Tool, timeout time.Duration) []tool.Tool {
	if timeout == 0 {
		return tools
	}
	all := make([]tool.Tool, len(tools))
	for i, t := range tools {
		all[i] = bounded{Tool: t, timeout: timeout}
	}
	return all
}

func misconfigured(format string, args ...any) error {
	return task.End(task.ReasonMisconfigured, format, args...)
}
