// Package decision is the controller of Decisions: it writes the state of each into its status, and makes its Run the
// owner.
//
//	           the runner acted on it
//	Unknown ─────────────────────────────▶ True  Applied
//	Waiting ─────────────────────────────▶ False Refused
//	           the Run has no such request, or has finished
//
// It does not deliver Decisions: the controller of Runs sends them to the runner. A refusal is final, so it is decided
// with what the API server has, not with the cache.
package decision
