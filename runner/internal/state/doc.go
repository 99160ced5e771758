// Package state computes the state of a Run from the records of its journal: every session as it was when the journal
// stopped, and what sessions share. Run.Apply applies one record. The state changes in no other way, so an active
// session equals a session that is read from the journal. A Session has the steps that its model sees; only the journal
// has steps that a compaction hid. A session is dropped when its call has a result, because nothing resumes it. Store
// holds the state of an active Run, with its log and its lock.
package state
