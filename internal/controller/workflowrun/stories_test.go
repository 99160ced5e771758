package workflowrun

import (
	"flag"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden stories")

const (
	second = time.Second
	minute = time.Minute
)

func forbids(text string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "deckhand.dev", Resource: "runs"}, "x-a", fmt.Errorf("%s", text)) //nolint:err113 // the API server's words
}

func refuses(err error) func(*cluster) {
	return func(c *cluster) { c.refuse = func(*v1alpha1.Run) error { return err } }
}

func takes(c *cluster) { c.refuse = nil }

// several lets more than one thing happen at once.
func several(all ...func(*cluster)) func(*cluster) {
	return func(c *cluster) {
		for _, do := range all {
			do(c)
		}
	}
}

const (
	pipeline = `
nodes:
- {name: a, agent: worker, prompt: "count"}
- {name: b, agent: worker, prompt: "after ${{ nodes.a.output.n }}"}
output: {total: {cel: "nodes.a.output.n + nodes.b.output.n"}}
`
	diamond = `
nodes:
- {name: a, agent: worker, prompt: "go"}
- {name: left, agent: worker, prompt: "left", dependsOn: [a]}
- {name: right, agent: worker, prompt: "right", dependsOn: [a]}
- {name: judge, agent: writer, prompt: "weigh ${{ nodes.left.output.n }} and ${{ nodes.right.output.n }}"}
finally:
- {name: clean, agent: writer, prompt: "It ended: ${{ run.reason }}"}
`
	asks = `
nodes:
- {name: a, agent: worker, prompt: "count"}
- name: gate
  approval: {message: "Ship ${{ nodes.a.output.n }}?", expiresAfter: 1h}
- {name: ship, agent: writer, prompt: "ship, as ${{ nodes.gate.output.by }} said", dependsOn: [gate]}
`
	tight = `
limits: {tokens: 1000}
nodes:
- {name: a, agent: worker, prompt: "a", limits: {tokens: 600}}
- {name: b, agent: worker, prompt: "b", limits: {tokens: 600}}
- {name: c, agent: worker, prompt: "c", dependsOn: [b]}
finally:
- {name: clean, agent: writer, prompt: "It ended: ${{ run.reason }}"}
`
)

