// Package state is what the records of a journal amount to: every session of a
// Run as it was when the journal stopped, and what they share.
//
// Run.Apply folds one record; it is the only way in which the state changes, so
// that a session under way and one that is read back are the same. A Session has
// the steps that its model sees; what a compaction hid is in the journal alone.
// One whose call has its result is forgotten, because nothing goes back to it.
//
// Store holds the state of the Run under way, with the log and the lock.
package state
