// Package config builds a session from a task. It is the only package of the runner that imports all others. Read
// checks what the operator sent, a Registry holds the drivers of models and the tools that an Agent may name, and Build
// makes what the engine needs. Errors in settings are found here, before anything starts, and are described in terms of
// the user's objects.
package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/attachment"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Parts are the task and everything that Build needs to build it.
type Parts struct {
	Task     task.Task
	Snapshot task.Snapshot
	// Place is where the agent works, for messages.
	Place place.Place
	// Workspace has the files below /workspace.
	Workspace backend.Driver
	// Skills has a folder for each skill of the agents; nil: there are none.
	Skills backend.Driver
	// State is the directory of the journal and of the session's files outside of the workspace; empty: those files are
	// kept in memory.
	State string
	// Key returns a function that reads the current value of a key of a Secret.
	Key func(task.SecretKey) func() (string, error)
	// Missing describes what the workspace does not have of its repository.
	Missing []string
	// Sandbox runs commands; nil: there is none. Server returns the sandbox of a Toolset's MCP server that has its own
	// container; nil: there are none.
	Sandbox sandbox.Sandbox
	// Network finds out whether NetworkPolicies are enforced for this pod; nil: the pod has none.
	Network func(context.Context) networkcheck.Finding
	// CommandDir is the directory where commands find the workspace; empty: /workspace.
	CommandDir string
	Server     func(toolset string) sandbox.Sandbox
	// Learn is called with each secret when it is first read, Log with messages for users. Both may be nil.
	Learn func(redact.Secret)
	Log   func(text string)
	// Redact removes secrets from the requests to hooks; nil: there are none.
	Redact func(string) string
	Now    func() time.Time
}

// key returns the function that reads a key; nil: no key is named.
func (p Parts) key(k task.SecretKey) registry.KeyFunc {
	if k.Secret == "" {
		return nil
	}
	return p.Key(k)
}

// Built is the result of Build.
type Built struct {
	// Engine lacks what depends on where it runs: journal, events, reporter, signals and clock.
	Engine engine.Config
	// Files knows which files the Run changed.
	Files *files.Toolset
	// Sessions is the store to which sessions are copied.
	Sessions session.Store
	// SandboxTools are the tools that agents share. They must be closed, also after an error of Build.
	SandboxTools *SandboxTools

	opened *opened
}

// Close closes what the factories of a custom runner made, in reverse order, until ctx ends. It must be called also
// after an error of Build.
func (b Built) Close(ctx context.Context) error {
	if b.opened == nil {
		return nil
	}
	return b.opened.close(ctx)
}

// Build builds a task. Settings that cannot work are a *task.EndError with the reason Misconfigured, for all agents of
// the Run, before one is called.
func (r *Registry) Build(ctx context.Context, p Parts) (Built, error) {
	b, err := r.builder(ctx, p)
	failed := Built{SandboxTools: b.sandboxTools, opened: b.opened}
	if err != nil {
		return failed, err
	}
	in, err := inputOf(p.Task, p.Snapshot.Agent)
	if err != nil {
		return failed, err
	}
	if err := b.validateAgents(ctx); err != nil {
		return failed, err
	}
	own, err := b.customOf(ctx, p.Snapshot.Agent)
	if err != nil {
		return failed, err
	}
	root, err := b.actor(p.Snapshot.Agent, sessionOptions{files: b.files, models: modelsOf(p.Snapshot, p.Snapshot.Agent), custom: own, values: in.values})
	if err != nil {
		return failed, err
	}
	t := p.Task
	t.Prompt = in.prompt
	return Built{
		Engine: engine.Config{
			Task: t, Actor: *root, Actors: func(d engine.Delegation) (*engine.Actor, error) { return b.child(ctx, d) },
			LoadFile: b.loadFile, Attach: b.attachments.Add, Files: b.attachments,
			BuildPrompt: b.promptBuilder(), Offload: b.offload, Digest: digest.Call,
			Durable: t.Durable, Busy: b.sandboxTools.Busy, Lost: b.sandboxTools.Lost(), LostFiles: b.places.lost, Captured: b.sandboxTools.Captured,
			Unavailable: b.sandboxTools.Unavailable(),
		},
		Files:        b.files,
		Sessions:     b.sessions,
		SandboxTools: b.sandboxTools,
		opened:       b.opened,
	}, nil
}

// attachmentsDir returns the directory for the images of the Run; empty: they are kept in memory.
func (p Parts) attachmentsDir() string {
	if p.State == "" {
		return ""
	}
	return filepath.Join(p.State, "attachments")
}

// openStore opens the store to which sessions are copied; nil if the runner has none.
func (r *Registry) openStore(ctx context.Context, p Parts) (session.Store, error) {
	if r.store == nil {
		return nil, nil //nolint:nilnil // a runner need not have a store
	}
	return call(ctx, r.store, registry.StoreSpec{Run: p.Task.Run, Agent: p.Snapshot.Agent, User: p.Task.User})
}

// A builder makes the agents of one Run.
type builder struct {
	Parts
	registry     *Registry
	agents       map[string]task.Agent
	models       *models
	places       places
	skills       skills
	files        *files.Toolset // of the Run's own session
	sessions     session.Store
	sandboxTools *SandboxTools
	offload      func(ctx context.Context, call step.Call, text string) string
	opened       *opened
	attachments  *attachment.Store

	mu    sync.Mutex
	spare map[string]*custom // by agent, from its validation
}

