// Package snapshot makes revisions of Agents: everything that a Run of an Agent
// depends on, frozen.
//
// Everything is: the Agent, the Agents that it may give work to in its pod, the
// Models that any of them may use, and descriptions for the model of the Agents to
// which one of them gives work in Runs of their own. Objects are what Of looks those up
// in; package reach reads them.
//
// A revision lives in an immutable ConfigMap named by its hash and shared by all
// Runs of that revision, so every attempt of a Run runs the same Agent whatever
// became of it. Code that reads one back checks the hash, which stands where only
// the operator writes: in a Run's status and in a pod's guarded annotation.
//
// The package is pure. The Agent's controller uses it to say whether an Agent
// is Ready, the Run's to start one; so both always agree.
package snapshot
