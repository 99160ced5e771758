package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
	"github.com/deckhand-dev/deckhand/runner/task"
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
func (r *Revision) checkPrices() *snapshot.NotReadyError {
	what := r.modelWithoutPrices()
	if l := r.Spec.Limits; l != nil && l.Cost != nil && what != "" {
		return missingPrices("limits.cost", what)
	}
	if l := r.Spec.FinallyLimits; l != nil && l.Cost != nil && what != "" {
		return missingPrices("finallyLimits.cost", what)
	}
	for _, n := range nodesOf(r.Spec) {
		if what := r.modelWithoutPricesOf(n); n.Limits != nil && n.Limits.Cost != nil && what != "" {
			return missingPrices("node "+n.Name+": limits.cost", what)
		}
	}
	return nil
}

// CheckCost returns an error if a Run limits its cost and a Model of the Workflow, or of a nested one, has no
// prices, otherwise nil.
func (r *Revision) CheckCost(l *v1alpha1.Limits) *snapshot.NotReadyError {
	var models []task.Model
	r.each(map[string]bool{}, func(of *Revision) {
		for _, name := range sortedKeys(of.Agents) {
			if s := of.Agents[name].Snapshot; s != nil {
				models = append(models, s.Snapshot.Models...)
			}
		}
	})
	return snapshot.CheckCost(l, models)
}

// missingPrices returns the problem of a limit of cost without prices of a Model.
func missingPrices(field, what string) *snapshot.NotReadyError {
	return notReady(v1alpha1.ReasonPricesMissing, "%s needs to know what %s costs. Set spec.prices of that Model, or remove the limit", field, what)
}

// modelWithoutPricesOf is modelWithoutPrices for one node.
func (r *Revision) modelWithoutPricesOf(n v1alpha1.Node) string {
	if nested := r.Workflows[string(n.Workflow)]; nested != nil {
		return nested.modelWithoutPrices()
	}
	return r.Agents[string(n.Agent)].modelWithoutPrices(string(n.Agent))
}

