package workflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
)

// Of returns the revision of a Workflow with the objects that it refers to. An error of
// these objects is a *snapshot.NotReadyError.
func Of(w *v1alpha1.Workflow, o Objects) (*Revision, error) {
	if p := o.checkNesting(w.Name); p != nil {
		return nil, p
	}
	b := builder{objects: o, revisions: map[string]*Revision{}, agents: map[string]AgentRevision{}, namespace: w.Namespace}
	return b.revision(w)
}

// A builder builds revisions of Workflows that do not refer to themselves, each once.
type builder struct {
	objects   Objects
	namespace string
	revisions map[string]*Revision
	agents    map[string]AgentRevision
}

func (b *builder) revision(w *v1alpha1.Workflow) (*Revision, error) {
	if v, done := b.revisions[w.Name]; done {
		return v, nil
	}
	if p := snapshot.CheckKept(w); p != nil {
		return nil, p
	}
	v := &Revision{Name: w.Name, Spec: w.Spec, Agents: map[string]AgentRevision{}, Workflows: map[string]*Revision{}}
	for _, n := range nodesOf(w.Spec) {
		if err := b.resolve(v, n); err != nil {
			return nil, err
		}
	}
	if p := v.checkPrices(); p != nil {
		return nil, p
	}
	if p := checkFinally(v.Spec); p != nil {
		return nil, p
	}
	if err := v.computeHash(); err != nil {
		return nil, err
	}
	if len(v.data) > maxBytes {
		return nil, v.tooLarge()
	}
	if _, err := Compile(v); err != nil {
		return nil, err
	}
	b.revisions[w.Name] = v
	return v, nil
}

// nodesOf returns all nodes, those of finally last.
func nodesOf(spec v1alpha1.WorkflowSpec) []v1alpha1.Node {
	return slices.Concat(spec.Nodes, spec.Finally)
}

// pathOf returns the path of a node in the spec of its Workflow.
func pathOf(spec v1alpha1.WorkflowSpec, name string) string {
	list, nodes := "nodes", spec.Nodes
	if slices.ContainsFunc(spec.Finally, func(n v1alpha1.Node) bool { return n.Name == name }) {
		list, nodes = "finally", spec.Finally
	}
	return fmt.Sprintf("spec.%s[%d]", list, slices.IndexFunc(nodes, func(n v1alpha1.Node) bool { return n.Name == name }))
}

// resolve adds the object that a node names to a revision.
func (b *builder) resolve(v *Revision, n v1alpha1.Node) error {
	switch {
	case n.Agent != "":
		if err := b.resolveAgent(v, n); err != nil {
			return err
		}
		return checkLimits(n, snapshot.MostOfRevision(v.Agents[string(n.Agent)].Snapshot), "Agent "+string(n.Agent))
	case n.Workflow != "":
		if err := b.resolveWorkflow(v, n); err != nil {
			return err
		}
		return checkLimits(n, snapshot.MostOfWorkflow(b.objects.Workflows[string(n.Workflow)].Spec.Limits), "Workflow "+string(n.Workflow))
	}
	return nil
}

// checkLimits checks that a node has no limit above those of its Agent or Workflow.
func checkLimits(n v1alpha1.Node, most snapshot.Most, of string) error {
	p := snapshot.CheckLimits(n.Limits, most, of)
	if p == nil {
		return nil // and not a nil of a concrete type
	}
	return notReady(v1alpha1.ReasonInvalid, "node %s: %s", n.Name, strings.ReplaceAll(p.Message, "spec.limits.", "limits."))
}

