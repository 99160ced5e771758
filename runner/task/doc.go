// Package task is the contract between the operator and the runner: what the operator sends to the runner (Snapshot,
// Task, Signals), what the runner reports (Progress, Termination), and the paths of both in the pod.
//
// # Changing the contract
//
// Operator and runner of a Run may be of different releases: pods outlive an upgrade, and users build runners of their
// own. testdata/vN has the documents of both in version N of the contract, from one Run whose agent asks for an
// approval:
//
//	task.json, runner.json  from the operator: the task and the snapshot of the pod
//	container.json          from the operator: paths and environment of the runner
//	asks.json               from the runner: its report when it asks
//	signals.json            from the operator: the approval
//	done.json               from the runner: its last report
//	termination.json        from the runner: its termination message
//	journal                 from the runner: the state directory while it asks
//
// The tests in runner/internal/attempt/versions_test.go run a runner on it, those in
// test/controller/versions_test.go an operator. The files are never changed once their
// version is released. A new version has a folder of its own.
//
// Both sides import this package, so it imports neither of them: only the standard library and package step. Progress
// has the shape of Run.status.progress; a test of the operator holds the two together.
package task
