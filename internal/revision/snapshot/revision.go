package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
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

// RunnerKey is the key of what the runner reads.
const RunnerKey = runnerKey

// maxBytes is the most that a revision may have: a ConfigMap holds 1 MiB.
const maxBytes = 900 << 10

// A Revision is an immutable copy of an Agent with everything that it refers to.
type Revision struct {
	// Hash names the revision: it covers everything below.
	Hash string
	// Agent is what the operator makes a pod of.
	Agent stored.Agent
	// Runner is what the runner reads, RunnerHash its hash, Snapshot its content:
	// the Agent and all that it may reach.
	Runner     []byte
	RunnerHash string
	Snapshot   task.Snapshot

	agent []byte
}

// agentOf is what is stored for the operator: the Agent, and the Toolsets that it and
// the Agents in its pod name.
func agentOf(agent *v1alpha1.Agent, others []*v1alpha1.Agent, o Objects) stored.Agent {
	toolsets := map[string]v1alpha1.ToolsetSpec{}
	for _, name := range toolsetNames(agent, others) {
		toolsets[name] = o.Toolsets[name].Spec
	}
	return stored.AgentOf(agent.Name, agent.Spec, toolsets)
}

// A NotReadyError says why there is no revision, for a condition.
type NotReadyError struct {
	Reason, Message string
}

func (e *NotReadyError) Error() string { return e.Message }

// Of makes the revision of an Agent with what it may reach. A *NotReadyError says
// what is wrong with them.
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

// tooLarge says what takes the most room.
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

// Name is the name of the ConfigMap that holds a revision.
func Name(hash string) string {
	return "deckhand-" + hash[:min(len(hash), 32)]
}

// ConfigMap is the revision as an object.
func (v *Revision) ConfigMap(namespace string) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      Name(v.Hash),
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "deckhand",
				v1alpha1.LabelRevision:         "true",
				v1alpha1.LabelAgent:            Label(v.Agent.Name),
			},
			Annotations: map[string]string{v1alpha1.AnnotationRevisionHash: v.Hash},
		},
		Immutable: &immutable,
		Data:      map[string]string{runnerKey: string(v.Runner), agentKey: string(v.agent)},
	}
}

// Label is a name as a label's value: names may be longer than labels.
func Label(name string) string {
	if len(name) <= 63 {
		return name
	}
	return name[:54] + "-" + task.Hash([]byte(name))[:8]
}

// Read is the revision that a ConfigMap holds. The error is a
// *[stored.UnsupportedError] if this operator does not understand it, and any other
// if the content is not what the hash promises.
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
