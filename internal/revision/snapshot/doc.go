// Package snapshot makes revisions of Agents: copies of everything that a Run of an Agent depends on.
//
// These are the Agent, the Agents to which it can delegate in its pod, the Models that any of them may use, and
// descriptions of the Agents to which they delegate in child Runs. Of finds them in Objects, which package refs reads.
//
// A revision lives in an immutable ConfigMap named by its hash and shared by all Runs of that revision, so every
// attempt of a Run runs the same Agent, even if that was changed or deleted. Code that reads a revision checks the hash
// against a copy that only the operator can write: in a Run's status and in a pod's protected annotation.
//
// The package is pure. The controller of Agents uses it to decide whether an Agent is Ready, and the controller of Runs
// to start Runs; so both always agree.
package snapshot
