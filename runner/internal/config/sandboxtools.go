package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/telemetry"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/mcp"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// SandboxTools are shared by the agents of a Run: the sandbox with its shells and interpreters, and the MCP servers of
// their Toolsets. A part that no agent uses is nil.
type SandboxTools struct {
	// Sandbox describes the sandbox; nil: there is none.
	Sandbox *sandbox.Description

	state   string
	shells  *shell.Shells
	pythons *python.Interpreters
	mu      sync.Mutex
	servers map[string]*mcp.Server
	sets    map[string]task.Toolset
}

// openSandboxTools starts the shells, interpreters and MCP servers that the agents of a Run
// use, and waits until they are ready.
func (b *builder) openSandboxTools(ctx context.Context) (*SandboxTools, error) {
	h := &SandboxTools{servers: map[string]*mcp.Server{}, sets: map[string]task.Toolset{}}
	if b.State != "" {
		h.state = journal.CommandsDir(b.State)
	}
	if err := b.enter(ctx, h); err != nil {
		return h, err
	}
	return h, b.connect(ctx, h)
}

// enter makes the tools that run in the sandbox, if there are any.
func (b *builder) enter(ctx context.Context, h *SandboxTools) error {
	want := b.Snapshot.Sandbox
	switch {
	case want == nil:
		return nil
	case b.Sandbox == nil:
		return misconfigured("There is no sandbox here, and some tool needs one")
	}
	is, err := b.Sandbox.Describe(ctx)
	if err != nil {
		return task.End(task.ReasonToolUnavailable, "The sandbox, of the image %s: %w", want.Image, err)
	}
	h.Sandbox = &is
	if want.Required {
		if err := b.requireConfinement(ctx, &h.Sandbox.Confinement); err != nil {
			return err
		}
	}
	box := processLimiter{b.Sandbox, want.Processes}
	if err := b.enterShells(box, h); err != nil {
		return err
	}
	return b.enterPython(box, h)
}

func (b *builder) enterShells(box sandbox.Sandbox, h *SandboxTools) error {
	if !b.uses(task.BuiltinShell) {
		return nil
	}
	if h.Sandbox.Shell == "" {
		return misconfigured("The image %s of the sandbox has no shell, which the tool Shell needs: name an image with bash or sh in sandbox.image", b.Snapshot.Sandbox.Image)
	}
	var err error
	if h.shells, err = shell.New(box, b.programOptions(h, h.Sandbox.Shell)); err != nil {
		return fmt.Errorf("making the shells: %w", err)
	}
	return nil
}

func (b *builder) enterPython(box sandbox.Sandbox, h *SandboxTools) error {
	if !b.uses(task.BuiltinPython) {
		return nil
	}
	if h.Sandbox.Python == "" {
		return misconfigured("The image %s of the sandbox has no python3, which the tool Python needs: name another image in sandbox.image, for example python:3", b.Snapshot.Sandbox.Image)
	}
	var err error
	if h.pythons, err = python.New(box, b.programOptions(h, h.Sandbox.Python)); err != nil {
		return fmt.Errorf("making the interpreters: %w", err)
	}
	return nil
}

// programOptions returns the options of a tool that runs a program of the image.
func (b *builder) programOptions(h *SandboxTools, program string) output.Options {
	return output.Options{Program: program, Workspace: b.CommandDir, State: h.state, Overflow: b.overflow}
}

// A processLimiter is a sandbox that bounds how many processes a command may have at once.
type processLimiter struct {
	sandbox.Sandbox
	processes int
}

// Start implements [sandbox.Sandbox].
func (p processLimiter) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	if cmd.Limits.Processes == 0 {
		cmd.Limits.Processes = p.processes
	}
	return p.Sandbox.Start(ctx, cmd)
}

// maxOverflow is how much of a truncated output is stored, in bytes: as much as a runner with the default 256 MiB can
// handle.
const maxOverflow = 8 << 20

// overflow stores a truncated output in a file for the model. It takes several times the size of the output in memory,
// within the limit for file contents.
func (b *builder) overflow(ctx context.Context, name string, text io.Reader) (string, error) {
	release, err := memlimit.Contents.Acquire(ctx, 4*maxOverflow)
	if err != nil {
		return "", err
	}
	defer release()
	data, err := io.ReadAll(io.LimitReader(text, maxOverflow))
	if err != nil {
		return "", fmt.Errorf("reading the output: %w", err)
	}
	whole := strings.ReplaceAll(strings.ToValidUTF8(string(data), "\uFFFD"), "\x00", "\uFFFD")
	if b.Redact != nil {
		whole = b.Redact(whole)
	}
	file := path.Base(name) + ".out" // its result may be put aside under its own name
	if _, err := b.places.results.Write(ctx, file, []byte(whole), backend.Any); err != nil {
		return "", fmt.Errorf("keeping the output: %w", err)
	}
	return path.Join(task.Results, file), nil
}

