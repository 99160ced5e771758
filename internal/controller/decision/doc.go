// Package decision is the controller of Decisions: it writes what became of each, and makes
// its Run the owner.
//
//	           the runner acted on it
//	Unknown ─────────────────────────────▶ True  Applied
//	Waiting ─────────────────────────────▶ False Refused
//	           the Run has no such request, or has finished
//
// It does not deliver Decisions: the controller of Runs sends them to the runner. What became
// of a Decision is final, so a refusal depends on what the API server has, not on the cache.
package decision
