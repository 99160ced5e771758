package config

import (
	"context"
	"errors"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/control"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/delegate"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/recall"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/web"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// formatAnthropic is how a Model asks for the one of two APIs that its provider
// has.
const formatAnthropic = "Anthropic"

// builtin registers what the runner comes with.
func builtin(r *Registry) {
	r.models = map[string]ModelFactory{
		openai.ProviderOpenAI: openAI, openai.ProviderOpenAICompatible: openAI, openai.ProviderAzure: openAI,
		openai.ProviderOpenRouter: openAI, openai.ProviderOllama: openAI,
		openai.ProviderDeepSeek: either, openai.ProviderKimi: either,
		anthropic.ProviderAnthropic: messages, anthropic.ProviderAnthropicCompatible: messages,
	}
	r.builtins = map[string]ToolFactory{
		"Files":       func(s ToolSpec) ([]tool.Tool, error) { return s.Files.Tools(), nil },
		"Think":       func(ToolSpec) ([]tool.Tool, error) { return []tool.Tool{control.Think()}, nil },
		"Ask":         func(ToolSpec) ([]tool.Tool, error) { return []tool.Tool{control.Ask()}, nil },
		"Task":        subagents,
		"HTTPRequest": func(s ToolSpec) ([]tool.Tool, error) { return one(web.HTTPRequest(reach(s))) },
		"Browse":      func(s ToolSpec) ([]tool.Tool, error) { return one(web.Browse(reach(s))) },
		"WebSearch": func(s ToolSpec) ([]tool.Tool, error) {
			return one(web.Search(web.SearchOptions{Endpoint: s.Entry.Endpoint, Key: s.Key}))
		},
		"Recall":      remembered,
		builtinShell:  commands,
		builtinPython: code,
	}
}

// one is a tool as the tools of an entry.
func one(t tool.Tool, err error) ([]tool.Tool, error) { return []tool.Tool{t}, err }

// either speaks the one or the other API of a provider that has both.
func either(s ModelSpec) (model.Model, error) {
	if s.Format == formatAnthropic {
		return messages(s)
	}
	return openAI(s)
}

func openAI(s ModelSpec) (model.Model, error) {
	return openai.New(openai.Options{
		Provider: s.Provider, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key,
		Deployment: s.Deployment, APIVersion: s.APIVersion,
	})
}

func messages(s ModelSpec) (model.Model, error) {
	return anthropic.New(anthropic.Options{
		Provider: s.Provider, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key,
	})
}

func reach(s ToolSpec) web.Options {
	return web.Options{Hosts: s.Entry.Hosts, RunUID: s.Run.UID}
}

// subagents makes the tool that opens a fresh session, of the agent itself or of
// one that it lists.
func subagents(s ToolSpec) ([]tool.Tool, error) {
	var listed []task.Agent
	for _, entry := range s.Agent.Tools {
		if other, ok := s.Agents[entry.Agent]; ok && entry.Mode != task.ModeRun {
			listed = append(listed, other)
		}
	}
	return []tool.Tool{delegate.Task(listed)}, nil
}

func commands(s ToolSpec) ([]tool.Tool, error) {
	if s.SandboxTools == nil || s.SandboxTools.shells == nil {
		return nil, errNoSandbox
	}
	return s.SandboxTools.shells.Tools(shell.Use{Timeout: time.Duration(s.Entry.TimeoutSeconds) * time.Second}), nil
}

func code(s ToolSpec) ([]tool.Tool, error) {
	if s.SandboxTools == nil || s.SandboxTools.pythons == nil {
		return nil, errNoSandbox
	}
	return []tool.Tool{s.SandboxTools.pythons.Tool(python.Use{Timeout: time.Duration(s.Entry.TimeoutSeconds) * time.Second})}, nil
}

var errNoSandbox = errors.New("there is no sandbox; the Agent needs one: sandbox: {image: debian:stable-slim}")

// remembered searches what the agent keeps, and its past sessions where a store
// has them.
func remembered(s ToolSpec) ([]tool.Tool, error) {
	return []tool.Tool{recall.New(recall.Options{
		Files: s.Memories, Place: task.Memories,
		Sessions: s.Sessions, Self: s.Run.UID,
		Query: session.Query{App: s.Run.Namespace, Agent: s.Agent.Name, User: s.User},
	})}, nil
}

// openStore opens the store that sessions are copied to; nil where the runner
// was built with none.
func (r *Registry) openStore(ctx context.Context, run task.Run) (session.Store, error) {
	if r.store == nil {
		return nil, nil //nolint:nilnil // no store is a fact, not a fault
	}
	return r.store(ctx, run)
}
