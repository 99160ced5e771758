// Package runner is the program that does the work of one Run: in its pod (Main), on a machine without a cluster
// (MainLocal), or inside of a Go program (New). Each is one call, so that a runner with models or tools of its own is a
// main package of a few lines:
//
//	func main() {
//		os.Exit(runner.Main(runner.WithModel("acme", acme.New)))
//	}
//
// The steps of an attempt: read the task, wait for the keys, take over the journal, work (package engine), report the
// end twice (in the termination message and in the Run's status), exit with a code of package task.
package runner
