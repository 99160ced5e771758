package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Keys of the ConfigMap of a revision.
const (
	runnerKey = "runner.json"
	agentKey  = "agent.json"
)

// HashOf returns the hash of the revision that the annotation of a ConfigMap names. Only Read
// compares it with the content.
func HashOf(configMap metav1.Object) string {
	return configMap.GetAnnotations()[v1alpha1.AnnotationRevisionHash]
}

// RunnerKey is the key with the data for the runner.
const RunnerKey = runnerKey

// maxBytes is the maximum size of a revision: a ConfigMap holds 1 MiB.
const maxBytes = 900 << 10

// A Revision is an immutable copy of an Agent with everything that it refers to.
type Revision struct {
	// Hash names the revision: it covers everything below.
	Hash string
	// Agent is the data from which the operator makes pods.
	Agent stored.Agent
	// Runner is the data for the runner, RunnerHash its hash, Snapshot its content: the Agent and everything that it
	// refers to.
	Runner     []byte
	RunnerHash string
	Snapshot   task.Snapshot

	agent []byte
}

// agentOf returns the data for the operator: the Agent, and the Toolsets that it and the Agents in its pod name.
func agentOf(agent *v1alpha1.Agent, others []*v1alpha1.Agent, o Objects) stored.Agent {
	toolsets := map[string]v1alpha1.ToolsetSpec{}
	for _, name := range toolsetNames(agent, others) {
		toolsets[name] = o.Toolsets[name].Spec
	}
	return stored.AgentOf(agent.Name, agent.Spec, toolsets)
}

// A NotReadyError is the reason why there is no revision, for a condition.
type NotReadyError struct {
	Reason, Message string
}

func (e *NotReadyError) Error() string { return e.Message }

// Of makes the revision of an Agent with the objects that it refers to. A *NotReadyError describes what is wrong with
// them.
func Of(agent *v1alpha1.Agent, o Objects) (*Revision, error) {
	others, problem := check(agent, o)
	if problem != nil {
		return nil, problem
	}
	runner, err := forRunner(agent, others, o)
	if err != nil {
		return nil, &NotReadyError{v1alpha1.ReasonInvalid, err.Error()}
	}
	if secrets := Secrets(runner); len(secrets) > MaxSecrets {
		return nil, &NotReadyError{v1alpha1.ReasonTooLarge, fmt.Sprintf("Its Models, tools and hooks, and those of the Agents that it may reach, name %d Secrets; at most %d are mounted. Keep more keys in one Secret", len(secrets), MaxSecrets)}
	}
	v, err := newRevision(agentOf(agent, others, o), runner)
	if err != nil {
		return nil, err
	}
	if size := len(v.agent) + len(v.Runner); size > maxBytes {
		return nil, tooLarge(size, runner)
	}
	return v, nil
}

// tooLarge returns an error that names the largest part.
func tooLarge(size int, s task.Snapshot) *NotReadyError {
	agents := append([]task.Agent{s.Agent}, s.Agents...)
	bytes := func(a task.Agent) int {
		size := len(a.Instructions) + len(a.InputSchema) + len(a.OutputSchema)
		for _, t := range a.Tools {
			size += len(t.InputSchema)
		}
		return size
	}
	slices.SortStableFunc(agents, func(a, b task.Agent) int { return cmp.Compare(bytes(b), bytes(a)) })
	var most []string
	for _, a := range agents[:min(len(agents), 3)] {
		most = append(most, fmt.Sprintf("%s %d KiB", a.Name, bytes(a)>>10))
	}
	return &NotReadyError{v1alpha1.ReasonTooLarge, fmt.Sprintf("With the Agents that it may reach it has %d KiB; at most %d fit. Shorten the longest instructions and schemas: %s", size>>10, maxBytes>>10, strings.Join(most, ", "))}
}

func newRevision(agent stored.Agent, runner task.Snapshot) (*Revision, error) {
	v := &Revision{Agent: agent, Snapshot: runner}
	var err error
	if v.agent, err = json.Marshal(agent); err != nil {
		return nil, fmt.Errorf("encoding Agent %s: %w", agent.Name, err)
	}
	if v.Runner, err = json.Marshal(runner); err != nil {
		return nil, fmt.Errorf("encoding the snapshot of Agent %s: %w", agent.Name, err)
	}
	v.RunnerHash = task.Hash(v.Runner)
	v.Hash = hash(v.agent, v.Runner)
	return v, nil
}

func hash(agent, runner []byte) string {
	return task.Hash([]byte(task.Hash(agent) + task.Hash(runner)))
}

// Name returns the name of the ConfigMap that holds a revision.
func Name(hash string) string {
	return "deckhand-" + hash[:min(len(hash), 32)]
}

