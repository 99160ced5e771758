package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/control"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/delegate"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/recall"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/web"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Registry has the factories of everything that a task may name: those of built-in providers and tools, and those of
// a custom runner.
type Registry struct {
	drivers   map[string]registry.ModelFactory
	customs   map[string]registry.ToolFactory
	backends  map[string]registry.BackendFactory
	layers    []registry.LayerFactory
	listeners []registry.Listener
	store     registry.StoreFactory
}

// NewRegistry returns a Registry with only the built-in providers and tools.
func NewRegistry() *Registry {
	return &Registry{
		drivers:  map[string]registry.ModelFactory{},
		customs:  map[string]registry.ToolFactory{},
		backends: map[string]registry.BackendFactory{},
	}
}

// AddModel adds a driver for Models of the provider Custom.
func (r *Registry) AddModel(driver string, f registry.ModelFactory) error {
	return add(r.drivers, "WithModel", driver, f)
}

// AddTool adds a custom tool.
func (r *Registry) AddTool(name string, f registry.ToolFactory) error {
	return add(r.customs, "WithTool", name, f)
}

// AddBackend adds files below a path, or replaces those of /workspace, /tmp or /memories.
func (r *Registry) AddBackend(at string, f registry.BackendFactory) error {
	if at != "" {
		at = path.Clean(at)
	}
	return add(r.backends, "WithBackend", at, f)
}

// AddLayer adds a layer around the calls of every agent.
func (r *Registry) AddLayer(f registry.LayerFactory) error {
	if f == nil {
		return errors.New("runner.WithLayer: the factory is nil")
	}
	r.layers = append(r.layers, f)
	return nil
}

// AddStore sets the store to which sessions are copied.
func (r *Registry) AddStore(f registry.StoreFactory) error {
	switch {
	case f == nil:
		return errors.New("runner.WithStore: the factory is nil")
	case r.store != nil:
		return errors.New("runner.WithStore is used twice; a runner has one store")
	}
	r.store = f
	return nil
}

// AddListener adds a listener to the events of the Run.
func (r *Registry) AddListener(f registry.Listener) error {
	if f == nil {
		return errors.New("runner.WithListener: the listener is nil")
	}
	r.listeners = append(r.listeners, f)
	return nil
}

// Models returns the names of the drivers of models, sorted.
func (r *Registry) Models() []string { return slices.Sorted(maps.Keys(r.drivers)) }

// Tools returns the names of the custom tools, sorted.
func (r *Registry) Tools() []string { return slices.Sorted(maps.Keys(r.customs)) }

// Listeners returns the listeners in the order in which they were added.
func (r *Registry) Listeners() []registry.Listener { return r.listeners }

// add adds a factory under a name that is still free. option is the option of package runner that adds it.
func add[F any](all map[string]F, option, name string, f F) error {
	if name == "" {
		return fmt.Errorf("runner.%s: the name is empty", option)
	}
	if reflect.ValueOf(f).IsNil() {
		return fmt.Errorf("runner.%s(%q): the factory is nil", option, name)
	}
	if _, taken := all[name]; taken {
		return fmt.Errorf("runner.%s(%q) is used twice; rename one", option, name)
	}
	all[name] = f
	return nil
}

// names returns the keys of a map for a message.
func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// A custom has what the factories of a custom runner made for one session.
type custom struct {
	layers []middleware.Layer
	tools  map[int][]tool.Tool // by index of the entry in the Agent's tools
	// opened has the values that are closed with the session.
	opened *opened
}

// makeCustom calls the factories of the layers and of the custom tools of an agent. opened closes what they made, also
// after an error.
func (b *builder) makeCustom(ctx context.Context, agent task.Agent, opened *opened) (*custom, error) {
	made := &custom{tools: map[int][]tool.Tool{}, opened: opened}
	for _, factory := range b.registry.layers {
		layer, err := call(ctx, factory, registry.LayerSpec{Agent: agent, Run: b.Task.Run, User: b.Task.User})
		if err != nil {
			return nil, misconfigured("Agent %s: making a layer: %w", agent.Name, err)
		}
		opened.addFunc("the layer "+layer.Name, layer.Close)
		opened.addTools(layer.Tools)
		made.layers = append(made.layers, layer)
	}
	for i, entry := range agent.Tools {
		if entry.Custom == "" {
			continue
		}
		var err error
		if made.tools[i], err = b.makeTools(ctx, agent, entry, opened); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// makeTools calls the factory of one custom entry.
func (b *builder) makeTools(ctx context.Context, agent task.Agent, entry task.Tool, opened *opened) ([]tool.Tool, error) {
	factory, ok := b.registry.customs[entry.Custom]
	if !ok {
		return nil, misconfigured("Agent %s: this runner has no custom tool %q; it has %s; set podTemplate.runnerImage to a runner that was built with it",
			agent.Name, entry.Custom, cmp.Or(names(b.registry.customs), "none"))
	}
	tools, err := call(ctx, factory, b.toolSpec(agent, entry))
	if err != nil {
		return nil, misconfigured("Agent %s: making the tools of %s: %w", agent.Name, entry.Custom, err)
	}
	opened.addTools(tools)
	for _, t := range tools {
		if t.Call == nil {
			return nil, misconfigured("Agent %s: making the tools of %s: the tool %q has no Call", agent.Name, entry.Custom, t.Name)
		}
	}
	return tools, nil
}

// call calls a factory. A panic in it is an error.
func call[Spec, Made any](ctx context.Context, factory func(context.Context, Spec) (Made, error), spec Spec) (made Made, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the factory panicked: %v", p)
		}
	}()
	return factory(ctx, spec)
}

