package workflowrun

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// settleReused ends some of the children that have the result of another Run, as their controller does.
func (c *trial) settleReused() {
	for _, name := range slices.Sorted(maps.Keys(c.children)) {
		if child := c.children[name]; isReused(child) && !runstatus.IsFinished(child) && c.r.IntN(2) == 0 {
			reuses(name)(c.cluster)
		}
	}
}

// Whatever happened to a Run, its retry ends, and does again what it must and no more.
func TestARetryDoesAgainWhatItMustAndNoMore(t *testing.T) {
	reused, all, approvals := 0, 0, 0
	for seed := range gen.Seeds(24) {
		v := invented(t, rand.New(rand.NewPCG(seed, 5)))
		for life := range uint64(12) {
			first := live(t, v, seed*1000+life, nil, func(r *v1alpha1.Run) { r.Name, r.UID = "w", "uid-w" })
			if succeeded(first.run) || first.run.Status.WorkflowRevision == "" {
				continue
			}
			first.endAll()
			second := live(t, v, seed*1000+life+500, first.cluster, retries(""))
			second.isRetry()
			approvals += second.isApprovedAgain()
			for _, child := range second.children {
				if all++; isReused(child) {
					reused++
				}
			}
		}
	}
	if reused == 0 || reused == all || approvals == 0 {
		t.Errorf("%d of %d Runs and %d approvals were reused", reused, all, approvals)
	}
}

// endAll ends the children that were stopped with the Run.
func (c *trial) endAll() {
	for name, child := range c.children {
		if !runstatus.IsFinished(child) {
			fails(name, v1alpha1.ReasonStopped, "Stopped")(c.cluster)
		}
	}
}

// isRetry checks what the Run took over of the Run before. The evaluation of its last state has the rules.
func (c *trial) isRetry() {
	c.t.Helper()
	for _, child := range c.children {
		at := keyOf(child)
		had := c.before.asSource(c.run).children[at]
		mayReuse := had != nil && succeeded(had) && had.Annotations[v1alpha1.AnnotationInputHash] == child.Annotations[v1alpha1.AnnotationInputHash] && c.mayReuse(at)
		if isReused(child) != mayReuse && !c.removed {
			c.t.Errorf("seed %d: %v is reused: %t, want %t", c.seed, at, isReused(child), mayReuse)
		}
		if isReused(child) && child.Status.Progress != nil && child.Status.Progress.Usage.TotalTokens > 0 {
			c.t.Errorf("seed %d: %v is reused, and used %d tokens", c.seed, at, child.Status.Progress.Usage.TotalTokens)
		}
	}
}

// isApprovedAgain checks whose approvals the Run went by.
func (c *trial) isApprovedAgain() (reused int) {
	c.t.Helper()
	for _, n := range c.observed().nodes() {
		status := recordedState(c.observed(), n.Name)
		if n.Approval == nil || status.State == graph.Waiting || status.State == graph.NotReached || status.State == graph.Skipped || c.removed {
			continue
		}
		had := decidedFor(c.before.run.Status.Progress.Decided, requestOf(n.Name))
		want := had != nil && had.Type == v1alpha1.DecisionApprove && c.mayReuse(childKey{node: n.Name})
		if got := c.reusesApproval(n.Name); got != want {
			c.t.Errorf("seed %d: the approval of %s is reused: %t, want %t", c.seed, n.Name, got, want)
		} else if got {
			reused++
		}
	}
	return reused
}

func (c *trial) reusesApproval(node string) bool {
	done := decidedFor(c.run.Status.Progress.Decided, requestOf(node))
	return done != nil && decisions.IsReused(c.run, *done)
}

// mayReuse reports whether nothing ran again on which a child rests.
func (c *trial) mayReuse(at childKey) bool {
	if c.observed().isFinally(at.node) || volumeRoot(c.observed(), at.node) != "" {
		return false
	}
	for _, before := range c.program().Graph.Before(at.node) {
		status := recordedState(c.observed(), before)
		if c.program().Node(before).Approval != nil && status.State != graph.Skipped && !c.reusesApproval(before) || status.State == graph.Failed {
			return false
		}
	}
	for _, child := range c.children {
		other := keyOf(child)
		before := slices.Contains(c.program().Graph.Before(at.node), other.node) ||
			c.program().Node(at.node).Loop != nil && other.node == at.node && other.index < at.index
		if before && !isReused(child) {
			return false
		}
	}
	return true
}

