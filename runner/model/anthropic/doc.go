// Package anthropic calls models over the Messages API: those of Anthropic itself and of providers that offer the same
// API.
//
// Reading is liberal and the same for all; writing is strict, and differences between providers and models are rows of
// data (dialect, family).
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
// The official client is not used: it takes a stream that breaks off for a whole answer, and one with two messages for
// the second (docs/designs/009).
//
// Blocks of the provider's own tools are kept unchanged as separate parts. The citations of a text and the caller of a
// tool are the provider data of their part.
package anthropic
