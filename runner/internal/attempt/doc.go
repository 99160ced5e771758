// Package attempt makes one attempt at a Run, in a pod or in directories of this machine: Main and Run. It also has the
// other programs of a runner's pod: Fetch prepares the workspace, Probe is the liveness probe, and SendFiles reads the
// files of a Run that ended.
//
// The steps of an attempt: read the task, wait for the keys, take over the journal, work (package engine), report the
// end twice (in the termination message and in the Run's status), exit with a code of package task.
package attempt
