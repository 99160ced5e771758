package workflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// dataKey is the key of the ConfigMap of a version.
const dataKey = "workflow.json"

// maxBytes is the most that a version may have: a ConfigMap holds 1 MiB.
const maxBytes = 900 << 10

// A Version is one version of a Workflow: its spec, and the versions of the
// Agents and Workflows that its nodes name.
type Version struct {
	// Hash names the version: it covers everything below.
	Hash string
	// Name is the Workflow's.
	Name      string
	Spec      v1alpha1.WorkflowSpec
	Agents    map[string]AgentVersion
	Workflows map[string]*Version

	data     []byte
	compiled compiled
}

// An AgentVersion is what a Workflow knows of the version of an Agent.
type AgentVersion struct {
	stored.WorkflowAgent
	// Snapshot is the version itself; nil where this was read from storage.
	Snapshot *snapshot.Version
}

// seal gives a Version its content and its hash. Its Spec is then what is read of that:
// nothing works before the operator restarts that does not work afterwards.
func (v *Version) computeHash() error {
	s := stored.WorkflowOf(v.Name, v.Spec)
	for name, a := range v.Agents {
		if s.Agents == nil {
			s.Agents = map[string]stored.WorkflowAgent{}
		}
		s.Agents[name] = a.WorkflowAgent
	}
	for name, nested := range v.Workflows {
		if s.Workflows == nil {
			s.Workflows = map[string]string{}
		}
		s.Workflows[name] = nested.Hash
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding Workflow %s: %w", v.Name, err)
	}
	if v.data, err = canonical(data); err != nil {
		return fmt.Errorf("encoding Workflow %s: %w", v.Name, err)
	}
	v.Spec, v.Hash = s.Spec(), task.Hash(v.data)
	return nil
}

// canonical is JSON with the members of its objects in order: what people wrote
// as JSON may come back in another.
func canonical(data []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // digit by digit
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// tooLarge says what takes the most room.
func (v *Version) tooLarge() *snapshot.NotReadyError {
	nodes := slices.Concat(v.Spec.Nodes, v.Spec.Finally)
	size := func(n v1alpha1.Node) int {
		input := 0
		if n.Input != nil {
			input = len(n.Input.Raw)
		}
		return len(n.Prompt) + input
	}
	slices.SortStableFunc(nodes, func(a, b v1alpha1.Node) int { return cmp.Compare(size(b), size(a)) })
	var most []string
	for _, n := range nodes[:min(len(nodes), 3)] {
		most = append(most, fmt.Sprintf("%s %d KiB", n.Name, size(n)>>10))
	}
	return &snapshot.NotReadyError{Reason: v1alpha1.ReasonTooLarge, Message: fmt.Sprintf(
		"With the schemas of its Agents it has %d KiB; at most %d fit. Shorten the longest prompts, or put nodes into a Workflow of their own: %s",
		len(v.data)>>10, maxBytes>>10, strings.Join(most, ", "))}
}

// Name is the name of the ConfigMap that holds a version.
func Name(hash string) string { return snapshot.Name(hash) }

// ConfigMaps are the version as objects, in the order in which they are to be
// made: what it needs first, so that the last, its own, proves the rest. Versions
// of Agents are among them where this one was not read from storage.
func (v *Version) ConfigMaps(namespace string) []*corev1.ConfigMap {
	var out []*corev1.ConfigMap
	v.each(map[string]bool{}, func(of *Version) {
		for _, name := range sortedKeys(of.Agents) {
			s := of.Agents[name].Snapshot
			if s != nil && !slices.ContainsFunc(out, func(cm *corev1.ConfigMap) bool { return cm.Name == snapshot.Name(s.Hash) }) {
				out = append(out, s.ConfigMap(namespace))
			}
		}
		out = append(out, of.configMap(namespace))
	})
	return out
}

// each visits the nested versions, each once, and then this one.
func (v *Version) each(seen map[string]bool, visit func(*Version)) {
	if seen[v.Hash] {
		return
	}
	seen[v.Hash] = true
	for _, name := range sortedKeys(v.Workflows) {
		v.Workflows[name].each(seen, visit)
	}
	visit(v)
}

func (v *Version) configMap(namespace string) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      Name(v.Hash),
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "deckhand",
				v1alpha1.LabelRevision:         "true",
				v1alpha1.LabelWorkflow:         snapshot.Label(v.Name),
			},
			Annotations: map[string]string{
				v1alpha1.AnnotationRevisionHash:      v.Hash,
				v1alpha1.AnnotationRequiredRevisions: strings.Join(v.requiredHashes(), ","),
			},
		},
		Immutable: &immutable,
		Data:      map[string]string{dataKey: string(v.data)},
	}
}

// needs are the hashes of the versions that this one names, in order.
func (v *Version) requiredHashes() []string {
	var out []string
	for _, a := range v.Agents {
		out = append(out, a.Hash)
	}
	for _, w := range v.Workflows {
		out = append(out, w.Hash)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Needs are the versions, of Agents and Workflows, that the ConfigMap of a
// Workflow's version says it needs. A lie in it keeps some for longer.
func Needs(cm *corev1.ConfigMap) []string {
	said := cm.Annotations[v1alpha1.AnnotationRequiredRevisions]
	if cm.Labels[v1alpha1.LabelWorkflow] == "" || said == "" {
		return nil
	}
	return strings.Split(said, ",")
}

// NameOf is the name of the Workflow whose version a ConfigMap holds; empty: it
// holds none that this operator understands.
func NameOf(cm *corev1.ConfigMap) string {
	if cm.Labels[v1alpha1.LabelWorkflow] == "" {
		return ""
	}
	s, err := stored.DecodeWorkflow([]byte(cm.Data[dataKey]))
	if err != nil {
		return ""
	}
	return s.Name
}
