// Package graph computes the next steps of a workflow from names, states and numbers. Its input is the recorded status
// and the existing children. Its result is which children to start, which approvals to request, what to stop, and how
// the Run ends. It has no cluster and no clock, and an Evaluator evaluates expressions for it.
//
//	                     false
//	           ┌──────────────────────────▶ Skipped
//	      when │
//	Waiting ───┴──▶ Running ───┬──────────▶ Succeeded
//	   │               │       └──────────▶ Failed
//	   │ the Run ends  │ the Run ends: what works is stopped
//	   ▼               ▼
//	NotReached      Failed, Cancelled
//
// What it promises for any input:
//
//   - A node starts when each that it waits for is Succeeded, Skipped, or Failed
//     with Continue; a final one when all others have ended, and those of the final
//     ones that it waits for, one way or the other.
//   - Nothing is started twice. A child that exists, recorded or not, has begun. A child that
//     began and does not exist any more has failed.
//   - What has ended never changes.
//   - The first failure of a node that is not Continue, or Seen.End, ends the Run:
//     nothing more starts but final nodes, what works is stopped, and each node has
//     a state that says how it ended.
//   - It comes to an end when every child does.
//
// Between two passes nothing is remembered but Status. A node that is Running with
// a Reason (other than that it is queued) will fail: it starts nothing more, and
// fails with that reason when the last of its children has ended.
//
// graph.go is the shape, next.go the order of a pass, settle.go the results of children,
// start.go what starts, end.go how it ends. testdata/stories shows what happens when, and
// make stories rewrites it.
package graph
