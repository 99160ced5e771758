// Package events has the events of a Run, which report its work to users and programs.
// Each is one JSON line of the runner's log, and listeners of a custom runner receive
// them as they happen.
//
// Events are for following, not for deciding: state comes from the journal and
// from the Run's status.
//
// payload.go lists what each type of event carries.
package events