func TestWhichRunsAreNotRetried(t *testing.T) {
	is := func(mod func(*v1alpha1.Run)) func(*cluster) { return func(c *cluster) { mod(c.run) } }
	was := func(mod func(*v1alpha1.Run)) func(*cluster) { return func(c *cluster) { mod(c.before.run) } }
	for name, tc := range map[string]struct {
		world  func(*cluster)
		reason string // empty: it starts
		want   string
	}{
		"the same":              {func(*cluster) {}, v1alpha1.ReasonRunning, "Beginning"},
		"a Run of an Agent":     {was(func(r *v1alpha1.Run) { r.Spec.Workflow, r.Spec.Agent = "", "fixer" }), v1alpha1.ReasonMisconfigured, "Run w is a Run of Agent fixer, which a workflow cannot retry. Create a Run with spec.agent in place of spec.workflow, or name a Run of Workflow release"},
		"another Workflow":      {was(func(r *v1alpha1.Run) { r.Spec.Workflow = "build" }), v1alpha1.ReasonMisconfigured, "Run w is a Run of Workflow build, and this is a Run of Workflow release. Create a Run of Workflow build, or name a Run of Workflow release"},
		"another user":          {was(func(r *v1alpha1.Run) { r.Spec.User = "ann" }), v1alpha1.ReasonMisconfigured, `spec.user is "", and that of Run w is "ann". A Run can be retried for the same user only: create a Run with that spec.user`},
		"another input":         {is(func(r *v1alpha1.Run) { files(r); r.Spec.Input.Raw = []byte(`{"files":["x.go"]}`) }), v1alpha1.ReasonMisconfigured, "spec.input differs from the input of Run w, or is missing. Create a Run with the same input (kubectl get run w -n team-a -o jsonpath='{.spec.input}'), or without continueFrom"},
		"the input is missing":  {is(func(r *v1alpha1.Run) { r.Spec.Input = nil }), v1alpha1.ReasonMisconfigured, ""},
		"the input in JSON":     {is(func(r *v1alpha1.Run) { r.Spec.Input.Raw = []byte(`{ "files": ["x.go", "y.go", "z.go"] }`) }), v1alpha1.ReasonRunning, "Beginning"},
		"the Run of the UID":    {is(func(r *v1alpha1.Run) { r.Spec.ContinueFrom.UID = "uid-w" }), v1alpha1.ReasonRunning, "Beginning"},
		"another of its name":   {is(func(r *v1alpha1.Run) { r.Spec.ContinueFrom.UID = "deleted" }), v1alpha1.ReasonNothingToContinue, "Run w (spec.continueFrom.run) was deleted, and another Run has its name now: its UID is uid-w, and spec.continueFrom.uid is deleted. Create a Run without continueFrom, or with the uid of the Run to continue"},
		"a node":                {is(retries("a")), v1alpha1.ReasonRunning, "Beginning"},
		"a node that is not":    {is(retries("deploy")), v1alpha1.ReasonMisconfigured, "spec.continueFrom.node is deploy, and Workflow release has no such node. Create a Run that names one of: a, look, sum"},
		"a restored Run":        {was(func(r *v1alpha1.Run) { endsWith(r, v1alpha1.ReasonRestored) }), v1alpha1.ReasonNothingToContinue, "Run w was restored from a backup, without its child Runs. Create a Run without continueFrom"},
		"a Run before it began": {was(func(r *v1alpha1.Run) { endsWith(r, v1alpha1.ReasonPendingTimeout); r.Status.WorkflowRevision = "" }), v1alpha1.ReasonNothingToContinue, "Run w ended before it started (PendingTimeout), and has nothing to retry. Create a Run without continueFrom"},
		"a long chain":          {was(func(r *v1alpha1.Run) { r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: make([]string, 20)} }), v1alpha1.ReasonMisconfigured, "A Run can continue at most 20 Runs, one after the other, and Run w has continued as many. Create a Run without continueFrom"},
		"the longest chain":     {was(func(r *v1alpha1.Run) { r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: make([]string, 19)} }), v1alpha1.ReasonRunning, "Beginning"},
		"a child still stops":   {func(c *cluster) { c.before.children["w-look-2"].Status.CompletionTime = nil }, v1alpha1.ReasonQueued, "Waiting for the end of Run w and its child Runs, which this Run retries"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(whole(t, reviewEach), files, retries(""))
			c.before = playBefore(t, story{spec: reviewEach, run: files, beats: []beat{
				at(0, "", ends("w-a", 1)), at(0, "", fails("w-look-0", v1alpha1.ReasonStuck, "it goes in circles")), at(0, "", isStopped("w-look-1")), at(0, "", isStopped("w-look-2")),
			}})
			tc.world(c)
			p := decide(c.observed())
			if p.Reason != tc.reason || tc.want != "" && p.Message != tc.want {
				t.Errorf("got %s: %s\nwant %s: %s", p.Reason, p.Message, tc.reason, tc.want)
			}
			if p.Settles() == (p.storeRevision != nil) && tc.reason != v1alpha1.ReasonQueued {
				t.Errorf("the Run both ends and starts, or neither: %+v", p.Outcome)
			}
		})
	}
}

// endsWith makes a Run end with a reason.
func endsWith(r *v1alpha1.Run, reason string) {
	runstatus.Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: "It ended."}.WriteStatus(&r.Status, r, gen.Noon)
}