func (r *Registry) builder(ctx context.Context, p Parts) (*builder, error) {
	b := &builder{Parts: p, registry: r, agents: map[string]task.Agent{p.Snapshot.Agent.Name: p.Snapshot.Agent}, opened: &opened{}, spare: map[string]*custom{}}
	for _, a := range p.Snapshot.Agents {
		b.agents[a.Name] = a
	}
	var err error
	if b.models, err = r.makeModels(ctx, p, b.opened); err != nil {
		return b, err
	}
	if b.places, err = r.placesOf(ctx, p, b.opened); err != nil {
		return b, err
	}
	if b.skills, err = readSkills(ctx, p); err != nil {
		return b, err
	}
	if b.attachments, err = attachment.Open(p.attachmentsDir()); err != nil {
		return b, err
	}
	if b.sessions, err = r.openStore(ctx, p); err != nil {
		return b, misconfigured("Opening the store of sessions: %w", err)
	}
	b.opened.add("the session store", b.sessions)
	b.files = files.Over(b.places.files, files.View{Root: "/", Home: task.Workspace, Places: b.places.paths})
	b.offload = b.offloader()
	b.sandboxTools, err = b.openSandboxTools(ctx)
	return b, err
}

// validateAgents makes every agent once, so that errors are known before a model is asked. The first session of an
// agent uses what factories of a custom runner made here.
func (b *builder) validateAgents(ctx context.Context) error {
	for _, a := range b.agents {
		made, err := b.makeCustom(ctx, a, b.opened)
		if err != nil {
			return err
		}
		if _, err := b.actor(a, sessionOptions{files: b.files.ForSession(), models: modelsOf(b.Snapshot, a), custom: made, validateOnly: true}); err != nil {
			return err
		}
		b.spare[a.Name] = made
	}
	return nil
}

// child makes the agent of a session that a call opens. If an agent calls itself, by the tool Task, that session may
// have another Model.
func (b *builder) child(ctx context.Context, d engine.Delegation) (*engine.Actor, error) {
	agent, ok := b.agents[d.Agent]
	if !ok {
		return nil, misconfigured("Agent %q is not among those of the Run", d.Agent)
	}
	names, fixed := modelsOf(b.Snapshot, agent), false
	if route := agent.Routes[task.RouteSubagent]; d.Own && len(route) > 0 {
		names, fixed = route, true
	}
	made, err := b.customOf(ctx, agent)
	if err != nil {
		return nil, err
	}
	actor, err := b.actor(agent, sessionOptions{files: b.files.ForSession(), models: names, fixed: fixed, custom: made, values: valuesOf(d.Delegation)})
	if err != nil {
		b.closeSession(made.opened)
		return nil, err
	}
	actor.Close = func() { b.closeSession(made.opened) }
	return actor, nil
}

// valuesOf returns the values that a delegation inserts into the instructions of its agent.
func valuesOf(d tool.Delegation) json.RawMessage {
	if len(d.Input) > 0 {
		return d.Input
	}
	values, _ := json.Marshal(map[string]string{"prompt": d.Prompt}) // a string: cannot fail
	return values
}

// misconfigured returns an error that only a change of the user's objects removes.
func misconfigured(format string, args ...any) error {
	return task.End(task.ReasonMisconfigured, format, args...)
}

// opened has what the factories of a custom runner made and what must be closed when the
// attempt, or one session of it, ends.
type opened struct {
	parent *opened // of a session: what it has is closed with the attempt

	mu  sync.Mutex
	all []resource
}

// A resource is closed once. Its field what names it in messages.
type resource struct {
	what  string
	of    any
	close func() error
}

// add adds a value of a factory if it is an [io.Closer]. A value that several factories returned is added once.
func (o *opened) add(what string, made any) {
	c, ok := made.(io.Closer)
	if !ok {
		return
	}
	r := resource{what: what, close: c.Close}
	if reflect.ValueOf(made).Comparable() {
		if o.has(made) {
			return
		}
		r.of = made
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, r)
}

// has reports whether a value was added here or to the parent.
func (o *opened) has(made any) bool {
	if o.parent != nil && o.parent.has(made) {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.all, func(r resource) bool { return r.of == made })
}

// addTools adds the closers of tools.
func (o *opened) addTools(tools []tool.Tool) {
	for _, t := range tools {
		o.add("the tool "+t.Name, t.Closer)
	}
}

// addFunc adds a function that closes something; nil adds nothing.
func (o *opened) addFunc(what string, f func() error) {
	if f == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, resource{what: what, close: f})
}

// close closes everything, the last added first, until ctx ends.
func (o *opened) close(ctx context.Context) error {
	o.mu.Lock()
	all := o.all
	o.all = nil
	o.mu.Unlock()
	var errs []error
	for i, r := range slices.Backward(all) {
		closed := make(chan error, 1)
		go func() { closed <- r.closeSafely() }()
		select {
		case err := <-closed:
			if err != nil {
				errs = append(errs, fmt.Errorf("closing %s: %w", r.what, err))
			}
		case <-ctx.Done():
			return errors.Join(append(errs, fmt.Errorf("closing %s took too long; %d more are not closed", r.what, i))...)
		}
	}
	return errors.Join(errs...)
}

// closeSafely closes the resource. A panic becomes an error.
func (r resource) closeSafely() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.close()
}
