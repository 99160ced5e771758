// Package transcript reads the log of a Run and returns its events as typed values, in the order of the log. It has no
// layout and no I/O: internal/cli/conversation prints the values.
package transcript
