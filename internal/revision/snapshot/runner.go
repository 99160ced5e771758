package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// defaultInput is the input of an Agent that has no schema for it.
var defaultInput = json.RawMessage(`{"type":"object","required":["prompt"],"properties":{"prompt":{"type":"string"}}}`)

// InputSchema returns the schema of what an Agent is given.
func InputSchema(spec v1alpha1.AgentSpec) json.RawMessage {
	if spec.Input == nil {
		return defaultInput
	}
	return inputs.Schema(spec.Input)
}

// forRunner returns the runner's snapshot of an Agent and all objects that it reaches.
func forRunner(agent *v1alpha1.Agent, others []*v1alpha1.Agent, o Objects) (task.Snapshot, error) {
	out := task.Snapshot{Version: task.SnapshotVersion}
	var err error
	if out.Agent, err = agentForRunner(agent, o); err != nil {
		return out, err
	}
	for _, other := range others {
		a, err := agentForRunner(other, o)
		if err != nil {
			return out, err
		}
		out.Agents = append(out.Agents, a)
	}
	for _, name := range modelNames(out) {
		m, err := modelForRunner(o.Models[name])
		if err != nil {
			return out, fmt.Errorf("Model %q: %w", name, err) //nolint:staticcheck // kinds are written so
		}
		out.Models = append(out.Models, forImage(agent, m))
	}
	for _, name := range toolsetNames(agent, others) {
		t, err := toolsetForRunner(o.Toolsets[name])
		if err != nil {
			return out, err
		}
		out.Toolsets = append(out.Toolsets, t)
	}
	if NeedsSandbox(out) {
		out.Sandbox = sandboxForRunner(agent.Spec.Sandbox)
	}
	out.Workspace = sourceForRunner(agent.Spec.Workspace)
	return out, nil
}

// forImage is a Model as the runner image of an Agent reads it: one of the user's own may be built with
// an older library, which knows neither tiers nor changes of prices.
func forImage(agent *v1alpha1.Agent, m task.Model) task.Model {
	if runnerImage(agent.Spec) != "" {
		m.Prices = listprices.Dearest(m.Prices)
	}
	return m
}

