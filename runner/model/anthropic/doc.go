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
// Blocks of the provider's own tools are parts of their own, as they came. The citations of
// a text and the maker of a call are the provider data of their part.
package anthropic
