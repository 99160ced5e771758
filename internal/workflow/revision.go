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
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// dataKey is the key of the ConfigMap of a revision.
const dataKey = "workflow.json"

// maxBytes is the maximum size of a revision: a ConfigMap holds 1 MiB.
const maxBytes = 900 << 10

// A Revision is an immutable copy of a Workflow: its spec, and the revisions of the
// Agents and Workflows that its nodes name.
type Revision struct {
	// Hash names the revision: it covers everything below.
	Hash string
	// Name is the Workflow's.
	Name      string
	Spec      v1alpha1.WorkflowSpec
	Agents    map[string]AgentRevision
	Workflows map[string]*Revision

	data     []byte
	compiled compiled
}

// An AgentRevision is the part of the revision of an Agent that a Workflow uses.
type AgentRevision struct {
	stored.WorkflowAgent
	// Snapshot is the whole revision; nil if it was read from a ConfigMap.
	Snapshot *snapshot.Revision
}

// computeHash sets the stored content of a Revision and its hash. Spec becomes what is
// read from that content, so that a restart of the operator changes nothing.
func (v *Revision) computeHash() error {
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

// canonical returns JSON with sorted members: the API server may return JSON of users
// in another order.
func canonical(data []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // exact
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// tooLarge is the problem of a revision that is too large, with its largest nodes.
func (v *Revision) tooLarge() *snapshot.NotReadyError {
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

// Name is the name of the ConfigMap that holds a revision.
func Name(hash string) string { return snapshot.Name(hash) }

// ConfigMaps returns the revision as objects in the order of their creation: required
// revisions first, so that if the last one exists, all exist. Revisions of Agents are
// included unless this one was read from a ConfigMap.
func (v *Revision) ConfigMaps(namespace string) []*corev1.ConfigMap {
	var out []*corev1.ConfigMap
	v.each(map[string]bool{}, func(of *Revision) {
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

// each visits the nested revisions, each once, and then this one.
func (v *Revision) each(seen map[string]bool, visit func(*Revision)) {
	if seen[v.Hash] {
		return
	}
	seen[v.Hash] = true
	for _, name := range sortedKeys(v.Workflows) {
		v.Workflows[name].each(seen, visit)
	}
	visit(v)
}

func (v *Revision) configMap(namespace string) *corev1.ConfigMap {
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

// requiredHashes returns the sorted hashes of the revisions that this one refers to.
func (v *Revision) requiredHashes() []string {
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

// Needs returns the hashes of the revisions of Agents and Workflows that the ConfigMap of
// a revision requires. A wrong annotation can only delay their deletion.
func Needs(configMap metav1.Object) []string {
	required := configMap.GetAnnotations()[v1alpha1.AnnotationRequiredRevisions]
	if configMap.GetLabels()[v1alpha1.LabelWorkflow] == "" || required == "" {
		return nil
	}
	return strings.Split(required, ",")
}

// NameOf returns the name of the Workflow whose revision a ConfigMap holds; empty: it
// holds none that this operator can read.
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
