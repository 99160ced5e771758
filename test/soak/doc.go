// Package soak kills parts of Deckhand at seeded random moments, and counts what held.
//
// A soak has three layers, which share this package. Each plays Runs until enough was
// killed, and checks the Invariants after every Run:
//
//   - runner: the runner as a process of this machine, with its journal on disk, between a
//     scripted model, an API server that takes its reports, and a server of effects. The
//     tests are in package runner.
//   - operator: two operators that both lead on a real API server, with simulated pods. The
//     tests are in this package.
//   - cluster: everything on a real cluster. The test is in test/e2e.
//
// SOAK_SEED chooses the moments, SOAK_KILLS how many there are, and SOAK_RUN plays only the Run of that number. Seed
// and number determine what happens to a Run, except for the order of calls of one turn, which run in parallel.
package soak
