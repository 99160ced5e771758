package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/hook"
	"github.com/deckhand-dev/deckhand/runner/internal/repair"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// sessionOptions configure an agent for one session.
type sessionOptions struct {
	files  *files.Toolset
	models []string
	// fixed reports that models answer all turns, without the agent's routes for turns.
	fixed bool
	// custom has what the factories of a custom runner made for the session.
	custom *custom
	// values are inserted into the instructions.
	values json.RawMessage
	// validateOnly builds the agent only to find errors, without values.
	validateOnly bool
}

// actor makes an agent for one session.
func (b *builder) actor(agent task.Agent, c sessionOptions) (*engine.Actor, error) {
	if !c.validateOnly {
		var err error
		if agent, err = instructed(agent, c.values); err != nil {
			return nil, err
		}
	}
	a := &engine.Actor{Agent: agent, Place: b.Place, Recall: c.files.Replay}
	var err error
	if a.Model, err = b.models.route(agent, c.models); err != nil {
		return nil, err
	}
	if a.Routes, err = b.turnRoutes(agent, c); err != nil {
		return nil, err
	}
	if names := agent.Routes[task.RouteSummarize]; len(names) > 0 {
		m, err := b.models.route(agent, names)
		if err != nil {
			return nil, err
		}
		a.Summarizer = &m
	}
	box, names, err := b.toolbox(agent, c)
	if err != nil {
		return nil, err
	}
	a.Tools = box
	if a.Policy, err = b.policyOf(agent, names); err != nil {
		return nil, err
	}
	layers, err := b.bound(agent, box, c.custom.layers)
	if err != nil {
		return nil, err
	}
	if a.Stack, err = middleware.Build(layers...); err != nil {
		return nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	a.Agent.Instructions = paragraphs(agent.Instructions, b.places.described(agent), b.skills.described(agent), b.missing(agent), strings.Join(b.sandboxTools.Notes(), "\n"),
		a.Stack.Instructions(), b.sandboxTools.instructions(agent))
	return a, nil
}

// paragraphs joins the paragraphs that are not empty.
func paragraphs(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(p string) bool { return p == "" }), "\n\n")
}

// validateHooks returns an error for a hook that names a tool that the agent does not have: it would never be called.
func validateHooks(agent task.Agent, box *toolbox.Toolbox) error {
	for _, h := range agent.Hooks {
		for _, name := range h.Tools {
			if _, ok := box.Find(name); !ok {
				return misconfigured("Agent %s: the hook %s is for the tool %s, %s", agent.Name, h.Name, name, insteadOf(box, name))
			}
		}
	}
	return nil
}

// insteadOf returns what to write instead of a tool that the agent does not have.
func insteadOf(box *toolbox.Toolbox, name string) string {
	if is, was := task.Renamed(name); was {
		if _, ok := box.Find(is); ok {
			return fmt.Sprintf("which is called %s: write %s", is, is)
		}
	}
	return "which the agent does not have; the model calls its tools " + called(box)
}

// called returns the names of the tools, for users.
func called(box *toolbox.Toolbox) string {
	var all []string
	for _, s := range box.Specs() {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

// bound adds the layers that need the agent's tools: its hooks, and the layer that repairs arguments.
func (b *builder) bound(agent task.Agent, box *toolbox.Toolbox, layers []middleware.Layer) ([]middleware.Layer, error) {
	layers = slices.Clone(layers)
	if err := validateHooks(agent, box); err != nil {
		return nil, err
	}
	if len(agent.Hooks) > 0 {
		layers = append(layers, hook.Layer(agent.Hooks, hook.Options{
			Run: b.Task.Run, User: b.Task.User, Key: b.Key, Redact: b.Redact,
			Check: func(name string, args json.RawMessage) error {
				if wrong := box.Check(name, args); wrong != nil {
					return errors.New(wrong.Message)
				}
				return nil
			},
		}))
	}
	if names := agent.Routes[task.RouteRepair]; len(names) > 0 {
		m, err := b.models.route(agent, names)
		if err != nil {
			return nil, err
		}
		layers = append(layers, repair.Layer(m, box))
	}
	return layers, nil
}

// An input is the input of an agent.
type input struct {
	// prompt is its first user message.
	prompt string
	// values are inserted into the instructions.
	values json.RawMessage
}

// inputOf returns the input of a Run, with the defaults of its agent. If the Run has no prompt, the values are the
// prompt, unless it continues another Run, which was given values before.
func inputOf(t task.Task, agent task.Agent) (input, error) {
	in := input{prompt: t.Prompt, values: t.Input}
	if len(agent.InputSchema) == 0 {
		in.values = withPrompt(t)
	} else {
		if len(in.values) == 0 {
			in.values = json.RawMessage("{}")
		}
		in.values = schema.Fill(agent.InputSchema, in.values)
		if err := schema.Validate(agent.InputSchema, in.values); err != nil {
			return in, misconfigured("The input of the Run does not fit the input of Agent %s: %w", agent.Name, err)
		}
	}
	if in.prompt == "" && t.Continue == nil {
		in.prompt = promptIn(in.values)
		return in, nil
	}
	if in.prompt == "" {
		return in, nil
	}
	bound, err := inputtext.Bind(t.Prompt, agent.InputSchema, in.values)
	if err != nil {
		return in, misconfigured("The prompt of the Run: %w", err)
	}
	in.prompt = bound
	return in, nil
}

// withPrompt returns the values of an agent that has no schema for them: the given values and a prompt, by default the
// prompt of the Run.
func withPrompt(t task.Task) json.RawMessage {
	values := map[string]json.RawMessage{}
	if len(t.Input) > 0 && (json.Unmarshal(t.Input, &values) != nil || values == nil) {
		return t.Input // no object: what is bound says so
	}
	if _, said := values["prompt"]; !said {
		values["prompt"], _ = json.Marshal(t.Prompt) // a string: cannot fail
	}
	all, _ := json.Marshal(values) // JSON already: cannot fail
	return all
}

// promptIn returns the prompt in values; if there is none, all values.
func promptIn(values json.RawMessage) string {
	var named struct {
		Prompt string `json:"prompt"`
	}
	if json.Unmarshal(values, &named) == nil && strings.TrimSpace(named.Prompt) != "" {
		return named.Prompt
	}
	return string(values)
}

// instructed returns an agent with the values of its input in its instructions.
func instructed(agent task.Agent, values json.RawMessage) (task.Agent, error) {
	bound, err := inputtext.Bind(agent.Instructions, agent.InputSchema, values)
	if err != nil {
		return agent, misconfigured("The instructions of Agent %s: %w", agent.Name, err)
	}
	agent.Instructions = bound
	return agent, nil
}