func (b *builder) resolveAgent(v *Revision, n v1alpha1.Node) error {
	name := string(n.Agent)
	if a, done := b.agents[name]; done {
		v.Agents[name] = a
		return nil
	}
	agent := b.objects.Agents[name]
	if agent == nil {
		return notReady(v1alpha1.ReasonNotFound, "node %s: Agent %q not found in namespace %s; create it, or name another in %s.agent", n.Name, name, b.namespace, pathOf(v.Spec, n.Name))
	}
	s, err := snapshot.Of(agent, b.objects.AgentObjects[name])
	if problem, is := errors.AsType[*snapshot.NotReadyError](err); is {
		return notReady(v1alpha1.ReasonNotReady, "node %s: Agent %q is not ready: %s", n.Name, name, problem.Message)
	}
	if err != nil {
		return err
	}
	limits := s.Snapshot.Agent.Limits
	a := AgentRevision{Snapshot: s, WorkflowAgent: stored.WorkflowAgent{
		Hash:          s.Hash,
		Limits:        stored.AgentLimits{Steps: limits.Steps, Tokens: limits.Tokens, CostMicroUSD: limits.CostMicroUSD, DurationSeconds: limits.DurationSeconds},
		Input:         s.Snapshot.Agent.InputSchema,
		Output:        s.Snapshot.Agent.OutputSchema,
		Durable:       s.Agent.Workspace.Durable,
		ReadWriteOnce: s.Agent.Workspace.AccessMode != corev1.ReadWriteMany,
	}}
	b.agents[name], v.Agents[name] = a, a
	return nil
}

func (b *builder) resolveWorkflow(v *Revision, n v1alpha1.Node) error {
	name := string(n.Workflow)
	w := b.objects.Workflows[name]
	if w == nil {
		return notReady(v1alpha1.ReasonNotFound, "node %s: Workflow %q not found in namespace %s; create it, or name another in %s.workflow", n.Name, name, b.namespace, pathOf(v.Spec, n.Name))
	}
	nested, err := b.revision(w)
	if problem, is := errors.AsType[*snapshot.NotReadyError](err); is {
		return notReady(v1alpha1.ReasonNotReady, "node %s: Workflow %q is not ready: %s", n.Name, name, problem.Message)
	}
	if err != nil {
		return err
	}
	v.Workflows[name] = nested
	return nil
}

func notReady(reason, format string, args ...any) *snapshot.NotReadyError {
	return &snapshot.NotReadyError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// checkPrices checks that Models have prices if cost is limited: the limit has no effect
// without them.
func (v *Revision) checkPrices() *snapshot.NotReadyError {
	what := v.modelWithoutPrices()
	if l := v.Spec.Limits; l != nil && l.Cost != nil && what != "" {
		return missingPrices("limits.cost", what)
	}
	if l := v.Spec.FinallyLimits; l != nil && l.Cost != nil && what != "" {
		return missingPrices("finallyLimits.cost", what)
	}
	for _, n := range nodesOf(v.Spec) {
		if what := v.modelWithoutPricesOf(n); n.Limits != nil && n.Limits.Cost != nil && what != "" {
			return missingPrices("node "+n.Name+": limits.cost", what)
		}
	}
	return nil
}

// missingPrices is the problem of a limit of cost without prices of a Model.
func missingPrices(field, what string) *snapshot.NotReadyError {
	return notReady(v1alpha1.ReasonPricesMissing, "%s needs to know what %s costs. Set spec.prices of that Model, or remove the limit", field, what)
}

// modelWithoutPricesOf is modelWithoutPrices for one node.
func (v *Revision) modelWithoutPricesOf(n v1alpha1.Node) string {
	if nested := v.Workflows[string(n.Workflow)]; nested != nil {
		return nested.modelWithoutPrices()
	}
	return v.Agents[string(n.Agent)].modelWithoutPrices(string(n.Agent))
}

// modelWithoutPrices returns a Model without prices that one of the Agents may use;
// empty: there is none.
func (v *Revision) modelWithoutPrices() string {
	for _, name := range sortedKeys(v.Agents) {
		if what := v.Agents[name].modelWithoutPrices(name); what != "" {
			return what
		}
	}
	for _, name := range sortedKeys(v.Workflows) {
		if what := v.Workflows[name].modelWithoutPrices(); what != "" {
			return what
		}
	}
	return ""
}

func (a AgentRevision) modelWithoutPrices(name string) string {
	if a.Snapshot == nil {
		return ""
	}
	for _, m := range a.Snapshot.Snapshot.Models {
		if m.Prices == nil {
			return fmt.Sprintf("Model %q of Agent %q", m.Name, name)
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
