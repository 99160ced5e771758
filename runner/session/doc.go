// Package session is the port to where sessions are kept for people and for
// later Runs: a copy, never the truth. What a Run resumes from is its journal.
//
// A session is a row, which says whose it is, and steps numbered from 1 without
// a gap. Steps are only ever added: to try again from a step on is a Fork.
// Adapters live below this package (memory) and are held to the suite in
// sessiontest. The runner copies into a Store in the background: a store that is
// slow or down costs the Run nothing.
package session
