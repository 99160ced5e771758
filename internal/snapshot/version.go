package snapshot

import (
	"encoding/json"
	"fmt"

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

// A Version is one version of an Agent.
type Version struct {
	// Hash names the version: it covers everything below.
	Hash string
	// Sources are the objects it was made of.
	Sources Sources
	// Runner is what the runner reads, RunnerHash its hash.
	Runner     []byte
	RunnerHash string

	sources []byte
}

// Sources are the objects that a Version was made of.
type Sources struct {
	Agent     string             `json:"agent"`
	AgentSpec v1alpha1.AgentSpec `json:"agentSpec"`
	Model     string             `json:"model"`
	ModelSpec v1alpha1.ModelSpec `json:"modelSpec"`
}

// A NotReadyError says why there is no version, for a condition.
type NotReadyError struct {
	Reason, Message string
}

func (e *NotReadyError) Error() string { return e.Message }

// Of makes the version of an Agent with its Model (nil: not found). A *NotReadyError
// says what is wrong with them.
func Of(agent *v1alpha1.Agent, model *v1alpha1.Model) (*Version, error) {
	if err := check(agent, model); err != nil {
		return nil, err
	}
	s := Sources{Agent: agent.Name, AgentSpec: agent.Spec, Model: model.Name, ModelSpec: model.Spec}
	runner, err := forRunner(s)
	if err != nil {
		return nil, &NotReadyError{v1alpha1.ReasonParametersInvalid, fmt.Sprintf("Model %q: %v", model.Name, err)}
	}
	return seal(s, runner)
}

func seal(s Sources, runner task.Snapshot) (*Version, error) {
	v := &Version{Sources: s}
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
	if err := json.Unmarshal(v.sources, &v.Sources); err != nil {
		return nil, fmt.Errorf("decoding ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	v.RunnerHash = task.Hash(v.Runner)
	return v, nil
}
