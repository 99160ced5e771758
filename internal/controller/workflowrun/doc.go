// Package workflowrun is the controller of Runs of Workflows: it creates a child Run for
// each piece of the work, and sums up their states.
//
//	          store revision      create, observe
//	Pending ─────────▶ Running ◀───────────────────▶ child Runs
//	   ▲                  │
//	   │ not ready        │ all nodes have ended, those of finally last
//	   │                  ▼
//	Workflow,          True Finished
//	policies           False NodeFailed, Stopped, <limit> …
//
// What it promises:
//
//   - A Run runs the revision of the Workflow, and of all that it refers to, with which
//     it started.
//   - A child Run is created once: before it is recorded, under a name that follows from
//     its node and index, so that it is found again. A recorded child that does not exist
//     fails its node and is not created again.
//   - What children have done is in the children; the status has counts and states, and
//     is computed anew each time.
//   - What a child may use at most is reserved before it is created, so that all children
//     together stay within the limits.
//   - A Run that has ended never changes its outcome, and stops the children that are
//     still active.
//
// Reconcile is observe → decide → apply → updateStatus, as for Runs of Agents. rules.go
// lists all rules; internal/workflow/graph computes what comes next in the graph, and
// internal/workflow evaluates expressions. decide runs again on which children were created
// or refused, before that is reported.
package workflowrun
