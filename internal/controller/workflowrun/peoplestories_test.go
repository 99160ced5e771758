package workflowrun

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// peopleStories are about users who decide, stop and pause.
var peopleStories = map[string]story{
	"approved": {
		title: "a person lets it go on",
		spec:  asks,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 7)),
			at(5*minute, "ann approves", decides("gate", v1alpha1.DecisionApprove)),
			at(6*minute, "x-ship ends", ends("x-ship", 0)),
		},
	},
	"denied": {
		title: "a person does not let it go on",
		spec:  asks,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 7)),
			at(5*minute, "ann denies", decides("gate", v1alpha1.DecisionDeny, func(d *v1alpha1.DecisionSpec) { d.Reason = "not on a Friday" })),
		},
	},
	"decision-unowned": {
		title: "a Decision that the Run does not own yet could be deleted: it does not count",
		spec:  asks,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 7)),
			at(5*minute, "ann approves, and the operator has not seen it", func(c *cluster) { decides("gate", v1alpha1.DecisionApprove)(c); disowned(c) }),
			at(6*minute, "the Run owns the Decision", owned),
			at(7*minute, "x-ship ends", ends("x-ship", 0)),
		},
	},
	"decision-unowned-deleted": {
		title: "a Decision that the Run never owned is deleted",
		spec:  asks,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 7)),
			at(5*minute, "ann approves, and the operator has not seen it", func(c *cluster) { decides("gate", v1alpha1.DecisionApprove)(c); disowned(c) }),
			at(6*minute, "ann deletes the Decision", func(c *cluster) { c.decided = nil }),
			at(7*minute, "ann denies", decides("gate", v1alpha1.DecisionDeny)),
		},
	},
	"decision-late": {
		title: "a Decision comes too late, while the operator is away",
		spec:  asks,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 7)),
			at(30*minute, "the operator goes", operatorLeaves),
			at(61*minute, "ann approves", decides("gate", v1alpha1.DecisionApprove)),
			at(90*minute, "the operator is back", operatorReturns),
		},
	},
	"decision-in-time": {
		title: "a Decision comes in time, while the operator is away for longer",
		spec:  asks,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 7)),
			at(30*minute, "the operator goes", operatorLeaves),
			at(59*minute, "ann approves", decides("gate", v1alpha1.DecisionApprove)),
			at(90*minute, "the operator is back", operatorReturns),
			at(91*minute, "x-ship ends", ends("x-ship", 0)),
		},
	},
	"expired": {
		title: "nobody decides in time",
		spec:  asks,
		beats: []beat{at(1*second, "x-a ends", ends("x-a", 7))},
	},
	"decision-deleted": {
		title: "the Decision that it went by is deleted",
		spec:  asks,
		beats: []beat{
			at(1*second, "x-a ends", ends("x-a", 7)),
			at(5*minute, "ann approves", decides("gate", v1alpha1.DecisionApprove)),
			at(6*minute, "somebody deletes the Decision", func(c *cluster) { c.decided = nil }),
		},
	},
	"stopped": {
		title: "a person stops it: finally runs all the same",
		spec:  diamond,
		beats: []beat{
			at(1*second, "x-a works", works("x-a", spends(100))),
			at(2*second, "a person stops it", wants(v1alpha1.DesiredStopped)),
			at(5*second, "x-a stops", isStopped("x-a")),
			at(6*second, "a person wants it to run again, too late", wants(v1alpha1.DesiredRunning)),
			at(7*second, "x-clean ends", ends("x-clean", 0)),
		},
	},
	"paused": {
		title: "a person holds it, and lets it go on",
		spec:  pipeline,
		beats: []beat{
			at(1*second, "x-a works", works("x-a")),
			at(2*second, "a person holds it", wants(v1alpha1.DesiredPaused)),
			at(3*second, "x-a ends all the same", ends("x-a", 1)),
			at(9*minute, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(10*minute, "x-b ends", ends("x-b", 1)),
		},
	},
	"paused-before": {
		title: "held before it begins, for longer than limits.pending",
		spec:  pipeline,
		run:   func(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredPaused },
		beats: []beat{
			at(60*minute, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(61*minute, "x-a ends", ends("x-a", 1)),
			at(62*minute, "x-b ends", ends("x-b", 1)),
		},
	},
	"stopped-before": {
		title: "stopped before it begins",
		run:   func(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredStopped },
	},
	"many-approvals": {
		title: "more is asked than there is room for: the rest follows",
		spec:  nineApprovals(),
		beats: func() []beat {
			var out []beat
			for i := range 9 {
				name := fmt.Sprintf("gate%d", i)
				out = append(out, at(time.Duration(i+1)*minute, "ann approves "+name, decides(name, v1alpha1.DecisionApprove)))
			}
			return out
		}(),
	},
	"paused-past-deadline": {
		title: "the deadline passes while it is held",
		spec:  "limits: {deadline: 10m}" + diamond,
		beats: []beat{
			at(1*second, "a person holds it", wants(v1alpha1.DesiredPaused)),
			at(11*minute, "x-a stops", isStopped("x-a")),
			at(12*minute, "x-clean ends", ends("x-clean", 0)),
		},
	},
}

func nineApprovals() string {
	text := "nodes:\n"
	for i := range 9 {
		text += fmt.Sprintf("- {name: gate%d, approval: {message: \"Number %d?\"}}\n", i, i)
	}
	return text
}
