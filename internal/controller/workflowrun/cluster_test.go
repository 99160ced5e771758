package workflowrun

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// A cluster is what stories play on: it does in memory what act and report do on
// a real one, and what becomes of children is scripted.
type cluster struct {
	run     *v1alpha1.Run
	version *workflow.Revision
	missing string
	// unsupported is why the operator cannot read the version.
	unsupported *stored.UnsupportedError
	children    map[string]*v1alpha1.Run
	made        map[childKey]int // how often
	hidden      map[string]bool
	decided     []v1alpha1.Decision
	refuse      func(*v1alpha1.Run) error // what the API server says to a child
	writes      int                       // of the status
	gone        bool
	away        bool   // there is no operator
	policies    string // admission policies that are missing
	now         time.Time
	before      *cluster // with the Run that the Run retries; nil: it does not exist
}

// whole is a Workflow of a text, with the Agents worker, whose output is {n: int},
// and writer, which has a text only, and the Workflows that are named nested.
func whole(t *testing.T, text string, nested ...*v1alpha1.Workflow) *workflow.Revision {
	t.Helper()
	w := written(t, "release", text)
	o := workflow.Objects{Workflows: map[string]*v1alpha1.Workflow{w.Name: w}, Agents: map[string]*v1alpha1.Agent{}, AgentObjects: map[string]snapshot.Objects{}}
	for _, n := range nested {
		o.Workflows[n.Name] = n
	}
	for _, name := range []string{"worker", "writer"} {
		o.Agents[name] = gen.Agent(func(a *v1alpha1.Agent) {
			a.Name = name
			a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume
			if name == "worker" {
				a.Spec.Output = &v1alpha1.Output{Schema: runtime.RawExtension{Raw: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}}
			}
		})
		o.AgentObjects[name] = gen.Objects()
	}
	v, err := workflow.Of(w, o)
	if err != nil {
		t.Fatalf("making a version: %v", err)
	}
	return v
}

func written(t *testing.T, name, text string) *v1alpha1.Workflow {
	t.Helper()
	w := &v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name}}
	if err := yaml.UnmarshalStrict([]byte(text), &w.Spec); err != nil {
		t.Fatalf("reading a Workflow: %v", err)
	}
	return w
}

// ofWorkflow makes a Run one of the Workflow release.
func ofWorkflow(r *v1alpha1.Run) {
	r.Spec.Agent, r.Spec.Prompt, r.Spec.Workflow, r.Spec.MaxRetries, r.Spec.MaxDisruptions = "", "", "release", nil, nil
}

func newCluster(v *workflow.Revision, mods ...func(*v1alpha1.Run)) *cluster {
	return &cluster{
		run:      gen.Run(append([]func(*v1alpha1.Run){ofWorkflow}, mods...)...),
		version:  v,
		children: map[string]*v1alpha1.Run{},
		made:     map[childKey]int{},
		hidden:   map[string]bool{},
		now:      gen.Noon,
	}
}

func (c *cluster) observed() state {
	s := state{run: c.run.DeepCopy(), revision: c.version, notReadyMessage: c.missing, unsupported: c.unsupported, decisions: c.decided, missingPolicies: c.policies, now: c.now}
	if c.version == nil {
		return s
	}
	s.program, _ = workflow.Compile(c.version)
	if c.run.Spec.ContinueFrom != nil {
		s.source = c.before.asSource(c.run)
		for b := c.before; b != nil; b = b.before {
			s.decisions = slices.Concat(s.decisions, b.decided)
		}
	}
	shown := 0
	for _, child := range c.children {
		if isChildOf(child, c.run) && !c.hidden[child.Name] {
			kept, _ := objectcache.Run(child)
			s.children = append(s.children, kept.(*v1alpha1.Run))
			shown++
		}
	}
	slices.SortFunc(s.children, func(a, b *v1alpha1.Run) int { return cmp.Compare(a.Name, b.Name) })
	missing, late := missingChildren(s)
	s.cacheBehind = late || len(missing) > 0 && len(c.hidden) > 0
	s.missingDecision = decisions.FirstMissing(c.run, s.decisions)
	return s
}

