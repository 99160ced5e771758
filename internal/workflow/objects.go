package workflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Limits of the objects that a Workflow refers to.
const (
	// MaxDepth is the maximum depth of nested Workflows, the outermost included.
	MaxDepth = 5
	// MaxWorkflows is the maximum number of nested Workflows, the outermost included.
	MaxWorkflows = 64
	// MaxExpressions is the maximum number of their expressions: a thousand take about a
	// second to compile.
	MaxExpressions = 2000
)

// Objects has the objects that a Workflow refers to, directly or not, and the Workflow.
// An object that does not exist is nil.
type Objects struct {
	Workflows map[string]*v1alpha1.Workflow
	Agents    map[string]*v1alpha1.Agent
	// AgentObjects has the objects that each of the Agents refers to.
	AgentObjects map[string]snapshot.Objects
}

// From reads the objects that a Workflow refers to. It stops at one Workflow more than
// MaxWorkflows.
func From(ctx context.Context, read refs.Reader, w *v1alpha1.Workflow) (Objects, error) {
	o := Objects{
		Workflows:    map[string]*v1alpha1.Workflow{w.Name: w},
		Agents:       map[string]*v1alpha1.Agent{},
		AgentObjects: map[string]snapshot.Objects{},
	}
	agents, workflows := refs.InWorkflow(w.Spec)
	for len(workflows) > 0 && len(o.Workflows) <= MaxWorkflows {
		name := workflows[0]
		workflows = workflows[1:]
		if _, known := o.Workflows[name]; known {
			continue
		}
		found := &v1alpha1.Workflow{}
		switch err := read(ctx, types.NamespacedName{Namespace: w.Namespace, Name: name}, found); {
		case apierrors.IsNotFound(err):
			o.Workflows[name] = nil
			continue
		case err != nil:
			return o, fmt.Errorf("getting Workflow %s: %w", name, err)
		}
		o.Workflows[name] = found
		theirAgents, theirs := refs.InWorkflow(found.Spec)
		agents, workflows = append(agents, theirAgents...), append(workflows, theirs...)
	}
	if len(o.Workflows) > MaxWorkflows {
		return o, nil // Of refuses it
	}
	return o, o.readAgents(ctx, read, w.Namespace, agents)
}

func (o *Objects) readAgents(ctx context.Context, read refs.Reader, namespace string, names []string) error {
	for _, name := range names {
		if _, known := o.Agents[name]; known {
			continue
		}
		found := &v1alpha1.Agent{}
		switch err := read(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found); {
		case apierrors.IsNotFound(err):
			o.Agents[name] = nil
			continue
		case err != nil:
			return fmt.Errorf("getting Agent %s: %w", name, err)
		}
		o.Agents[name] = found
		var err error
		if o.AgentObjects[name], err = refs.OfAgent(ctx, read, found); err != nil {
			return err
		}
	}
	return nil
}

// checkNesting checks that Workflows do not refer to themselves and are not nested too
// deep.
func (o *Objects) checkNesting(name string) *snapshot.NotReadyError {
	if len(o.Workflows) > MaxWorkflows {
		return notReady(v1alpha1.ReasonTooLarge, "It refers to more than %d Workflows, itself included; let its nodes name fewer", MaxWorkflows)
	}
	d := nestingSearch{objects: o, below: map[string][]string{}}
	chain, cycle := d.longestFrom(name)
	switch {
	case len(cycle) > 0:
		return notReady(v1alpha1.ReasonCycle, "Workflow reference cycle: %s; remove one of these references", strings.Join(cycle, " -> "))
	case len(chain) > MaxDepth:
		return notReady(v1alpha1.ReasonTooLarge, "Workflows are nested %d deep: %s; the maximum is %d. Move the nodes of one into the Workflow that names it", len(chain), strings.Join(chain, " -> "), MaxDepth)
	}
	return o.checkExpressions(sortedKeys(d.below))
}

// checkExpressions bounds the time to compile Workflows.
func (o *Objects) checkExpressions(names []string) *snapshot.NotReadyError {
	total := 0
	for _, name := range names {
		if w := o.Workflows[name]; w != nil {
			total += expressions(w.Spec)
		}
	}
	if total <= MaxExpressions {
		return nil
	}
	return notReady(v1alpha1.ReasonTooLarge, "Together with nested Workflows it has %d expressions; at most %d are allowed. Combine several into one expression", total, MaxExpressions)
}

// expressions counts the expressions of a Workflow, at least.
func expressions(spec v1alpha1.WorkflowSpec) int {
	values := func(of *runtime.RawExtension) int {
		if of == nil {
			return 0
		}
		return bytes.Count(of.Raw, []byte(`"cel"`))
	}
	total := values(spec.Output)
	for _, n := range nodesOf(spec) {
		total += template.Count(n.Prompt) + values(n.Input) + 2 // when, and items or until
		if n.Approval != nil {
			total += template.Count(n.Approval.Message)
		}
	}
	return total
}

// namedBy returns the Workflows that a Workflow names; none if it does not exist.
func (o *Objects) namedBy(name string) []string {
	w := o.Workflows[name]
	if w == nil {
		return nil
	}
	_, named := refs.InWorkflow(w.Spec)
	return named
}

// A nestingSearch finds the longest chain of nested Workflows.
type nestingSearch struct {
	objects *Objects
	path    []string            // from the root to the current Workflow
	below   map[string][]string // the longest chain from each Workflow that was searched
}