// modelNames are all Models that the agents of a snapshot use, each once: the
// Agent's own first.
func modelNames(s task.Snapshot) []string {
	var out []string
	add := func(names []string) {
		for _, name := range names {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	for _, a := range append([]task.Agent{s.Agent}, s.Agents...) {
		add(a.Models)
		for _, use := range []string{task.RouteSummarize, task.RouteSubagent, task.RouteRepair} {
			add(a.Routes[use])
		}
		for _, r := range a.TurnRoutes {
			add(r.Models)
		}
	}
	return out
}

func agentForRunner(agent *v1alpha1.Agent, o Objects) (task.Agent, error) {
	spec := agent.Spec
	a := task.Agent{
		Name:               agent.Name,
		Description:        spec.Description,
		Instructions:       spec.Instructions,
		Models:             chain(spec.Model, o),
		ParallelTools:      int(spec.ParallelTools),
		Limits:             LimitsOf(spec.Limits),
		IgnoreInstructions: spec.Workspace.AgentsFile == v1alpha1.AgentsFileIgnore,
		Events:             string(spec.Log),
	}
	addRoutes(&a, spec.Routes, o)
	var err error
	a.Tools = toolsForRunner(agent, o)
	a.Policy = policyForRunner(spec.Policy)
	for _, h := range spec.Hooks {
		a.Hooks = append(a.Hooks, hookForRunner(h))
	}
	if a.Params, err = params(spec.Inference); err != nil {
		return a, fmt.Errorf("Agent %q: %w", agent.Name, err) //nolint:staticcheck // kinds are written so
	}
	if spec.Input != nil {
		a.InputSchema = inputs.Schema(spec.Input)
	}
	if spec.Output != nil {
		a.OutputFiles = spec.Output.Files
	}
	if spec.Output != nil && len(spec.Output.Schema.Raw) > 0 {
		if a.OutputSchema, err = compact(spec.Output.Schema.Raw); err != nil {
			return a, fmt.Errorf("compacting the output schema of Agent %s: %w", agent.Name, err)
		}
	}
	return a, nil
}

// addRoutes adds the routes of an Agent in their order.
func addRoutes(a *task.Agent, routes []v1alpha1.Route, o Objects) {
	for _, r := range routes {
		models := chain(string(r.Model), o)
		if r.For == v1alpha1.RouteTurn {
			a.TurnRoutes = append(a.TurnRoutes, task.TurnRoute{Models: models, When: r.When})
			continue
		}
		if a.Routes == nil {
			a.Routes = map[string][]string{}
		}
		a.Routes[string(r.For)] = models
	}
}

func compact(schema []byte) (json.RawMessage, error) {
	var out bytes.Buffer
	err := json.Compact(&out, schema)
	return out.Bytes(), err
}

// defaultHookTimeout is in seconds. It is no default of the schema: those within
// lists make every apply of an unchanged object change something.
const defaultHookTimeout = 5

func hookForRunner(h v1alpha1.Hook) task.Hook {
	out := task.Hook{
		Name:           h.Name,
		Point:          string(h.Point),
		URL:            h.URL,
		TimeoutSeconds: cmp.Or(seconds(&h.Timeout), defaultHookTimeout),
		Ignore:         h.FailurePolicy == v1alpha1.FailurePolicyIgnore,
		SecretKey:      keyForRunner(h.TokenSecretRef),
	}
	for _, t := range h.Tools {
		out.Tools = append(out.Tools, string(t))
	}
	return out
}

func keyForRunner(k *v1alpha1.SecretKeyRef) task.SecretKey {
	if k == nil {
		return task.SecretKey{}
	}
	return task.SecretKey{Secret: string(k.Name), Key: k.Key}
}

func headersForRunner(headers []v1alpha1.Header) map[string]string {
	if len(headers) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, h := range headers {
		out[h.Name] = h.Value
	}
	return out
}

func modelForRunner(model *v1alpha1.Model) (task.Model, error) {
	spec := model.Spec
	m := task.Model{
		Name:            model.Name,
		Provider:        string(spec.Provider),
		API:             apiOf(spec),
		Format:          formatOf(spec),
		Model:           spec.ModelID,
		Endpoint:        spec.BaseURL(),
		Headers:         headersForRunner(spec.Headers),
		SecretKey:       keyForRunner(spec.APIKeySecretRef),
		ContextWindow:   tokens(spec.ContextWindow),
		MaxOutputTokens: tokens(spec.MaxOutputTokens),
	}
	if t := spec.Timeouts; t != nil {
		m.Timeouts = task.ModelTimeouts{FirstByteSeconds: seconds(t.FirstByte), BetweenBytesSeconds: seconds(t.BetweenBytes), TotalSeconds: seconds(t.Total)}
	}
	if spec.RequestRepair == v1alpha1.RequestRepairDisabled {
		m.RequestRepair = task.RepairDisabled
	}
	setProviderFields(&m, spec)
	var err error
	if m.Params, err = params(spec.Inference); err != nil {
		return m, err
	}
	known, err := listprices.Of(spec)
	m.Prices = known.Prices
	return m, err
}

// apiOf returns the API of a Model if it names one that is not the only or first of its provider;
// empty: the runner decides. A runner of before does not know the field.
func apiOf(spec v1alpha1.ModelSpec) string {
	switch {
	case spec.Provider == v1alpha1.ProviderOpenAI, spec.Provider == v1alpha1.ProviderAzure, spec.API == v1alpha1.APIResponses:
		return string(spec.API)
	}
	return ""
}

// formatOf returns the API in the form that runners of before know too.
func formatOf(spec v1alpha1.ModelSpec) string {
	isBoth := spec.Provider == v1alpha1.ProviderDeepSeek || spec.Provider == v1alpha1.ProviderKimi
	if isBoth && spec.API == v1alpha1.APIMessages {
		return "Anthropic"
	}
	return ""
}

// setProviderFields sets the fields that only one provider has.
func setProviderFields(m *task.Model, spec v1alpha1.ModelSpec) {
	switch {
	case spec.Azure != nil:
		m.Deployment, m.APIVersion = spec.Azure.Deployment, spec.Azure.APIVersion
	case spec.Custom != nil:
		m.Driver = spec.Custom.Driver
	}
}
