// Package events tells people and programs what a Run is doing, one JSON line
// of standard output per event.
//
// Events are for following, not for deciding: state comes from the journal and
// from the Run's status. So a Writer never holds the loop up. What it cannot
// write in time it drops, and says so with a dropped event.
//
// payload.go lists what each type of event carries.
package events