// modelWithoutPrices returns a Model without prices that one of the Agents may use;
// empty: there is none.
func (r *Revision) modelWithoutPrices() string {
	for _, name := range sortedKeys(r.Agents) {
		if what := r.Agents[name].modelWithoutPrices(name); what != "" {
			return what
		}
	}
	for _, name := range sortedKeys(r.Workflows) {
		if what := r.Workflows[name].modelWithoutPrices(); what != "" {
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

// Warnings returns what is likely wrong in a Workflow that is Ready: references in the syntax of
// another tool, and approvals for which no node waits.
func Warnings(v *Revision) []string {
	var out []string
	if p, err := Compile(v); err == nil {
		if names := p.UnawaitedApprovals(); len(names) > 0 {
			out = append(out, fmt.Sprintf("no node waits for the approval %s: add it to dependsOn of the nodes that must wait for it", strings.Join(names, ", ")))
		}
	}
	return append(append(out, limitWarnings(v.Spec)...), foreign(v.Spec)...)
}

// limitWarnings returns which limits contradict those beside or above them.
func limitWarnings(spec v1alpha1.WorkflowSpec) []string {
	var whole v1alpha1.WorkflowLimits
	if spec.Limits != nil {
		whole = *spec.Limits
	}
	var out []string
	if isOneByOne(spec) {
		out = snapshot.LimitWarnings("spec.limits", v1alpha1.Limits{Duration: whole.Duration, Deadline: whole.Deadline})
	}
	for _, n := range nodesOf(spec) {
		if n.Limits == nil {
			continue
		}
		at := location{node: n.Name}.prefix()
		for _, w := range append(snapshot.LimitWarnings("limits", *n.Limits), snapshot.NodeLimitWarnings(*n.Limits, whole)...) {
			out = append(out, at+w)
		}
	}
	return out
}

// isOneByOne reports whether no two nodes are active at the same time. If some are, limits.duration counts their time
// several times, so that it may be longer than limits.deadline.
func isOneByOne(spec v1alpha1.WorkflowSpec) bool {
	isOne := len(spec.Nodes) == 1 || spec.Order == v1alpha1.OrderSequential
	return isOne && !slices.ContainsFunc(spec.Nodes, func(n v1alpha1.Node) bool { return n.ForEach != nil || n.Workflow != "" })
}

// foreign reports the first reference of each prompt and message that is written in
// the syntax of another tool, {{ x }} or $(params.x): a model would get it as text.
func foreign(spec v1alpha1.WorkflowSpec) []string {
	var out []string
	for _, n := range nodesOf(spec) {
		field, text, becomes := "prompt", n.Prompt, "sent to the model"
		if n.Approval != nil {
			field, text, becomes = "approval.message", n.Approval.Message, "shown"
		}
		if found := template.FindForeign(text); len(found) > 0 {
			f := found[0]
			out = append(out, fmt.Sprintf("%s: %s%s is %s as text; write ${{ %s }}%s",
				location{n.Name, field}, position(&expr.Error{Line: f.Line, Column: f.Column}), f.Text, becomes, reference(f), template.OtherForeign(found)))
		}
	}
	return out
}

// reference returns the expression for a reference of another tool.
func reference(f template.Foreign) string {
	switch whole := strings.Join(f.Path, "."); f.Path[0] {
	case "run", "self", "previous", "item", "index", "iteration":
		return whole
	case "nodes":
		return fieldOf(whole)
	case "tasks", "steps":
		if len(f.Path) > 1 {
			return "nodes." + fieldOf(f.Path[1]) + ".output"
		}
	}
	return "input." + f.Name()
}

// Values are the values of the variables of expressions.
type Values struct {
	Input json.RawMessage // with its defaults
	Run   RunValues
	Nodes map[string]NodeValue // by name
}

// RunValues is the variable run. Only finally can read Reason and Message, of how the
// Run is going to end.
type RunValues struct{ Namespace, Name, UID, Reason, Message string }

// A NodeValue is the result of a node, an item or an iteration.
type NodeValue struct {
	State  graph.State
	Counts graph.Status
	Output json.RawMessage // nil: there is none
	Text   *string         // nil: there is none
	// Deleted names a Run that succeeded and was deleted, so that its output cannot be
	// read any more; empty: there is none.
	Deleted string
	// Items has the results of forEach by index.
	Items []NodeValue
}

// vars returns the variables of an expression, with the nodes that it reads.
func (p *Program) vars(n *node, v Values, reads []string, more map[string]any) map[string]any {
	out := map[string]any{"input": v.Input}
	if len(v.Input) == 0 {
		out["input"] = json.RawMessage("{}")
	}
	run := map[string]any{"namespace": v.Run.Namespace, "name": v.Run.Name, "uid": v.Run.UID}
	if n != nil && n.final {
		run["reason"], run["message"] = v.Run.Reason, v.Run.Message
	}
	out["run"] = run
	nodes := map[string]any{}
	for _, name := range sortedKeys(p.nodes) {
		for _, field := range reads {
			if fieldOf(name) == field {
				nodes[field] = p.nodes[name].value(v.Nodes[name], n != nil && n.final)
			}
		}
	}
	out["nodes"] = nodes
	maps.Copy(out, more)
	return out
}

// value returns nodes.x.
func (n *node) value(v NodeValue, inFinally bool) map[string]any {
	state := v.State
	if state == "" {
		state = graph.Waiting
	}
	c := v.Counts
	out := map[string]any{
		"state":  string(state),
		"counts": map[string]any{"total": c.Total, "started": c.Started, "succeeded": c.Succeeded, "failed": c.Failed, "skipped": c.Skipped},
	}
	optional := inFinally || mayHaveNoOutput(n.spec)
	output, answer := orAbsent(v.Output), text(v.Text)
	if n.spec.ForEach != nil {
		output, answer = itemLists(v)
		if optional && !n.hasItemLists(v.State) {
			output, answer = expr.Absent, expr.Absent
		}
	}
	if n.output {
		out["output"] = output
	}
	if n.text {
		out["text"] = answer
	}
	return out
}

// mayHaveNoOutput reports whether the Run may continue without the output of a node,
// which is optional then.
func mayHaveNoOutput(n v1alpha1.Node) bool {
	return n.When != "" || n.OnFailure == v1alpha1.OnFailureContinue
}

// itemLists returns the outputs and texts of items. Those of failed items are absent.
func itemLists(v NodeValue) (outputs, texts any) {
	var all, answers []any
	for _, item := range v.Items {
		all = append(all, orAbsent(item.Output))
		answers = append(answers, text(item.Text))
	}
	return all, answers
}

// hasItemLists reports whether a node with items has outputs: all items succeeded, or
// they may fail.
func (n *node) hasItemLists(state graph.State) bool {
	return state == graph.Succeeded || state == graph.Failed && n.spec.OnFailure == v1alpha1.OnFailureContinue
}

// iterationValue returns self or previous.
func (n *node) iterationValue(v NodeValue) map[string]any {
	out := map[string]any{"succeeded": v.State == graph.Succeeded}
	if n.output {
		out["output"] = orAbsent(v.Output)
	}
	if n.text {
		out["text"] = text(v.Text)
	}
	return out
}

func orAbsent(raw json.RawMessage) any {
	if raw == nil {
		return expr.Absent
	}
	return raw
}

func text(t *string) any {
	if t == nil {
		return expr.Absent
	}
	return *t
}

// withDeleted adds to the error of an expression which Runs were deleted of the nodes
// that the expression reads.
func (p *Program) withDeleted(err error, v Values, reads []string) error {
	for _, name := range sortedKeys(p.nodes) {
		if run := v.Nodes[name].Deleted; err != nil && run != "" && slices.Contains(reads, fieldOf(name)) {
			err = fmt.Errorf("%w: Run %s of node %s was deleted", err, run, name)
		}
	}
	return err
}