// step decides once and does it; it returns what was done.
func (c *cluster) step() plan {
	s, p := c.acted()
	if p.deleteRun {
		c.gone = true
		return p
	}
	c.report(s, p)
	return p
}

// acted is a step up to its report: an operator may die before that.
func (c *cluster) acted() (state, plan) {
	s := c.observed()
	p := decide(s)
	for _, o := range p.setStates {
		told := c.children[o.Child.Name].DeepCopy()
		told.Spec.DesiredState = o.To
		delete(told.Annotations, v1alpha1.AnnotationPaused)
		if o.PausedByParent {
			told.Annotations[v1alpha1.AnnotationPaused] = "true"
		}
		c.children[o.Child.Name] = told
	}
	for _, d := range p.own {
		for b := c.before; b != nil; b = b.before {
			b.own(d.Name, c.run)
		}
	}
	if len(p.create) == 0 {
		return s, p
	}
	f, err := createAll(p.create, func(batch []newChild) (out []created) {
		for _, one := range batch {
			run, err := c.make(one)
			out = append(out, created{run, err})
		}
		return out
	})
	if err != nil {
		panic(err) // make returns refusals, which are facts and no errors
	}
	s = s.withFacts(f)
	again := decideAgain(s)
	again.create, again.setStates = nil, p.setStates // for those who tell
	for _, one := range p.create {
		if _, no := s.refused[one.childKey]; !no {
			again.create = append(again.create, one)
		}
	}
	return s, again
}

func (c *cluster) report(s state, p plan) {
	want := statusOf(s, p)
	if !equal(c.run.Status, want) {
		c.writes++
	}
	c.run.Status = want
	c.markApplied()
	for _, n := range want.Nodes {
		if n.Reason != "" && !slices.Contains(v1alpha1.NodeReasons, n.Reason) {
			panic(fmt.Sprintf("the schema refuses the reason %q of node %s", n.Reason, n.Name))
		}
	}
}

// markApplied is what the controller of Decisions does after a Run acted on them.
func (c *cluster) markApplied() {
	for i := range c.decided {
		if d := &c.decided[i]; slices.ContainsFunc(c.observed().decided(), func(done v1alpha1.DecidedRequest) bool { return done.Name == d.Name }) {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue}}
		}
	}
}

func equal(a, b v1alpha1.RunStatus) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// make makes a child, or finds it, as the reconciler does.
func (c *cluster) make(one newChild) (*v1alpha1.Run, error) {
	fresh := one.Run.DeepCopy()
	if c.refuse != nil {
		if err := c.refuse(fresh); err != nil {
			return nil, err
		}
	}
	for _, name := range one.Names {
		fresh.Name = name
		other := c.children[name]
		if other == nil {
			c.made[one.childKey]++
			fresh.UID = types.UID(fmt.Sprintf("uid-%s-%d", name, c.made[one.childKey]))
			fresh.CreationTimestamp = metav1.NewTime(c.now)
			c.children[name] = fresh
			return fresh, nil
		}
		if one.Is(other) {
			return other, nil
		}
	}
	return nil, &children.NamesTakenError{Names: one.Names}
}

// child is a child by its name; a script that names one that is not there is
// wrong.
func (c *cluster) child(name string) *v1alpha1.Run {
	if c.children[name] == nil {
		panic("the script speaks of Run " + name + ", which is not there")
	}
	return c.children[name]
}

// become puts a child into a state. What others hold of it stays as it was.
func (c *cluster) become(name string, o runstatus.Outcome, mods ...func(*v1alpha1.RunProgress)) {
	child := c.child(name).DeepCopy()
	p := child.Status.Progress
	if p == nil {
		p = &v1alpha1.RunProgress{}
	}
	for _, mod := range mods {
		mod(p)
	}
	child.Status.Progress = p
	o.WriteStatus(&child.Status, child, c.now)
	c.children[name] = child
}

// What children do, as verbs of a script.

func works(name string, mods ...func(*v1alpha1.RunProgress)) func(*cluster) {
	return func(c *cluster) {
		c.become(name, runstatus.Outcome{Reason: v1alpha1.ReasonRunning, Message: "Attempt 1 is at work"}, mods...)
	}
}

