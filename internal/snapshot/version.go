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
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Keys of the ConfigMap of a version.
const (
	runnerKey  = "snapshot.json"
	sourcesKey = "sources.json"
)

// hashAnnotation names the version in full; the ConfigMap's name is cut.
const hashAnnotation = "deckhand.dev/version"

// HashOf is the version that a ConfigMap says it holds. Who believes it without
// Read must not mind a lie.
func HashOf(cm *corev1.ConfigMap) string { return cm.Annotations[hashAnnotation] }

// RunnerKey is the key of what the runner reads.
const RunnerKey = runnerKey

// maxBytes is the most that a version may have: a ConfigMap holds 1 MiB.
const maxBytes = 900 << 10

// A Version is one version of an Agent.
type Version struct {
	// Hash names the version: it covers everything below.
	Hash string
	// Sources are what the operator makes a pod of.
	Sources Sources
	// Runner is what the runner reads, RunnerHash its hash, Snapshot its content:
	// the Agent and all that it may reach.
	Runner     []byte
	RunnerHash string
	Snapshot   task.Snapshot

	sources []byte
}

// Sources are the Agent that a Version was made of, and the Toolsets that it and
// the Agents in its pod name. What else it may reach is in the Snapshot as far as
// a Run depends on it.
type Sources struct {
	Agent     string                          `json:"agent"`
	AgentSpec v1alpha1.AgentSpec              `json:"agentSpec"`
	Toolsets  map[string]v1alpha1.ToolsetSpec `json:"toolsets,omitempty"`
}

func sourcesOf(agent *v1alpha1.Agent, others []*v1alpha1.Agent, o Objects) Sources {
	out := Sources{Agent: agent.Name, AgentSpec: agent.Spec}
	for _, name := range toolsetNames(agent, others) {
		if out.Toolsets == nil {
			out.Toolsets = map[string]v1alpha1.ToolsetSpec{}
		}
		out.Toolsets[name] = o.Toolsets[name].Spec
	}
	return out
}

// A NotReadyError says why there is no version, for a condition.
type NotReadyError struct {
	Reason, Message string
}

func (e *NotReadyError) Error() string { return e.Message }

// Of makes the version of an Agent with what it may reach. A *NotReadyError says
// what is wrong with them.
func Of(agent *v1alpha1.Agent, o Objects) (*Version, error) {
	others, problem := check(agent, o)
	if problem != nil {
		return nil, problem
	}
	runner, err := forRunner(agent, others, o)
	if err != nil {
		return nil, &NotReadyError{v1alpha1.ReasonInferenceInvalid, err.Error()}
	}
	if secrets := Secrets(runner); len(secrets) > MaxSecrets {
		return nil, &NotReadyError{v1alpha1.ReasonTooManySecrets, fmt.Sprintf("Its Models, tools and hooks, and those of the Agents that it may reach, name %d Secrets; at most %d are mounted. Keep more keys in one Secret", len(secrets), MaxSecrets)}
	}
	v, err := seal(sourcesOf(agent, others, o), runner)
	if err != nil {
		return nil, err
	}
	if size := len(v.sources) + len(v.Runner); size > maxBytes {
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

func seal(s Sources, runner task.Snapshot) (*Version, error) {
	v := &Version{Sources: s, Snapshot: runner}
	var err error
	if v.sources, err = json.Marshal(s); err != nil {
		return nil, fmt.Errorf("encoding the sources of Agent %s: %w", s.Agent, err)
	}
	if v.Runner, err = json.Marshal(runner); err != nil {
		return nil, fmt.Errorf("encoding the snapshot of Agent %s: %w", s.Agent, err)
	}
	v.RunnerHash = task.Hash(v.Runner)
	v.Hash = hash(v.sources, v.Runner)
	return v, nil
}

func hash(sources, runner []byte) string {
	return task.Hash([]byte(task.Hash(sources) + task.Hash(runner)))
}

// Name is the name of the ConfigMap that holds a version.
func Name(hash string) string {
	return "deckhand-" + hash[:min(len(hash), 32)]
}

// ConfigMap is the version as an object.
func (v *Version) ConfigMap(namespace string) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      Name(v.Hash),
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "deckhand",
				v1alpha1.LabelSnapshot:         "true",
				v1alpha1.LabelAgent:            Label(v.Sources.Agent),
			},
			Annotations: map[string]string{hashAnnotation: v.Hash},
		},
		Immutable: &immutable,
		Data:      map[string]string{runnerKey: string(v.Runner), sourcesKey: string(v.sources)},
	}
}

// Label is a name as a label's value: names may be longer than labels.
func Label(name string) string {
	if len(name) <= 63 {
		return name
	}
	return name[:54] + "-" + task.Hash([]byte(name))[:8]
}

// Read is the version that a ConfigMap holds; an error when its content is not
// what the hash promises.
func Read(cm *corev1.ConfigMap, want string) (*Version, error) {
	v := &Version{
		Hash:    want,
		Runner:  []byte(cm.Data[runnerKey]),
		sources: []byte(cm.Data[sourcesKey]),
	}
	if hash(v.sources, v.Runner) != want {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: its content is not the Agent's version %s that the Run started with", cm.Namespace, cm.Name, want)
	}
	for from, to := range map[*[]byte]any{&v.sources: &v.Sources, &v.Runner: &v.Snapshot} {
		if err := json.Unmarshal(*from, to); err != nil {
			return nil, fmt.Errorf("decoding ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
		}
	}
	v.RunnerHash = task.Hash(v.Runner)
	return v, nil
}
