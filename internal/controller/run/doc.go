// Package run is the controller of Runs of Agents: it starts attempts at the work, one pod each, until a runner commits
// a result or no attempt is left.
//
//	          reserve          create           first report
//	Pending ────────▶ Starting ───────▶ Starting ────────────▶ Running
//	   ▲                 ▲                  │                     │
//	   │ not ready       │ next attempt     │ ended, lost         │ committed
//	   │                 │                  ▼                     ▼
//	 Agent, Model,    Retrying ◀──────── ended ──────────▶ True Finished
//	 policies                            by budget         False <reason>
//
// What it promises:
//
//   - A Run has at most one live pod. An attempt is recorded in the status, on the
//     condition that nothing has changed since it was observed, before its pod is
//     created, and the name of a pod is used once.
//   - The first attempt of a Run without a volume is recorded after its pod was created, with
//     the next write of the status (firstattempt.go). If the pod and the operator are lost before
//     that, a pod of the same name is created again, unless the lost one has reported.
//   - A pod belongs to the Run by its ServiceAccount and by the UID in the status or in
//     its task; owner and labels are no proof. The operator restores them if they
//     were changed, unless the Run is being deleted. If a deletion orphans a pod, its runner
//     ends when it reports next.
//   - An attempt that only waited for a Secret counts against no limit, and its pod is
//     deleted when the next attempt starts.
//   - Success is a result that a runner committed, never an exit code.
//   - A Run that has ended never changes its outcome.
//   - Failures of the work and infrastructure disruptions have separate limits.
//   - Work with possible effects is not started a second time without its journal.
//   - A child Run that the runner requests is created once, within the limits that are
//     left, and its result is delivered until the runner has read it.
//   - Not more Runs of an Agent are active than its concurrency; the oldest start first.
//
// Reconcile is observe → decide → apply → updateStatus. rules.go lists all rules: to learn what the controller does,
// read that list. Only observe reads the cluster, only apply changes it, and only updateStatus writes the status and
// events. A refusal of the API server is a fact, with which decide runs again.
package run
