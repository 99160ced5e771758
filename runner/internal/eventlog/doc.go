// Package eventlog delivers the events of a Run to listeners and writes them to the log,
// one JSON line of standard output per event.
//
// A Writer never holds the loop up. What it cannot write in time it drops, and says so
// with a dropped event. It joins deltas, numbers events and redacts secrets.
package eventlog
