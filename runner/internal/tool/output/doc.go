// Package output processes the output of programs that tools run: it removes escape
// sequences, truncates the middle, stores the complete output in a file, streams it
// to users, and keeps the end for after a crash.
//
// A Record does this for one call. Memory is bounded for any output.
package output
