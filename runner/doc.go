// Package runner is the program that does the work of one Run: in its pod (Main), on a machine without a cluster
// (MainLocal), or inside of a Go program (New). Each is one call, so that a runner with models or tools of its own is a
// main package of a few lines:
//
//	func main() {
//		os.Exit(runner.Main(runner.WithModel("acme", acme.New)))
//	}
//
// What one attempt does is in package attempt, below internal.
package runner
