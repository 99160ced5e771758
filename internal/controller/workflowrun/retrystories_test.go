package workflowrun

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// asSource is the cluster's Run with its children, as the cache of the operator shows them.
func (c *cluster) asSource(of *v1alpha1.Run) *source {
	out := &source{children: map[childKey]*v1alpha1.Run{}}
	if from := of.Status.ContinuedFrom; c == nil || c.gone || from != nil && from.UID != string(c.run.UID) {
		return out
	}
	own, _ := objectcache.Run(c.run.DeepCopy())
	out.run = own.(*v1alpha1.Run)
	for _, child := range c.children {
		kept, _ := objectcache.Run(child)
		out.children[keyOf(child)] = kept.(*v1alpha1.Run)
	}
	return out
}

// delete is the deletion of the cluster's Run: the garbage collector deletes its children, and its Decisions unless
// another Run owns them.
func (c *cluster) delete() {
	c.gone, c.children = true, nil
	for i := range c.decided {
		c.decided[i].OwnerReferences = slices.DeleteFunc(slices.Clone(c.decided[i].OwnerReferences), func(o metav1.OwnerReference) bool { return o.UID == c.run.UID })
	}
	c.decided = slices.DeleteFunc(c.decided, func(d v1alpha1.Decision) bool { return len(d.OwnerReferences) == 0 })
}

// ended is how many Runs of the cluster have ended; -1: its Run does not exist.
func (c *cluster) ended() int {
	if c == nil || c.gone {
		return -1
	}
	n := 0
	for _, run := range c.children {
		if runstatus.IsFinished(run) {
			n++
		}
	}
	if runstatus.IsFinished(c.run) {
		n++
	}
	return n
}

// rest lets the controller work until it has nothing to do.
func (c *cluster) rest() *cluster {
	for range 20 {
		if p := c.step(); p.deleteRun {
			break
		}
	}
	return c
}

// playBefore plays the beats of the Run w, without a story of it.
func playBefore(t *testing.T, s story) *cluster {
	t.Helper()
	var nested []*v1alpha1.Workflow
	for name, text := range s.nested {
		nested = append(nested, written(t, name, text))
	}
	return played(whole(t, s.spec, nested...), s.run, s.beats...)
}

func played(v *workflow.Revision, mod func(*v1alpha1.Run), beats ...beat) *cluster {
	mods := []func(*v1alpha1.Run){func(r *v1alpha1.Run) { r.Name, r.UID = "w", "uid-w" }}
	if mod != nil {
		mods = append(mods, mod)
	}
	c := newCluster(v, mods...).rest()
	for _, b := range beats {
		b.do(c)
		c.rest()
	}
	return c
}

// retries makes a Run retry the Run w; empty: all that did not succeed, otherwise a node too.
func retries(node string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "w", Node: node} }
}

// reuses is a child Run that has the result of another, as its controller ends it.
func reuses(names ...string) func(*cluster) {
	return func(c *cluster) {
		for _, name := range names {
			child := c.child(name).DeepCopy()
			var reused *v1alpha1.Run
			for _, had := range c.before.children {
				if string(had.UID) == children.ReuseOf(child) {
					kept, _ := objectcache.Run(had)
					reused = kept.(*v1alpha1.Run)
				}
			}
			outcome, progress := children.Reuse(child, reused)
			child.Status.Progress = progress
			outcome.WriteStatus(&child.Status, child, c.now)
			c.children[name] = child
		}
	}
}

// failedDiamond is a Run whose node right failed.
var failedDiamond = &story{spec: diamond, beats: []beat{
	at(0, "", ends("w-a", 1, spends(100))),
	at(0, "", ends("w-left", 2, spends(100))),
	at(0, "", fails("w-right", v1alpha1.ReasonStuck, "it goes in circles")),
	at(0, "", ends("w-clean", 0)),
}}

// approvedThenFailed is a Run that failed after ann had approved.
var approvedThenFailed = &story{spec: asks, beats: []beat{
	at(0, "", ends("w-a", 1)),
	at(0, "", decides("gate", v1alpha1.DecisionApprove)),
	at(0, "", fails("w-ship", v1alpha1.ReasonStuck, "it goes in circles")),
}}

const shipAndTell = asks + `- {name: tell, agent: writer, prompt: "tell", dependsOn: [ship]}
`

const reviewEach = `
input: {fields: [{name: files, type: List}]}
nodes:
- {name: a, agent: worker, prompt: "count"}
- {name: look, agent: worker, prompt: "look at ${{ item }}", forEach: {items: input.files, maxParallel: 3}, dependsOn: [a]}
- {name: sum, agent: writer, prompt: "${{ nodes.look.counts.succeeded }}"}
`

func files(r *v1alpha1.Run) {
	r.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"files":["x.go","y.go","z.go"]}`)}
}

const (
	threeThenLast = `
