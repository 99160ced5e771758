// Package task is the contract between the operator and the runner: what the
// operator tells the runner (Snapshot, Task, Signals), what the runner tells
// back (Progress, Termination) and where in the pod each of it lies.
//
// Both sides import it, so it knows neither: only the standard library and the runner's
// vocabulary. Progress has the shape of Run.status.progress; a test of the operator holds
// the two together.
package task
