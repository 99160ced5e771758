// Package decisions has the rules by which a Decision is applied or refused, from the requests
// of its Run and from what the runner reports, and reads the Decisions on a Run. The
// controller of Decisions writes the outcome and the controllers of Runs deliver Decisions;
// both follow these rules.
package decisions