// stories are what users live through. Each is played to rest; what was seen and
// done is its golden file.
var stories = map[string]story{
	"pipeline": {
		title: "one node after the other, and an answer of both",
		spec:  pipeline,
		beats: []beat{
			at(1*second, "x-a works", works("x-a", spends(100))),
			at(2*second, "x-a ends", ends("x-a", 2, spends(200))),
			at(3*second, "x-b ends", ends("x-b", 3, spends(300))),
		},
	},
	"diamond": {
		title: "two at once, a judge of both, and finally",
		spec:  diamond,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 1)),
			at(2*second, "x-right ends", ends("x-right", 2)),
			at(3*second, "x-left ends", ends("x-left", 3)),
			at(4*second, "x-judge ends", ends("x-judge", 0)),
			at(5*second, "x-clean ends", ends("x-clean", 0)),
		},
	},
	"failure": {
		title: "a failure stops what works, and finally is told why",
		spec:  diamond,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 1)),
			at(2*second, "x-right fails", fails("x-right", v1alpha1.ReasonStepLimit, "30 of 30 steps are used")),
			at(5*second, "x-left stops", isStopped("x-left")),
			at(6*second, "x-clean ends", ends("x-clean", 0)),
		},
	},
	"continue": {
		title: "a failure that does not matter",
		spec: `
nodes:
- {name: a, agent: worker, prompt: "go", onFailure: Continue}
- {name: b, agent: worker, prompt: "${{ nodes.a.?output.hasValue() ? 'good' : 'none' }}"}
`,
		beats: []beat{
			at(1*second, "x-a fails", fails("x-a", v1alpha1.ReasonRejected, "no")),
			at(2*second, "x-b ends", ends("x-b", 1)),
		},
	},
	"each": {
		title: "one for each item, two at a time, one of them failing",
		spec: `
input: {fields: [{name: files, type: List}]}
nodes:
- name: look
  agent: worker
  prompt: "look at ${{ item }}, number ${{ index }}"
  forEach: {items: input.files, maxParallel: 2}
  onFailure: Continue
- {name: sum, agent: writer, prompt: "${{ nodes.look.counts.succeeded }} of ${{ nodes.look.counts.total }}"}
`,
		run: func(r *v1alpha1.Run) {
			r.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"files":["x.go","y.go","z.go"]}`)}
		},
		beats: []beat{
			at(1*second, "x-look-0 ends", ends("x-look-0", 1)),
			at(2*second, "x-look-1 fails", fails("x-look-1", v1alpha1.ReasonStuck, "it goes in circles")),
			at(3*second, "x-look-2 ends", ends("x-look-2", 1)),
			at(4*second, "x-sum ends", ends("x-sum", 0)),
		},
	},
	"loop": {
		title: "again until it is good",
		spec: `
nodes:
- name: draft
  agent: worker
  prompt: "${{ previous.hasValue() ? 'better' : 'first' }}"
  loop: {until: "self.output.n > 1", maxIterations: 3}
output: {num: {cel: nodes.draft.output.n}, times: {cel: nodes.draft.counts.succeeded}}
`,
		beats: []beat{
			at(1*second, "x-draft-1 ends", ends("x-draft-1", 1)),
			at(2*second, "x-draft-2 ends", ends("x-draft-2", 2)),
		},
	},
	"loop-never": {
		title: "never good enough",
		spec: `
nodes:
- name: draft
  agent: worker
  prompt: "try"
  loop: {until: "self.output.n > 1", maxIterations: 2}
`,
		beats: []beat{
			at(1*second, "x-draft-1 ends", ends("x-draft-1", 1)),
			at(2*second, "x-draft-2 ends", ends("x-draft-2", 1)),
		},
	},
	"loop-fails": {
		title: "an iteration fails: the Run says of what",
		spec: `
nodes:
- name: draft
  agent: worker
  prompt: "better than ${{ previous.?output.?n.orValue(0) }}"
  loop: {until: "self.output.n > 1", maxIterations: 3}
`,
		beats: []beat{
			at(1*second, "x-draft-1 ends", ends("x-draft-1", 1)),
			at(2*second, "x-draft-2 fails", fails("x-draft-2", v1alpha1.ReasonStuck, "it goes in circles")),
		},
	},
	"last-item-fails": {
		title: "an item fails when all have begun: the Run says of what",
		spec: `
nodes:
- name: look
  agent: worker
  prompt: "look at ${{ item }}"
  forEach: {items: "['x.go', 'y.go']", maxParallel: 1}
`,
		beats: []beat{
			at(1*second, "x-look-0 ends", ends("x-look-0", 1)),
			at(2*second, "x-look-1 fails", fails("x-look-1", v1alpha1.ReasonStuck, "it goes in circles")),
		},
	},
	"deadline": {
		title: "the deadline passes: finally runs after it",
		spec:  "limits: {deadline: 10m}" + diamond,
		beats: []beat{
			at(1*second, "x-a works", works("x-a")),
			at(11*minute, "x-a stops", isStopped("x-a")),
			at(12*minute, "x-clean ends", ends("x-clean", 0)),
		},
	},
	"deadline-operator-down": {
		title: "the deadline passes while the operator is away: finally runs once it is back",
		spec:  "limits: {deadline: 10m}" + diamond,
		beats: []beat{
			at(1*second, "x-a works", works("x-a")),
			at(5*minute, "the operator goes", operatorLeaves),
			at(9*minute, "x-a ends, which nobody sees", ends("x-a", 1)),
			at(30*minute, "the operator is back", operatorReturns),
			at(31*minute, "x-clean ends", ends("x-clean", 0)),
		},
	},
	"deadline-operator-down-before": {
		title: "the deadline passes before the operator sees the Run",
		spec:  "limits: {deadline: 10m}" + diamond,
		run:   func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Deadline: new(v1alpha1.Duration("10m"))} },
		beats: []beat{
			at(0, "there is no operator", operatorLeaves),
			at(11*minute, "there is one", operatorReturns),
		},
	},
	"policies-missing": {
		title: "admission policies are missing: no child is made until they are there",
		spec:  pipeline,
		beats: []beat{
			at(0, "a policy is deleted", lacks("ValidatingAdmissionPolicy deckhand-child-runs")),
			at(5*minute, "another goes too", lacks("ValidatingAdmissionPolicy deckhand-child-runs, ValidatingAdmissionPolicyBinding deckhand-run-spec")),
			at(10*minute, "the chart is installed again", lacks("")),
			at(11*minute, "x-a ends", ends("x-a", 1)),
			at(12*minute, "x-b ends", ends("x-b", 1)),
		},
	},
	"policies-deleted": {
		title: "admission policies are deleted at work: the children wait for them themselves",
		spec:  pipeline,
		beats: []beat{
			at(1*second, "a policy is deleted", lacks("ValidatingAdmissionPolicy deckhand-child-runs")),
			at(1*minute, "x-a ends", ends("x-a", 1)),
			at(2*minute, "x-b ends", ends("x-b", 1)),
		},
	},
	"queued": {
		title: "too little is left for both at once: one waits for what the other leaves",
		spec:  tight,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 1, spends(200))),
			at(2*second, "x-b ends", ends("x-b", 1, spends(300))),
			at(3*second, "x-c ends", ends("x-c", 1, spends(100))),
			at(4*second, "x-clean ends", ends("x-clean", 0, spends(90))),
		},
	},
	"used-up": {
		title: "the limit is used up: what has not begun does not",
		spec:  tight,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 1, spends(600))),
			at(2*second, "x-b ends", ends("x-b", 1, spends(300))),
			at(4*second, "x-clean ends", ends("x-clean", 0, spends(90))),
		},
	},
	"used-up-at-last": {
		title: "the last node uses up the limit: all is done",
		spec:  "limits: {tokens: 100}\n" + pipeline,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 1, spends(50))),
			at(2*second, "x-b ends", ends("x-b", 1, spends(50))),
		},
	},
	"child-deleted": {
		title: "somebody deletes a child that works: it is not made again",
		spec:  pipeline,
		beats: []beat{
			at(1*second, "x-a works", works("x-a")),
			at(2*second, "x-a is deleted", isDeleted("x-a")),
		},
	},
	"result-deleted": {
		title: "a child is deleted after it succeeded, and before its output is read",
		spec: `
nodes:
- {name: a, agent: worker, prompt: "count"}
- {name: slow, agent: worker, prompt: "count slowly"}
- {name: b, agent: worker, prompt: "after ${{ nodes.a.output.n }}", dependsOn: [slow]}
`,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 1)),
			at(2*second, "x-a is deleted", isDeleted("x-a")),
			at(3*second, "x-slow ends", ends("x-slow", 2)),
		},
	},
	"child-asks": {
		title: "all that works waits for people",
		spec:  pipeline,
		beats: []beat{
			at(1*second, "x-a asks", awaits("x-a", v1alpha1.ReasonAwaitingAnswer, "It asks: “Which?” To answer, …")),
			at(2*second, "x-a goes on", works("x-a")),
			at(3*second, "x-a ends", ends("x-a", 1)),
			at(4*second, "x-b is queued", awaits("x-b", v1alpha1.ReasonQueued, "3rd in the queue of Agent worker: 2 of 2 Runs are active")),
			at(5*second, "x-b ends", ends("x-b", 1)),
		},
	},
	"expression": {
		title: "a value is not there: the node fails with the expression",
		spec: `
nodes:
- {name: a, agent: worker, prompt: "count"}
- {name: b, agent: worker, prompt: "${{ [1, 2][nodes.a.output.n] }}"}
`,
		beats: []beat{at(1*second, "x-a ends", ends("x-a", 5))},
	},
	"bad-output": {
		title: "the output cannot be worked out",
		spec: `
nodes: [{name: a, agent: worker, prompt: "count"}]
output: {num: {cel: "1 / nodes.a.output.n"}}
`,
		beats: []beat{at(1*second, "x-a ends", ends("x-a", 0))},
	},
	"misfit": {
		title: "values that the Workflow does not take",
		spec:  "input: {fields: [{name: files, type: List}]}\n" + pipeline,
		run: func(r *v1alpha1.Run) {
			r.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"files":"x.go"}`)}
		},
	},
	"workflow-never": {
		title: "the Workflow never comes",
	},
	"restored": {
		title: "a Run that a backup brought back is not done twice",
		spec:  pipeline,
		run:   func(r *v1alpha1.Run) { r.Labels = map[string]string{"velero.io/restore-name": "nightly"} },
	},
	"migrated": {
		title: "a Run that Stork migrated without its status is not done twice",
		spec:  pipeline,
		run:   func(r *v1alpha1.Run) { r.Annotations = map[string]string{"stork.libopenstorage.org/migrated": "true"} },
	},
	"nested": {
		title:  "a Workflow in a Workflow",
		nested: map[string]string{"inner": "input: {fields: [{name: count, type: Integer}]}\n" + pipeline},
		spec: `
nodes:
- {name: a, agent: worker, prompt: "count"}
- {name: deep, workflow: inner, input: {count: {cel: nodes.a.output.n}}}
output: {total: {cel: nodes.deep.output.total}}
`,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 4)),
			at(2*second, "x-deep ends", several(ends("x-deep", 0), func(c *cluster) { c.child("x-deep").Status.Progress.Result.Output = `{"total":9}` })),
		},
	},
	"ttl": {
		title: "it goes by its TTL, and its children with it",
		spec:  pipeline,
		run:   func(r *v1alpha1.Run) { ttl := int32(600); r.Spec.TTLSecondsAfterFinished = &ttl },
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 1)),
			at(2*second, "x-b ends", ends("x-b", 1)),
		},
	},
	"namesake": {
		title: "somebody else has the name of a child",
		spec:  pipeline,
		beats: []beat{
			at(0, "somebody makes x-a", func(c *cluster) {
				c.children["x-a"] = &v1alpha1.Run{}
				c.children["x-a"].Name = "x-a"
			}),
			at(1*second, "the child ends", func(c *cluster) { ends(spareChildName(c.run, childKey{"a", 0}), 1)(c) }),
			at(2*second, "x-b ends", ends("x-b", 1)),
		},
	},
	"each-fails": {
		title: "one of many fails, and the others are stopped",
		spec: `
nodes:
- name: look
  agent: worker
  prompt: "look at ${{ item }}"
  forEach: {items: "[1, 2, 3, 4]", maxParallel: 2}
`,
		beats: []beat{
			at(1*second, "x-look-0 fails", fails("x-look-0", v1alpha1.ReasonStuck, "it goes in circles")),
			at(2*second, "x-look-1 stops", isStopped("x-look-1")),
		},
	},
	"finally-fails": {
		title: "finally fails: the outcome stays, and it is told",
		spec:  diamond,
		beats: []beat{
			at(1*second, "x-a fails", fails("x-a", v1alpha1.ReasonRejected, "no")),
			at(2*second, "x-clean fails", fails("x-clean", v1alpha1.ReasonStuck, "it goes in circles")),
		},
	},
	"lenient": {
		title: "a Deny that somebody reads fails nothing",
		spec: `
nodes:
- {name: gate, approval: {message: "Ship it?"}}
- {name: ship, agent: writer, prompt: "ship", when: nodes.gate.output.approved}
output: {shipped: {cel: nodes.gate.output.approved}, why: {cel: nodes.gate.output.reason}}
`,
		beats: []beat{
			at(1*minute, "ann denies", decides("gate", v1alpha1.DecisionDeny, func(d *v1alpha1.DecisionSpec) { d.Reason = "not on a Friday" })),
		},
	},
}
