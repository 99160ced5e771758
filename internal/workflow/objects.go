package workflow

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
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
func (d *nestingSearch) longestFrom(name string) (chain, cycle []string) {
	if chain, done := d.below[name]; done {
		return chain, nil
	}
	if i := slices.Index(d.path, name); i >= 0 {
		return nil, append(slices.Clone(d.path[i:]), name)
	}
	d.path = append(d.path, name)
	var longest []string
	for _, n := range d.objects.namedBy(name) {
		next, cycle := d.longestFrom(n)
		if len(cycle) > 0 {
			return nil, cycle
		}
		if len(next) > len(longest) {
			longest = next
		}
	}
	d.path = d.path[:len(d.path)-1]
	d.below[name] = append([]string{name}, longest...)
	return d.below[name], nil
}
