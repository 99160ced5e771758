// Package decisions decides whether a Decision is applied or refused, from the requests of its Run and the reports of
// the runner, and reads the Decisions on a Run. The controller of Decisions writes the outcome, and the controllers of
// Runs deliver Decisions; both use these rules.
package decisions