nodes:
- {name: a, agent: worker, prompt: "a"}
- {name: slow, agent: worker, prompt: "slow"}
- {name: b, agent: worker, prompt: "b", dependsOn: [a, slow]}
- {name: d, agent: worker, prompt: "d", dependsOn: [b]}
`
	twoFinally = `
nodes:
- {name: a, agent: worker, prompt: "a"}
finally:
- {name: clean, agent: writer, prompt: "clean"}
- {name: report, agent: writer, prompt: "report"}
`
)

const drafts = `
nodes:
- name: draft
  agent: worker
  prompt: "better than ${{ previous.?output.?n.orValue(0) }}"
  loop: {until: "self.output.n > 2", maxIterations: 3}
- {name: ship, agent: writer, prompt: "ship ${{ nodes.draft.output.n }}"}
`

// retryStories are those of a Run that retries the Run w.
var retryStories = map[string]story{
	"retry": {
		title:  "a node failed: it runs again, with what waits for it and finally",
		spec:   diamond,
		run:    retries(""),
		before: failedDiamond,
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*second, "x-left has its result", reuses("x-left")),
			at(3*second, "x-right ends", ends("x-right", 3, spends(300))),
			at(4*second, "x-judge ends", ends("x-judge", 0, spends(50))),
			at(5*second, "x-clean ends", ends("x-clean", 0)),
		},
	},
	"retry-node": {
		title: "all succeeded: a node runs again, with what waits for it",
		spec:  diamond,
		run:   retries("right"),
		before: &story{spec: diamond, beats: []beat{
			at(0, "", ends("w-a", 1)), at(0, "", ends("w-left", 2)), at(0, "", ends("w-right", 3)), at(0, "", ends("w-judge", 0)), at(0, "", ends("w-clean", 0)),
		}},
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*second, "x-left has its result", reuses("x-left")),
			at(3*second, "x-right ends", ends("x-right", 4)),
			at(4*second, "x-judge ends", ends("x-judge", 0)),
			at(5*second, "x-clean ends", ends("x-clean", 0)),
		},
	},
	"retry-changed": {
		title: "the prompt of a node that succeeded has changed: it runs again, with what waits for it",
		spec:  "nodes:\n- {name: a, agent: worker, prompt: \"count again\"}\n- {name: b, agent: worker, prompt: \"b\", dependsOn: [a]}\n- {name: c, agent: worker, prompt: \"c\"}\n",
		run:   retries(""),
		before: &story{spec: "nodes:\n- {name: a, agent: worker, prompt: \"count\"}\n- {name: b, agent: worker, prompt: \"b\", dependsOn: [a]}\n- {name: c, agent: worker, prompt: \"c\"}\n- {name: d, agent: worker, prompt: \"d\", dependsOn: [b, c]}\n", beats: []beat{
			at(0, "", ends("w-a", 1)), at(0, "", ends("w-b", 1)), at(0, "", ends("w-c", 1)), at(0, "", fails("w-d", v1alpha1.ReasonStuck, "it goes in circles")),
		}},
		beats: []beat{
			at(1*second, "x-c has its result", reuses("x-c")),
			at(2*second, "x-a ends", ends("x-a", 2)),
			at(3*second, "x-b ends", ends("x-b", 2)),
		},
	},
	"retry-each": {
		title: "an item failed: it runs again, and the others do not",
		spec:  reviewEach,
		run:   func(r *v1alpha1.Run) { files(r); retries("")(r) },
		before: &story{spec: reviewEach, run: files, beats: []beat{
			at(0, "", ends("w-a", 1)),
			at(0, "", ends("w-look-0", 1)),
			at(0, "", ends("w-look-2", 3)),
			at(0, "", fails("w-look-1", v1alpha1.ReasonStuck, "it goes in circles")),
		}},
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*second, "x-look-0 and x-look-2 have theirs", reuses("x-look-0", "x-look-2")),
			at(3*second, "x-look-1 ends", ends("x-look-1", 2)),
			at(4*second, "x-sum ends", ends("x-sum", 0)),
		},
	},
	"retry-loop": {
		title: "the second iteration failed: the first is not done again",
		spec:  drafts,
		run:   retries(""),
		before: &story{spec: drafts, beats: []beat{
			at(0, "", ends("w-draft-1", 1)),
			at(0, "", fails("w-draft-2", v1alpha1.ReasonStuck, "it goes in circles")),
		}},
		beats: []beat{
			at(1*second, "x-draft-1 has its result", reuses("x-draft-1")),
			at(2*second, "x-draft-2 ends", ends("x-draft-2", 3)),
			at(3*second, "x-ship ends", ends("x-ship", 0)),
		},
	},
	"retry-until": {
		title: "until has changed: the loop ends with an earlier iteration",
		spec:  "nodes:\n- {name: draft, agent: worker, prompt: \"better than ${{ previous.?output.?n.orValue(0) }}\", loop: {until: \"self.output.n > 0\", maxIterations: 3}}\n",
		run:   retries(""),
		before: &story{spec: drafts, beats: []beat{
			at(0, "", ends("w-draft-1", 1)), at(0, "", ends("w-draft-2", 2)), at(0, "", ends("w-draft-3", 2)),
		}},
		beats: []beat{at(1*second, "x-draft-1 has its result", reuses("x-draft-1"))},
	},
	"retry-nested": {
		title:  "a nested Workflow failed: it retries in turn",
		nested: map[string]string{"inner": "input: {fields: [{name: count, type: Integer}]}\n" + pipeline},
		spec:   "nodes:\n- {name: a, agent: worker, prompt: \"count\"}\n- {name: deep, workflow: inner, input: {count: {cel: nodes.a.output.n}}}\n",
		run:    retries(""),
		before: &story{
			nested: map[string]string{"inner": "input: {fields: [{name: count, type: Integer}]}\n" + pipeline},
			spec:   "nodes:\n- {name: a, agent: worker, prompt: \"count\"}\n- {name: deep, workflow: inner, input: {count: {cel: nodes.a.output.n}}}\n",
			beats: []beat{
				at(0, "", ends("w-a", 4)),
				at(0, "", fails("w-deep", v1alpha1.ReasonNodeFailed, "Node b failed")),
				at(0, "", func(c *cluster) { c.children["w-deep"].Status.WorkflowRevision = "r" }),
			},
		},
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*second, "x-deep ends", several(ends("x-deep", 0), func(c *cluster) { c.child("x-deep").Status.Progress.Result.Output = `{"total":9}` })),
		},
	},
	"retry-approval": {
		title:  "what a user approved is not asked again",
		spec:   asks,
		run:    retries(""),
		before: approvedThenFailed,
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*minute, "x-ship ends", ends("x-ship", 0)),
		},
	},
	"retry-approval-other": {
		title:  "the message has changed: it is asked again, and what waits for it runs again",
		spec:   strings.Replace(asks, "Ship", "Release", 1),
		run:    retries(""),
		before: approvedThenFailed,
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(1*minute, "ann approves", decides("gate", v1alpha1.DecisionApprove)),
			at(2*minute, "x-ship ends", ends("x-ship", 0)),
		},
	},
	"retry-approval-deleted-run": {
		title:  "the Run that asked is deleted meanwhile: the proof of who approved stays",
		spec:   asks,
		run:    retries(""),
		before: approvedThenFailed,
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(1*minute, "w is deleted", func(c *cluster) { c.before.delete() }),
			at(2*minute, "x-ship ends", ends("x-ship", 0)),
		},
	},
	"retry-approval-forged": {
		title:  "an administrator deletes the Decision, and another takes its name",
		spec:   asks,
		run:    retries(""),
		before: approvedThenFailed,
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(1*minute, "the Decision is made again", func(c *cluster) { c.before.decided[0].CreationTimestamp = metav1.NewTime(c.now) }),
			at(2*minute, "x-ship ends", ends("x-ship", 0)),
		},
	},
	"retry-approval-both": {
		title: "what waits for the approval succeeded: it is reused too, with what ann said",
		spec:  shipAndTell,
		run:   retries(""),
		before: &story{spec: shipAndTell, beats: []beat{
			at(0, "", ends("w-a", 1)),
			at(0, "", decides("gate", v1alpha1.DecisionApprove)),
			at(0, "", ends("w-ship", 0)),
			at(0, "", fails("w-tell", v1alpha1.ReasonStuck, "it goes in circles")),
		}},
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*second, "x-ship has its result", reuses("x-ship")),
			at(2*minute, "x-tell ends", ends("x-tell", 0)),
		},
	},
	"retry-shared-files": {
		title: "nodes that share files run again from the first: the files of the Run before are not taken over",
		spec:  "nodes:\n- {name: build, agent: worker, prompt: go}\n- {name: alone, agent: worker, prompt: go}\n- {name: test, agent: worker, prompt: go, workspace: {from: build}}\n",
		run:   retries(""),
		before: &story{spec: "nodes:\n- {name: build, agent: worker, prompt: go}\n- {name: alone, agent: worker, prompt: go}\n- {name: test, agent: worker, prompt: go, workspace: {from: build}}\n", beats: []beat{
			at(0, "", ends("w-build", 1)), at(0, "", ends("w-alone", 1)), at(0, "", fails("w-test", v1alpha1.ReasonStuck, "it goes in circles")),
		}},
		beats: []beat{
			at(1*second, "x-alone has its result", reuses("x-alone")),
			at(2*second, "x-build ends", ends("x-build", 1)),
			at(3*second, "x-test ends", ends("x-test", 1)),
		},
	},
	"retry-child-deleted": {
		title: "the result of a node was deleted: the node runs again, with what waits for it",
		spec:  pipeline,
		run:   retries(""),
		before: &story{spec: pipeline, beats: []beat{
			at(0, "", ends("w-a", 1)), at(0, "", fails("w-b", v1alpha1.ReasonStuck, "it goes in circles")), at(0, "", isDeleted("w-a")),
		}},
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 2)),
			at(2*second, "x-b ends", ends("x-b", 2)),
		},
	},
	"retry-iteration-deleted": {
		title: "the result of an iteration was deleted: it runs again, with the iterations after it",
		spec:  "nodes:\n- {name: draft, agent: worker, prompt: try, loop: {until: \"self.output.n > 2\", maxIterations: 2}}\n",
		run:   retries(""),
		before: &story{spec: "nodes:\n- {name: draft, agent: worker, prompt: try, loop: {until: \"self.output.n > 2\", maxIterations: 2}}\n", beats: []beat{
			at(0, "", ends("w-draft-1", 1)), at(0, "", ends("w-draft-2", 1)), at(0, "", isDeleted("w-draft-1")),
		}},
		beats: []beat{
			at(1*second, "x-draft-1 ends", ends("x-draft-1", 1)),
			at(2*second, "x-draft-2 ends", ends("x-draft-2", 3)),
		},
	},
	"retry-result-deleted": {
		title: "a reused result is deleted: what waits for its node runs again",
		spec:  threeThenLast,
		run:   retries("d"),
		before: &story{spec: threeThenLast, beats: []beat{
			at(0, "", ends("w-a", 1)), at(0, "", ends("w-slow", 1)), at(0, "", ends("w-b", 1)), at(0, "", ends("w-d", 1)),
		}},
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*second, "x-a is deleted", isDeleted("x-a")),
			at(3*second, "x-slow has its result", reuses("x-slow")),
			at(4*second, "x-b ends", ends("x-b", 1)),
			at(5*second, "x-d ends", ends("x-d", 1)),
		},
	},
	"retry-finally": {
		title: "a node of finally runs again: all other nodes are reused, and finally runs whole",
		spec:  twoFinally,
		run:   retries("clean"),
		before: &story{spec: twoFinally, beats: []beat{
			at(0, "", ends("w-a", 1)), at(0, "", ends("w-clean", 0)), at(0, "", ends("w-report", 0)),
		}},
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*second, "both end", several(ends("x-clean", 0), ends("x-report", 0))),
		},
	},
	"retry-deleted-meanwhile": {
		title:  "the Run is deleted before its result is read: no result is invented",
		spec:   pipeline,
		run:    retries(""),
		before: &story{spec: pipeline, beats: []beat{at(0, "", ends("w-a", 1)), at(0, "", fails("w-b", v1alpha1.ReasonStuck, "it goes in circles"))}},
		beats: []beat{
			at(1*second, "w and its Runs are deleted", func(c *cluster) { c.before.gone, c.before.children = true, nil }),
			at(2*second, "x-a finds no result", reuses("x-a")),
		},
	},
	"retry-budget": {
		title: "what is reused reserves nothing and costs nothing",
		spec:  "limits: {tokens: 400}\n" + pipeline,
		run:   retries(""),
		before: &story{spec: "limits: {tokens: 400}\n" + pipeline, beats: []beat{
			at(0, "", ends("w-a", 1, spends(300))), at(0, "", fails("w-b", v1alpha1.ReasonTokenLimit, "no tokens are left", spends(100))),
		}},
		beats: []beat{
			at(1*second, "x-a has its result", reuses("x-a")),
			at(2*second, "x-b ends", ends("x-b", 2, spends(350))),
		},
	},
	"retry-waits": {
		title:  "the Run to retry is still active",
		spec:   pipeline,
		run:    retries(""),
		before: &story{spec: pipeline, beats: []beat{at(0, "", ends("w-a", 1))}},
		beats: []beat{
			at(30*minute, "w-b fails", func(c *cluster) {
				fails("w-b", v1alpha1.ReasonStuck, "it goes in circles")(c.before)
				c.before.rest()
			}),
			at(31*minute, "x-a has its result", reuses("x-a")),
			at(32*minute, "x-b ends", ends("x-b", 2)),
		},
	},
	"retry-missing": {
		title: "the Run to retry never comes",
		spec:  pipeline,
		run:   retries(""),
	},
	"retry-nothing": {
		title:  "the Run to retry succeeded",
		spec:   pipeline,
		run:    retries(""),
		before: &story{spec: pipeline, beats: []beat{at(0, "", ends("w-a", 1)), at(0, "", ends("w-b", 1))}},
	},
}