// uses reports whether any agent of the Run lists a builtin.
func (b *builder) uses(builtin string) bool {
	for _, a := range b.agents {
		if slices.ContainsFunc(a.Tools, func(t task.Tool) bool { return t.Builtin == builtin }) {
			return true
		}
	}
	return false
}

// connect connects to all servers in parallel.
func (b *builder) connect(ctx context.Context, h *SandboxTools) error {
	var all sync.WaitGroup
	failed := make([]error, len(b.Snapshot.Toolsets))
	for i, t := range b.Snapshot.Toolsets {
		h.sets[t.Name] = t
		if t.Requests != nil {
			continue
		}
		all.Go(func() { failed[i] = b.connectOne(ctx, h, t) })
	}
	all.Wait()
	return errors.Join(failed...)
}

func (b *builder) connectOne(ctx context.Context, h *SandboxTools, t task.Toolset) error {
	if err := mcp.Check(t); err != nil {
		return misconfigured("Toolset %s: spec.%w", t.Name, err)
	}
	o := mcp.Options{Toolset: t, Key: b.readKey, Learn: b.Learn, Traceparent: telemetry.Traceparent(b.Task), Now: b.Now}
	if b.Log != nil {
		o.Log = func(text string) { b.Log("Toolset " + t.Name + ": " + text) }
	}
	if t.Stdio != nil {
		o.Sandbox = b.Sandbox
		if !t.Stdio.InSandbox && b.Server != nil {
			o.Sandbox = b.Server(t.Name)
		}
		if o.Sandbox == nil {
			return misconfigured("There is no container for the server of Toolset %s here", t.Name)
		}
	}
	s, err := mcp.Connect(ctx, o)
	if err != nil {
		return endOfToolset(t.Name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers[t.Name] = s
	return nil
}

// endOfToolset returns the error that ends a Run if it cannot connect to a required Toolset. A URL that leads to a
// forbidden address, by a redirect or by DNS, is not tried again.
func endOfToolset(name string, err error) error {
	if refused, is := errors.AsType[*sandbox.RefusedError](err); is && refused.Reason != sandbox.Busy {
		return misconfigured("Toolset %s: %w", name, err)
	}
	if _, is := errors.AsType[*address.RefusedError](err); is {
		return misconfigured("Toolset %s: %w. Correct spec.http.url of the Toolset, or where its host redirects and resolves to", name, err)
	}
	return task.End(task.ReasonToolUnavailable, "Toolset %s: %w", name, err)
}

// readKey reads the current value of a key of a Secret.
func (p Parts) readKey(k task.SecretKey) (string, error) { return p.Key(k)() }

// toolset makes the tools of a Toolset for an agent.
func (b *builder) toolset(entry task.Tool) ([]tool.Tool, error) {
	set, known := b.sandboxTools.sets[entry.Toolset]
	if !known {
		return nil, misconfigured("Toolset %q is not among those of the Run", entry.Toolset)
	}
	if set.Requests == nil {
		return b.sandboxTools.servers[entry.Toolset].Tools(entry.Allow, entry.Deny)
	}
	made, err := b.requests(set)
	if err != nil {
		return nil, err
	}
	return choose("Toolset "+set.Name, set.Name+"__", made, entry)
}

// choose returns the tools of an entry after its allow and deny. The text what names the entry in messages. The tools
// are named with a prefix, which allow and deny omit.
func choose(what, prefix string, made []tool.Tool, entry task.Tool) ([]tool.Tool, error) {
	name := func(t tool.Tool) string { return strings.TrimPrefix(t.Name, prefix) }
	for _, wanted := range entry.Allow {
		if !slices.ContainsFunc(made, func(t tool.Tool) bool { return name(t) == wanted }) {
			return nil, fmt.Errorf("%s has no tool %s, which allow names; it has %s", what, wanted, namesOf(made))
		}
	}
	return slices.DeleteFunc(slices.Clone(made), func(t tool.Tool) bool {
		return len(entry.Allow) > 0 && !slices.Contains(entry.Allow, name(t)) || slices.Contains(entry.Deny, name(t))
	}), nil
}

func namesOf(tools []tool.Tool) string {
	var all []string
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return strings.Join(all, ", ")
}

// Lost describes what an earlier runner had running, for the model.
func (st *SandboxTools) Lost() []string {
	var out []string
	if st.shells != nil {
		out = append(out, st.shells.Lost()...)
	}
	if st.pythons != nil {
		out = append(out, st.pythons.Lost()...)
	}
	return out
}

// Captured returns the output of a call until its runner ended.
func (st *SandboxTools) Captured(call string) string {
	if st.state == "" {
		return ""
	}
	return output.Captured(st.state, call)
}

// Busy reports whether a command still runs in the background.
func (st *SandboxTools) Busy() bool { return st.shells != nil && st.shells.Running() > 0 }

// Close ends everything that still runs.
func (st *SandboxTools) Close() {
	if st == nil {
		return
	}
	for _, s := range st.servers {
		s.Close()
	}
	if st.pythons != nil {
		st.pythons.Close()
	}
	if st.shells != nil {
		st.shells.Close()
	}
}
