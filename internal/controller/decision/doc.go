// Package decision is the controller of Decisions: it says what became of each,
// and makes its Run its owner.
//
//	           the runner acted on it
//	Unknown ─────────────────────────────▶ True  Applied
//	Waiting ─────────────────────────────▶ False Refused
//	           nobody asked, or nobody is there to hear it
//
// It does not deliver: the controller of Runs hands the runner what it waits
// for. What became of a Decision is said once and for good, so a refusal rests
// on the API server's own word, not on a cache that may be late.
package decision
