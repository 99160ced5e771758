// Package conversation prints the events of a Run, as its runner wrote them to its log, as a
// conversation that a user can read. It has no I/O but the writer that it is given.
package conversation
