// Package workflowrun is the controller of the Runs of workflows: it makes a
// child Run for each piece of the work, and says how it stands with the whole.
//
//	          freeze              make, and watch
//	Pending ─────────▶ Running ◀───────────────────▶ child Runs
//	   ▲                  │
//	   │ not there yet    │ all nodes have ended, those of finally last
//	   │                  ▼
//	Workflow,          True Finished
//	policies           False NodeFailed, Stopped, <limit> …
//
// What it promises:
//
//   - A Run runs the version of the Workflow, and of all that it names, that it
//     began with.
//   - A child Run is made once. It is made before it is recorded, under a name that
//     is a pure function of its place; whoever finds the name taken looks whose it
//     is. One that was recorded and is gone is a failure, not work to do again.
//   - What children have done stands in the children; the status has counts and
//     states, and is worked out anew each time.
//   - What a child may use at most is set aside before it is made, so that all of
//     them together stay within the limits.
//   - A finished Run never moves again, and stops the children that it leaves
//     behind.
//
// Reconcile is look → decide → act → report, as that of the Runs of agents.
// decide.go is the policy; what comes next in the graph is said by
// internal/graph, what expressions say by internal/workflow. What the cluster
// refused, and what was made, is decided upon once more before it is reported.
package workflowrun