func (b *builder) toolSpec(agent task.Agent, entry task.Tool) registry.ToolSpec {
	return registry.ToolSpec{Entry: entry, Agent: agent, Run: b.Task.Run, User: b.Task.User, Key: b.key(entry.SecretKey)}
}

// customOf returns what factories made for a session of an agent. The first session gets what validation made; that is
// closed at the end of the attempt, because a factory may return the same value again. Later sessions call the
// factories again and close the results with the session, so that an attempt with many sessions does not accumulate
// them.
func (b *builder) customOf(ctx context.Context, agent task.Agent) (*custom, error) {
	b.mu.Lock()
	spare := b.spare[agent.Name]
	delete(b.spare, agent.Name)
	b.mu.Unlock()
	if spare != nil {
		return spare, nil
	}
	opened := &opened{parent: b.opened}
	made, err := b.makeCustom(ctx, agent, opened)
	if err != nil {
		b.closeSession(opened)
		return nil, err
	}
	return made, nil
}

// closeFor bounds how long closing takes for one session.
const closeFor = 3 * time.Second

// closeSession closes what factories made for one session.
func (b *builder) closeSession(opened *opened) {
	if opened == b.opened {
		return // with the attempt
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	if err := opened.close(ctx); err != nil && b.Log != nil {
		b.Log("Closing the parts of a session failed: " + b.Redact(err.Error()))
	}
}

// A builtinSpec is the input of the factories of built-in tools and of agents as tools.
type builtinSpec struct {
	registry.ToolSpec
	// agents are the agents of the Run that this one may call, by name.
	agents   map[string]task.Agent
	files    *files.Toolset
	memories *backend.Backend
	sessions session.Store
	sandbox  *SandboxTools
	version  int // of the Snapshot, which chooses the names of tools
}

// A builtinFactory makes the tools of one entry of an Agent.
type builtinFactory func(builtinSpec) ([]tool.Tool, error)

// builtins are the built-in tools that an Agent may list. AGENTS.md says how to add one.
var builtins = map[string]builtinFactory{
	task.BuiltinFiles:       func(s builtinSpec) ([]tool.Tool, error) { return s.files.Tools(), nil },
	task.BuiltinThink:       func(builtinSpec) ([]tool.Tool, error) { return []tool.Tool{control.Think()}, nil },
	task.BuiltinAsk:         func(builtinSpec) ([]tool.Tool, error) { return []tool.Tool{control.Ask()}, nil },
	task.BuiltinTask:        makeTask,
	task.BuiltinHTTPRequest: func(s builtinSpec) ([]tool.Tool, error) { return one(web.HTTPRequest(webOptions(s))) },
	task.BuiltinBrowse:      func(s builtinSpec) ([]tool.Tool, error) { return one(web.Browse(webOptions(s))) },
	task.BuiltinWebSearch: func(s builtinSpec) ([]tool.Tool, error) {
		return one(web.Search(web.SearchOptions{Endpoint: s.Entry.Endpoint, Key: s.Key}))
	},
	task.BuiltinRecall: makeRecall,
	task.BuiltinShell:  makeShell,
	task.BuiltinPython: makePython,
}

// one returns a tool as a list.
func one(t tool.Tool, err error) ([]tool.Tool, error) { return []tool.Tool{t}, err }

func webOptions(s builtinSpec) web.Options {
	return web.Options{Hosts: s.Entry.Hosts, RunUID: s.Run.UID}
}

// makeTask makes the tool that opens a new session, of the agent itself or of an agent
// that it lists.
func makeTask(s builtinSpec) ([]tool.Tool, error) {
	var listed []task.Agent
	for _, entry := range s.Agent.Tools {
		if other, ok := s.agents[entry.Agent]; ok && entry.Mode != task.ModeRun {
			listed = append(listed, other)
		}
	}
	return []tool.Tool{delegate.Task(s.Agent, listed)}, nil
}

func makeShell(s builtinSpec) ([]tool.Tool, error) {
	if s.sandbox == nil || s.sandbox.shells == nil {
		return nil, errNoSandbox
	}
	return s.sandbox.shells.Tools(shell.Use{Name: task.ToolName(shell.Name, s.version), Timeout: time.Duration(s.Entry.TimeoutSeconds) * time.Second}), nil
}

func makePython(s builtinSpec) ([]tool.Tool, error) {
	if s.sandbox == nil || s.sandbox.pythons == nil {
		return nil, errNoSandbox
	}
	return []tool.Tool{s.sandbox.pythons.Tool(python.Use{Timeout: time.Duration(s.Entry.TimeoutSeconds) * time.Second})}, nil
}

var errNoSandbox = errors.New("there is no sandbox; the Agent needs one: sandbox: {image: debian:stable-slim}")

// makeRecall makes the tool that searches the agent's notes and, if there is a session
// store, its past sessions.
func makeRecall(s builtinSpec) ([]tool.Tool, error) {
	return []tool.Tool{recall.New(recall.Options{
		Files: s.memories, Dir: task.Memories,
		Sessions: s.sessions, Self: s.Run.UID,
		Query: session.Query{App: s.Run.Namespace, Agent: s.Agent.Name, User: s.User},
	})}, nil
}
