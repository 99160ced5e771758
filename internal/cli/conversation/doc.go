// Package conversation prints what happened in a Run, as internal/cli/transcript reads it from the
// log, as a conversation that a user can read. It has no I/O but the writer that it is given.
package conversation
