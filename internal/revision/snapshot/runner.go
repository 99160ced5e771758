package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// defaultInput is the input of an Agent that has no schema for it.
var defaultInput = json.RawMessage(`{"type":"object","required":["prompt"],"properties":{"prompt":{"type":"string"}}}`)

// InputSchema returns the schema of the input of an Agent.
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

// forImage returns a Model in the form for the runner image of an Agent: a custom image may be built with an older
// library, which supports neither tiers nor changes of prices.
func forImage(agent *v1alpha1.Agent, m task.Model) task.Model {
	if runnerImage(agent.Spec) != "" {
		m.Prices = listprices.Dearest(m.Prices)
	}
	return m
}

// modelNames returns all Models that the agents of a snapshot use, each once: the
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
		Skills:             skillsForRunner(spec.Skills),
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

// defaultHookTimeout is in seconds. It is not a default of the schema, because defaults within lists make every apply
// of an unchanged object change it.
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

// apiOf returns the API of a Model if it is not the only or first API of its provider; empty: the runner decides. Older
// runners ignore the field.
func apiOf(spec v1alpha1.ModelSpec) string {
	switch {
	case spec.Provider == v1alpha1.ProviderOpenAI, spec.Provider == v1alpha1.ProviderAzure, spec.API == v1alpha1.APIResponses:
		return string(spec.API)
	}
	return ""
}

// formatOf returns the API in the field that older runners read.
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

const (
	defaultProcesses = 256
	defaultCommits   = 50
)

// NeedsSandbox reports whether anything in a snapshot runs in a sandbox.
func NeedsSandbox(s task.Snapshot) bool {
	for _, a := range append([]task.Agent{s.Agent}, s.Agents...) {
		for _, t := range a.Tools {
			if task.Builtins[t.Builtin].Sandbox {
				return true
			}
		}
	}
	for _, t := range s.Toolsets {
		if t.Stdio != nil && t.Stdio.InSandbox {
			return true
		}
	}
	return false
}

func sandboxForRunner(s *v1alpha1.Sandbox) *task.Sandbox {
	if s == nil {
		return nil
	}
	out := &task.Sandbox{Image: s.Image, Required: s.Confinement == v1alpha1.ConfinementRequired, Processes: defaultProcesses}
	if s.Processes != nil {
		out.Processes = int(*s.Processes)
	}
	if s.Egress != nil {
		out.Hosts = hostsForRunner(s.Egress.Hosts)
	}
	return out
}

// sourceForRunner returns the initial content of a workspace.
func sourceForRunner(w v1alpha1.Workspace) task.Source {
	var out task.Source
	if g := w.Git; g != nil {
		out.Git = &task.Git{
			URL: g.URL, Revision: g.Revision, Depth: defaultCommits,
			Publish: g.Publish == v1alpha1.PublishBranch,
		}
		if g.SecretRef != nil {
			out.Git.Secret = string(g.SecretRef.Name)
		}
		if g.Depth != nil {
			out.Git.Depth = int(*g.Depth)
		}
	}
	for _, f := range w.Files {
		out.Files = append(out.Files, f.Path)
	}
	return out
}

