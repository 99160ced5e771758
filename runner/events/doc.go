// Package events has the events of a Run, which report its work to users and programs. Each is one JSON line of the
// runner's log, and listeners of a custom runner receive them as they happen.
//
// Do not base decisions on events: the state is in the journal and in the Run's status.
//
// payload.go lists the fields of each type of event.
package events
