// Package anthropic speaks the Messages dialect: to Anthropic itself and to
// those who offer the same wire.
//
// Reading is liberal and the same for all of them; writing is strict, and where
// providers and models want different things the difference is a row of data
// (dialect, family).
//
// The official client makes the request; its retries are off. Everything else
// happens below and above it:
//
//	Request ─ body ─▶ client ─▶ endpoint.Call ─▶ the network
//	                                │ statuses, web pages      → typed errors
//	                                ▼
//	                             events   whatever servers send → name and data
//	                                ▼
//	                             answer   events → Deltas, or why there is no answer
//	                                │
//	                                └ pause_turn: asked again with what was said
//
// What the port has no word for, and the provider wants back, is a part of its
// own: blocks of the provider's own tools as they came, and notes of ours, which
// say where a call stood or what a text cites.
package anthropic