// skillsForRunner returns skills by name, so that their order in the Agent does not matter.
func skillsForRunner(skills []v1alpha1.Skill) []task.Skill {
	var out []task.Skill
	for _, s := range skills {
		one := task.Skill{Name: s.Name}
		if s.ConfigMapRef != nil {
			one.ConfigMap = string(s.ConfigMapRef.Name)
		}
		if g := s.Git; g != nil {
			one.Git, one.Path = &task.Git{URL: g.URL, Revision: g.Revision, Depth: 1}, g.Path
			if g.SecretRef != nil {
				one.Git.Secret = string(g.SecretRef.Name)
			}
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b task.Skill) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func policyForRunner(rules []v1alpha1.PolicyRule) []task.Rule {
	var out []task.Rule
	for _, r := range rules {
		out = append(out, task.Rule{Name: r.Name, When: r.When, Answer: string(r.Answer), Reason: r.Reason, Approvers: approversForRunner(r.Approvers)})
	}
	return out
}

func approvalForRunner(a *v1alpha1.Approval) *task.Approval {
	if a == nil {
		return nil
	}
	return &task.Approval{When: a.When, Approvers: approversForRunner(a.Approvers)}
}

func approversForRunner(a *v1alpha1.Approvers) task.Approvers {
	if a == nil {
		return task.Approvers{}
	}
	return task.Approvers{Groups: a.Groups, Users: a.Users}
}

func toolsForRunner(agent *v1alpha1.Agent, o Objects) []task.Tool {
	var out []task.Tool
	for _, t := range agent.Spec.Tools {
		tool := toolForRunner(t)
		if modeOf(t) == v1alpha1.AgentModeRun {
			describeForRunner(&tool, o.agent(agent, tool.Agent))
		}
		out = append(out, tool)
	}
	return out
}

func toolForRunner(t v1alpha1.Tool) task.Tool {
	out := task.Tool{
		Builtin:        string(t.Builtin),
		Agent:          string(t.Agent),
		Toolset:        string(t.Toolset),
		Allow:          t.Allow,
		Deny:           t.Deny,
		Approval:       approvalForRunner(t.Approval),
		Custom:         t.Custom,
		Name:           t.Name,
		TimeoutSeconds: seconds(t.Timeout),
	}
	switch {
	case t.HTTPRequest != nil:
		out.Hosts = hostsForRunner(t.HTTPRequest.Hosts)
	case t.Browse != nil:
		out.Hosts = hostsForRunner(t.Browse.Hosts)
	case t.WebSearch != nil:
		out.Endpoint, out.SecretKey = t.WebSearch.Endpoint, keyForRunner(t.WebSearch.APIKeySecretRef)
	case t.Settings != nil:
		out.Endpoint, out.SecretKey = t.Settings.Endpoint, keyForRunner(t.Settings.APIKeySecretRef)
	}
	return out
}

func hostsForRunner(hosts []v1alpha1.Host) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, string(h))
	}
	return out
}

// agent returns an Agent that another names, which may be itself.
func (o Objects) agent(by *v1alpha1.Agent, name string) *v1alpha1.Agent {
	if name == by.Name {
		return by
	}
	return o.Agents[name]
}

// describeForRunner sets the description of an agent that works in a child Run, for the caller's model.
func describeForRunner(t *task.Tool, agent *v1alpha1.Agent) {
	t.Mode, t.Description = task.ModeRun, agent.Spec.Description
	if agent.Spec.Input != nil {
		t.InputSchema = inputs.Schema(agent.Spec.Input)
	}
}

// MaxSecrets is how many Secrets a pod mounts.
const MaxSecrets = 64

// A Secret lists the keys of a Secret that an agent uses.
type Secret struct {
	Name string
	// Keys are the mounted keys; Whole: all keys are mounted.
	Keys  []string
	Whole bool
}

// Secrets returns the Secrets in a snapshot, each once, by name.
func Secrets(s task.Snapshot) []Secret {
	keys := map[string]map[string]bool{}
	whole := GitSecrets(s)
	for _, name := range append(KeySecrets(s), whole...) {
		keys[name] = map[string]bool{}
	}
	for _, k := range keysOf(s) {
		if k.Secret != "" {
			keys[k.Secret][k.Key] = true
		}
	}
	var out []Secret
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		one := Secret{Name: name, Whole: slices.Contains(whole, name)}
		if !one.Whole {
			one.Keys = slices.Sorted(maps.Keys(keys[name]))
		}
		out = append(out, one)
	}
	return out
}

// GitSecrets returns the names of the Secrets with the credentials of repositories, each once, by name.
func GitSecrets(s task.Snapshot) []string {
	var out []string
	for _, g := range s.Repositories() {
		if g.Secret != "" {
			out = append(out, g.Secret)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// KeySecrets returns the names of the Secrets of which Models, tools, hooks and Toolsets use keys, each once, by name.
func KeySecrets(s task.Snapshot) []string {
	var out []string
	for _, k := range keysOf(s) {
		if k.Secret != "" {
			out = append(out, k.Secret)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// keysOf returns the keys that Models, tools, hooks and Toolsets name, some of them
// empty.
func keysOf(s task.Snapshot) []task.SecretKey {
	var out []task.SecretKey
	for _, m := range s.Models {
		out = append(out, m.SecretKey)
	}
	for _, a := range append([]task.Agent{s.Agent}, s.Agents...) {
		for _, t := range a.Tools {
			out = append(out, t.SecretKey)
		}
		for _, h := range a.Hooks {
			out = append(out, h.SecretKey)
		}
	}
	for _, t := range s.Toolsets {
		out = append(out, t.Keys()...)
	}
	return out
}
