// Package router asks several Models in order until one answers.
//
// A Model is left for the next one only when it cannot answer now: what
// [model.Transient] says, after the retries of that Model are spent. A wrong
// request, a wrong key, a refusal and a session that is too long would be no
// better elsewhere and are returned. After a change of Model the router stays for
// a while, so that a session does not flap between prompt caches, and then tries
// the first again.
//
//	Request ─▶ target 1 ── transient ──▶ Reset ─▶ fits target 2? ─▶ target 2 ─▶ …
//	              │                                   │
//	              ▼                                   ▼
//	          answer, or a SourceError      ContextTooLong with the window of
//	                                        target 2, which is asked next time
//
// Each Model is sent what it can read: the thinking of another, and parts that
// only another provider reads, are left out. The retries and the prices are of
// the targets; package retry and package price belong inside.
package router