// ConfigMap returns the revision as an object.
func (r *Revision) ConfigMap(namespace string) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      Name(r.Hash),
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "deckhand",
				v1alpha1.LabelRevision:         "true",
				v1alpha1.LabelAgent:            Label(r.Agent.Name),
			},
			Annotations: map[string]string{v1alpha1.AnnotationRevisionHash: r.Hash},
		},
		Immutable: &immutable,
		Data:      map[string]string{runnerKey: string(r.Runner), agentKey: string(r.agent)},
	}
}

// Label returns a name as the value of a label: names may be longer than labels.
func Label(name string) string {
	if len(name) <= 63 {
		return name
	}
	return name[:54] + "-" + task.Hash([]byte(name))[:8]
}

// Read returns the revision in a ConfigMap. The error is a *[stored.UnsupportedError] if this operator cannot read it,
// and any other if the content does not match the hash.
func Read(cm *corev1.ConfigMap, want string) (*Revision, error) {
	v := &Revision{
		Hash:   want,
		Runner: []byte(cm.Data[runnerKey]),
		agent:  []byte(cm.Data[agentKey]),
	}
	if hash(v.agent, v.Runner) != want {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: its content is not the Agent's revision %s that the Run started with", cm.Namespace, cm.Name, want)
	}
	var err error
	if v.Agent, err = stored.DecodeAgent(v.agent); err != nil {
		return nil, fmt.Errorf("decoding ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	if v.Snapshot, err = stored.DecodeVersion[task.Snapshot]("snapshot for the runner", task.SnapshotVersion, v.Runner); err != nil {
		return nil, fmt.Errorf("decoding ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	v.RunnerHash = task.Hash(v.Runner)
	return v, nil
}

// MaxAgents is how many other Agents one may reach in its pod.
const MaxAgents = 16

// Objects are the objects that an Agent refers to, directly or through others. An object that is not in the maps does
// not exist.
type Objects struct {
	// Agents has the Agents that work in its pod, and those to which one of them delegates in child Runs, without the
	// objects that the latter name.
	Agents map[string]*v1alpha1.Agent
	Models map[string]*v1alpha1.Model
	// Toolsets has the Toolsets that its Agents name.
	Toolsets map[string]*v1alpha1.Toolset
}

// AgentsOf returns the Agents to which an Agent delegates in its pod, each once, in order.
func AgentsOf(spec v1alpha1.AgentSpec) []string {
	return agentsOf(spec, v1alpha1.AgentModePod)
}

// RunAgentsOf returns the Agents to which an Agent delegates in child Runs, each once, in order.
func RunAgentsOf(spec v1alpha1.AgentSpec) []string {
	return agentsOf(spec, v1alpha1.AgentModeRun)
}

func agentsOf(spec v1alpha1.AgentSpec, mode v1alpha1.AgentMode) []string {
	var out []string
	for _, t := range spec.Tools {
		if name := string(t.Agent); name != "" && modeOf(t) == mode && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// modeOf returns the mode of an agent as a tool: in the pod or in a child Run.
func modeOf(t v1alpha1.Tool) v1alpha1.AgentMode {
	if t.Delegation == nil || t.Delegation.Mode == "" {
		return v1alpha1.AgentModePod
	}
	return t.Delegation.Mode
}

// ToolsetsOf returns the names of the Toolsets whose tools an Agent may call, each
// once.
func ToolsetsOf(spec v1alpha1.AgentSpec) []string {
	var out []string
	for _, t := range spec.Tools {
		if name := string(t.Toolset); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ModelsOf returns the Models that an Agent names, each once, its own first.
func ModelsOf(spec v1alpha1.AgentSpec) []string {
	out := []string{spec.Model}
	for _, r := range spec.Routes {
		if name := string(r.Model); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// chain returns the names of a Model and its fallbacks, in the order in which they are called.
func chain(name string, o Objects) []string {
	out := []string{name}
	if m := o.Models[name]; m != nil {
		for _, f := range m.Spec.Fallbacks {
			out = append(out, string(f))
		}
	}
	return out
}

// reachableAgents returns the Agents to which an Agent can delegate in its pod, directly or through others, without
// itself. There may be cycles; the search ends above the allowed number.
func reachableAgents(agent *v1alpha1.Agent, o Objects) ([]*v1alpha1.Agent, *NotReadyError) {
	by := map[string]string{agent.Name: ""} // who named it
	next := []*v1alpha1.Agent{agent}
	var out []*v1alpha1.Agent
	for len(next) > 0 {
		from := next[0]
		next = next[1:]
		for _, name := range AgentsOf(from.Spec) {
			if _, seen := by[name]; seen || len(out) > MaxAgents {
				continue
			}
			by[name] = from.Name
			found := o.Agents[name]
			if found == nil {
				return nil, &NotReadyError{v1alpha1.ReasonNotFound, fmt.Sprintf("Agent %q not found in namespace %s (named by %s); create it, or remove it from spec.tools of %s", name, agent.Namespace, way(by, from.Name), from.Name)}
			}
			out, next = append(out, found), append(next, found)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Agent) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// way returns the names through which an Agent is reached: a -> b -> c.
func way(by map[string]string, name string) string {
	out := []string{name}
	for name = by[name]; name != ""; name = by[name] {
		out = append(out, name)
	}
	slices.Reverse(out)
	return strings.Join(out, " -> ")
}

// circle returns a cycle of fallbacks that can be reached from a Model; empty: there is none.
func circle(name string, models map[string]*v1alpha1.Model) []string {
	var path []string
	done := map[string]bool{} // no circle from here
	var walk func(string) bool
	walk = func(at string) bool {
		back := slices.Contains(path, at)
		path = append(path, at)
		if back {
			return true
		}
		if m := models[at]; m != nil && !done[at] {
			for _, f := range m.Spec.Fallbacks {
				if walk(string(f)) {
					return true
				}
			}
		}
		done[at] = true
		path = path[:len(path)-1]
		return false
	}
	walk(name)
	return path
}

// MaxInput is the maximum size of a Run's input in bytes. The schema of Run cannot bound a value of unknown shape.
const MaxInput = 16 << 10

// maxNameShown is the maximum length of a name in a message in bytes, so that the advice after it fits.
const maxNameShown = 64

// CheckRun returns why an Agent cannot execute a Run: a *NotReadyError with the reason with which the Run ends, or nil.
func CheckRun(run v1alpha1.RunSpec, agent task.Agent) *NotReadyError {
	if p := CheckInputSize(run); p != nil {
		return p
	}
	misconfigured := func(format string, args ...any) *NotReadyError {
		return &NotReadyError{v1alpha1.ReasonMisconfigured, fmt.Sprintf(format, args...)}
	}
	err := schema.Validate(InputSchemaOf(agent), wholeInput(run, agent))
	switch {
	case err != nil && run.Input != nil && len(agent.InputSchema) == 0:
		return misconfigured("spec.input: %s, or write spec.prompt", NoInput(run.Agent))
	case err != nil:
		return misconfigured("spec.input does not fit the input of Agent %s: %v", run.Agent, err)
	}
	if name := undeclared(run, agent); name != "" {
		return misconfigured("spec.input.%s: %s, or write the value into spec.prompt", task.Cut(name, maxNameShown), NoInput(run.Agent))
	}
	if err := CheckTemplate(run.Prompt, run.Agent, agent.InputSchema); err != nil {
		return misconfigured("spec.prompt: %v", err)
	}
	return nil
}

// undeclared returns the name of a value that would be ignored, because the Agent of the Run declares no input and has
// only a prompt; empty: there is none.
func undeclared(run v1alpha1.RunSpec, agent task.Agent) string {
	var values map[string]json.RawMessage
	if len(agent.InputSchema) > 0 || json.Unmarshal(inputOf(run), &values) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name != "prompt" {
			return name
		}
	}
	return ""
}

// CanonicalInput returns the input of a Run in canonical form. No input is an empty one.
func CanonicalInput(run v1alpha1.RunSpec) (json.RawMessage, error) {
	if run.Input == nil {
		return digest.Canonical(nil)
	}
	return digest.Canonical(run.Input.Raw)
}

// SameInput reports whether two Runs have the same input. An input without a canonical form equals no other.
func SameInput(a, b v1alpha1.RunSpec) bool {
	was, err := CanonicalInput(a)
	is, other := CanonicalInput(b)
	return err == nil && other == nil && string(was) == string(is)
}

// CheckInputSize bounds the input of a Run. The message has no size, because the operator does not keep a longer input.
func CheckInputSize(run v1alpha1.RunSpec) *NotReadyError {
	if len(inputOf(run)) <= MaxInput {
		return nil
	}
	return &NotReadyError{v1alpha1.ReasonTaskTooLarge, fmt.Sprintf("spec.input has more than %d bytes of JSON. Move long texts into files of the workspace", MaxInput)}
}

// inputOf returns the input of a Run as JSON, or an empty value.
func inputOf(run v1alpha1.RunSpec) json.RawMessage {
	if run.Input == nil {
		return nil
	}
	return run.Input.Raw
}

// wholeInput returns the whole input of a Run, with the defaults of its Agent. For an Agent that declares no input, the
// Run's prompt is the input; it may be empty if the Run continues another.
func wholeInput(run v1alpha1.RunSpec, agent task.Agent) json.RawMessage {
	values := map[string]json.RawMessage{}
	if raw := inputOf(run); len(raw) > 0 {
		if json.Unmarshal(raw, &values) != nil || values == nil {
			return raw // no object: the schema says so
		}
	}
	if _, said := values["prompt"]; len(agent.InputSchema) == 0 && (run.Prompt != "" || run.ContinueFrom != nil) && !said {
		values["prompt"], _ = json.Marshal(run.Prompt) // a string always encodes
	}
	whole, err := json.Marshal(values)
	if err != nil {
		return inputOf(run)
	}
	return schema.Fill(InputSchemaOf(agent), whole)
}
