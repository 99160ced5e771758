// Package run is the controller of Runs: it takes attempts at the work, one pod
// each, until a runner commits a result or nothing is left to try.
//
//	          claim            create           first report
//	Pending ────────▶ Starting ───────▶ Starting ────────────▶ Running
//	   ▲                 ▲                  │                     │
//	   │ not there yet   │ next attempt     │ ended, lost         │ committed
//	   │                 │                  ▼                     ▼
//	 Agent, Model,    Retrying ◀──────── judged ─────────▶ True Finished
//	 policies                            by budget         False <reason>
//
// What it promises:
//
//   - At most one live pod per Run. An attempt is claimed in the status, with
//     everything that was seen as the condition, before its pod is made; a pod
//     name is used once.
//   - A pod is the Run's by its ServiceAccount, and by the UID in the status or the
//     Run's UID in its task; its owner and labels are no proof. Where these were
//     changed the operator restores them, so that the pod goes with its Run, unless
//     the Run is being deleted: of one that is deleted with its pods to stay
//     (orphan) the runner ends itself with its next report, because there is nothing
//     to report to, and the ended pod stays.
//   - An attempt that only waited for a Secret is charged to nothing, and its pod is
//     deleted when the next attempt starts.
//   - Success is what a runner committed, never an exit code.
//   - A finished Run never moves again.
//   - Failures of the work and of the ground are two budgets, never mixed up.
//   - Work that may have changed something is not started a second time.
//   - A child Run that the runner asks for is made once, within what is left of the
//     limits, and told to the runner until it has heard how it ended.
//   - Of an Agent with a bound no more Runs are active than may be; the oldest
//     come first.
//
// Reconcile is look → decide → act → report. decide.go is the policy: a list of
// rules, pure; to learn what the controller does, read that list. Only look
// reads the cluster, only act changes it, only report writes status and events.
package run
