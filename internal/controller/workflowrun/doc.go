// Package workflowrun is the controller of Runs of Workflows: it creates a child Run for each node, item or iteration,
// and summarizes their states.
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
//   - A Run keeps the revision of the Workflow, and of everything that it refers to,
//     with which it started.
//   - A child Run is created once: before it is recorded, under a name computed from its
//     node and index, by which it is found again. If a recorded child does not exist, its
//     node fails, and the child is not created again.
//   - The results are in the child Runs; the status has counts and states, and is computed
//     from them each time.
//   - The limits of a child are reserved before it is created, so that all children
//     together stay within the limits.
//   - A Run that has ended never changes its outcome, and stops the children that are
//     still active.
//
// Reconcile is observe → decide → apply → updateStatus, as for Runs of Agents. rules.go lists all rules;
// internal/workflow/graph computes what comes next in the graph, and internal/workflow evaluates expressions. decide
// runs again with the created and refused children, before they are reported.
package workflowrun
