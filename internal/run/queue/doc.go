// Package queue orders the Runs of an Agent that bounds how many may be active.
//
// A Run takes its place with its first attempt, and keeps it until it ends: also while it waits for users, between
// attempts, and while it is paused. Only while it waits for child Runs does it release its place, and it takes the
// place back without waiting: otherwise two Runs that wait for each other's children would wait forever. For the same
// reason the places of its ancestors do not count for a Run. A Run that is paused before it started is not in the
// queue.
package queue
