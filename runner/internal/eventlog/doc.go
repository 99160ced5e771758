// Package eventlog delivers the events of a Run to listeners and writes them to the log, one JSON line of standard
// output per event.
//
// A Writer never delays the loop. Events that it cannot write in time are dropped, which a dropped event reports. It
// joins deltas, numbers events and redacts secrets.
package eventlog
