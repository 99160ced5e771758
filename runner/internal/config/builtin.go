package config

import (
	"errors"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/control"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/delegate"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/recall"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/web"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A builtinSpec is what built-in tools and agents as tools are made from.
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

// one returns a tool as the tools of an entry.
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
	return []tool.Tool{delegate.Task(listed)}, nil
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