// longestFrom returns the longest chain from a Workflow, or a cycle.
func (ns *nestingSearch) longestFrom(name string) (chain, cycle []string) {
	if chain, done := ns.below[name]; done {
		return chain, nil
	}
	if i := slices.Index(ns.path, name); i >= 0 {
		return nil, append(slices.Clone(ns.path[i:]), name)
	}
	ns.path = append(ns.path, name)
	var longest []string
	for _, n := range ns.objects.namedBy(name) {
		next, cycle := ns.longestFrom(n)
		if len(cycle) > 0 {
			return nil, cycle
		}
		if len(next) > len(longest) {
			longest = next
		}
	}
	ns.path = ns.path[:len(ns.path)-1]
	ns.below[name] = append([]string{name}, longest...)
	return ns.below[name], nil
}

// Read returns the stored revision with a hash and its nested revisions; nil: one of them
// does not exist. A ConfigMap whose content does not have its hash is an error, a
// *[stored.UnsupportedError] if this operator cannot read it. The ConfigMaps of Agents
// are not read: they were created before.
func Read(ctx context.Context, get func(name string) (*corev1.ConfigMap, bool, error), hash string) (*Revision, error) {
	r := reader{get: get, done: map[string]*Revision{}}
	return r.read(ctx, hash)
}

type reader struct {
	get  func(name string) (*corev1.ConfigMap, bool, error)
	done map[string]*Revision
}

// read returns a revision with those of nested Workflows; nil: one of them is missing. It ends, because no revision can
// contain its own hash.
func (r *reader) read(ctx context.Context, hash string) (*Revision, error) {
	if v, done := r.done[hash]; done {
		return v, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cm, found, err := r.get(Name(hash))
	if err != nil || !found {
		return nil, err
	}
	data := []byte(cm.Data[dataKey])
	if task.Hash(data) != hash {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: its content is not the Workflow's revision %s that the Run started with", cm.Namespace, cm.Name, hash)
	}
	s, err := stored.DecodeWorkflow(data)
	if err != nil {
		return nil, fmt.Errorf("decoding ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	v := &Revision{Hash: hash, Name: s.Name, Spec: s.Spec(), Agents: map[string]AgentRevision{}, Workflows: map[string]*Revision{}, data: data}
	for name, a := range s.Agents {
		v.Agents[name] = AgentRevision{WorkflowAgent: a}
	}
	for _, name := range sortedKeys(s.Workflows) {
		if v.Workflows[name], err = r.read(ctx, s.Workflows[name]); err != nil || v.Workflows[name] == nil {
			return nil, err
		}
	}
	r.done[hash] = v
	return v, nil
}

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

// computeHash sets the stored content of a Revision and its hash. Spec becomes the decoded form of that content, so
// that a restart of the operator changes nothing.
func (r *Revision) computeHash() error {
	s := stored.WorkflowOf(r.Name, r.Spec)
	for name, a := range r.Agents {
		if s.Agents == nil {
			s.Agents = map[string]stored.WorkflowAgent{}
		}
		s.Agents[name] = a.WorkflowAgent
	}
	for name, nested := range r.Workflows {
		if s.Workflows == nil {
			s.Workflows = map[string]string{}
		}
		s.Workflows[name] = nested.Hash
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding Workflow %s: %w", r.Name, err)
	}
	if r.data, err = canonical(data); err != nil {
		return fmt.Errorf("encoding Workflow %s: %w", r.Name, err)
	}
	r.Spec, r.Hash = s.Spec(), task.Hash(r.data)
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

// tooLarge returns the problem of a revision that is too large, with its largest nodes.
func (r *Revision) tooLarge() *snapshot.NotReadyError {
	nodes := slices.Concat(r.Spec.Nodes, r.Spec.Finally)
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
		len(r.data)>>10, maxBytes>>10, strings.Join(most, ", "))}
}

// Name returns the name of the ConfigMap that holds a revision.
func Name(hash string) string { return snapshot.Name(hash) }

// ConfigMaps returns the revision as objects in the order of their creation: required
// revisions first, so that if the last one exists, all exist. Revisions of Agents are
// included unless this one was read from a ConfigMap.
func (r *Revision) ConfigMaps(namespace string) []*corev1.ConfigMap {
	var out []*corev1.ConfigMap
	r.each(map[string]bool{}, func(of *Revision) {
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
func (r *Revision) each(seen map[string]bool, visit func(*Revision)) {
	if seen[r.Hash] {
		return
	}
	seen[r.Hash] = true
	for _, name := range sortedKeys(r.Workflows) {
		r.Workflows[name].each(seen, visit)
	}
	visit(r)
}

func (r *Revision) configMap(namespace string) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      Name(r.Hash),
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": "deckhand",
				v1alpha1.LabelRevision:         "true",
				v1alpha1.LabelWorkflow:         snapshot.Label(r.Name),
			},
			Annotations: map[string]string{
				v1alpha1.AnnotationRevisionHash:      r.Hash,
				v1alpha1.AnnotationRequiredRevisions: strings.Join(r.requiredHashes(), ","),
			},
		},
		Immutable: &immutable,
		Data:      map[string]string{dataKey: string(r.data)},
	}
}

// requiredHashes returns the sorted hashes of the revisions that this one refers to.
func (r *Revision) requiredHashes() []string {
	var out []string
	for _, a := range r.Agents {
		out = append(out, a.Hash)
	}
	for _, w := range r.Workflows {
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

// NameOf returns the name of the Workflow whose revision is in a ConfigMap; empty: there is none that this operator can
// read.
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