// ends is a child that did its work: a worker with its number.
func ends(name string, n int, mods ...func(*v1alpha1.RunProgress)) func(*cluster) {
	return func(c *cluster) {
		c.become(name, runstatus.Outcome{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished, Message: "The work is done"}, append([]func(*v1alpha1.RunProgress){func(p *v1alpha1.RunProgress) {
			p.Result = &v1alpha1.Result{Committed: true, Reason: v1alpha1.ReasonFinished, Text: fmt.Sprintf("I say %d", n), Output: fmt.Sprintf(`{"n":%d}`, n)}
		}}, mods...)...)
	}
}

func fails(name, reason, message string, mods ...func(*v1alpha1.RunProgress)) func(*cluster) {
	return func(c *cluster) {
		c.become(name, runstatus.Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: message}, mods...)
	}
}

func isStopped(name string) func(*cluster) {
	return func(c *cluster) {
		if c.child(name).Spec.DesiredState != v1alpha1.DesiredStopped {
			panic("the script says that " + name + " stops, and nobody told it to")
		}
		fails(name, v1alpha1.ReasonStopped, "Stopped by spec.desiredState")(c)
	}
}

func awaits(name, reason, message string) func(*cluster) {
	return func(c *cluster) { c.become(name, runstatus.Outcome{Reason: reason, Message: message}) }
}

func isDeleted(name string) func(*cluster) {
	return func(c *cluster) {
		c.child(name)
		delete(c.children, name)
	}
}

// spends is what a child used: tokens, and as many cents, in so many steps and
// seconds.
func spends(tokens int64) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) {
		cost := tokens * 10
		p.Counts = v1alpha1.Counts{Steps: tokens / 10, ModelCalls: tokens / 10, ToolCalls: 1}
		p.Usage = v1alpha1.Usage{InputTokens: tokens, TotalTokens: tokens, CostMicroUSD: &cost, DurationSeconds: tokens / 10}
	}
}

// What people do.

func wants(state v1alpha1.DesiredState) func(*cluster) {
	return func(c *cluster) { c.run.Spec.DesiredState, c.run.Generation = state, c.run.Generation+1 }
}

// own makes a Run an owner of a Decision, as the operator does.
func (c *cluster) own(name string, run *v1alpha1.Run) {
	for i := range c.decided {
		if d := &c.decided[i]; d.Name == name {
			d.OwnerReferences = append(slices.Clip(d.OwnerReferences), metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: run.Name, UID: run.UID})
		}
	}
}

// decides is a person's Decision on what a node asks.
// operatorLeaves takes the operator away.
func operatorLeaves(c *cluster) { c.away = true }

// operatorReturns brings it back; it then looks at everything.
func operatorReturns(c *cluster) { c.away = false }

// lacks deletes admission policies; empty: all are installed.
func lacks(policies string) func(*cluster) {
	return func(c *cluster) { c.policies = policies }
}

// disowned makes the last Decision one that the operator has not made the Run own yet, and owned
// makes it the Run's.
func disowned(c *cluster) { c.decided[len(c.decided)-1].OwnerReferences = nil }

func owned(c *cluster) {
	c.decided[len(c.decided)-1].OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: c.run.Name, UID: c.run.UID}}
}

func decides(node string, kind v1alpha1.DecisionType, mods ...func(*v1alpha1.DecisionSpec)) func(*cluster) {
	return func(c *cluster) {
		asked := request(c.observed().pending(), requestOf(node))
		if asked == nil {
			panic("the script decides on " + node + ", which asks nothing")
		}
		d := v1alpha1.Decision{Spec: v1alpha1.DecisionSpec{Run: c.run.Name, Request: asked.ID, Type: kind, By: "ann"}}
		d.Name, d.Namespace, d.CreationTimestamp = c.run.Name+"."+asked.ID, c.run.Namespace, metav1.NewTime(c.now)
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: c.run.Name, UID: c.run.UID}}
		for _, mod := range mods {
			mod(&d.Spec)
		}
		c.decided = append(c.decided, d)
	}
}
