// Package conversation prints the events of a Run, which internal/cli/transcript reads from the log, as a conversation
// for users. Its only I/O is a given writer.
package conversation
