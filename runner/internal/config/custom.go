package config

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A custom has what the factories of a custom runner made for one session.
type custom struct {
	layers []middleware.Layer
	tools  map[int][]tool.Tool // by index of the entry in the Agent's tools
	// opened is what of it is closed with the session.
	opened *opened
}

// makeCustom calls the factories of the layers and of the custom tools of an agent. What
// they made is closed with opened, also if an error is returned.
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

// customOf returns what the factories made when the agent was validated, for its first
// session, and calls them for each later one. The first is closed at the end of the
// attempt: a factory that returns the same value each time has it in use until then. What
// is made later is closed with its session, so that an attempt with many sessions does not
// hold all of it.
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

// closeFor bounds the closing of what factories made for one session.
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
