// Package anthropic calls models over the Messages API: those of Anthropic itself
// and of providers that offer the same API.
//
// Reading is liberal and the same for all of them; writing is strict, and where
// providers and models want different things the difference is a row of data
// (dialect, family).
//
//	Request ─ body ─▶ exchange ─▶ httpapi.Call ─▶ endpoint
//	                                │ statuses, web pages      → typed errors
//	                                ▼
//	                             httpapi  stream or document → events
//	                                ▼
//	                             answer   events → Deltas, or why there is no answer
//	                                │
//	                                └ pause_turn: asked again with what was said
//
// The official client is not used: it takes a stream that breaks off for a whole
// answer, and one with two messages for the second (docs/designs/009).
//
// What package step has no field for, and the provider wants back, is a part of its
// own: blocks of the provider's own tools as they came, and annotations, which say
// where a call stood or what a text cites.
package anthropic
