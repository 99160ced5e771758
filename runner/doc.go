// Package runner is the program that does the work of one Run: in its pod
// (Main), on a machine without a cluster (MainLocal), or inside of a Go program (New). Each
// is one call, so that a runner with models or tools of its own is a main package of a few lines:
//
//	func main() {
//		os.Exit(runner.Main(runner.WithModel("acme", acme.New)))
//	}
//
// An attempt goes: read the task, wait for the key, take over the journal, work
// (package engine), tell the end twice (the termination message, then the Run's
// status), exit with the contract's code (package task).
package runner
