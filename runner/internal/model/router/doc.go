// Package router calls several Models in order until one answers.
//
// It changes to the next Model only after an error that is [model.Transient], when
// the retries of the Model are used up. Other errors would be the same with another
// Model and are returned: a wrong request or key, a refusal, a session that is too
// long. After a change the router keeps the Model for a cooldown, so that a session
// does not alternate between prompt caches, and then tries the first again.
//
//	Request ─▶ target 1 ── transient ──▶ Reset ─▶ fits target 2? ─▶ target 2 ─▶ …
//	              │                                   │
//	              ▼                                   ▼
//	          answer, or a source.Error     ContextTooLong with the window of
//	                                        target 2, which is asked next time
//
// A request to a Model does not contain reasoning of another Model or content that
// only another provider can read. Packages retry and price decorate each target.
package router
