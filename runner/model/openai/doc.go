// Package openai calls models over the chat completions API: those of OpenAI itself and of the many servers that
// imitate it. Options.API chooses OpenAI's Responses API, which internal/responses has.
//
// Reading is liberal and the same for all; writing is strict, and differences between providers are rows of data
// (dialects.go). To add a provider, add a row, a golden file of what it is sent, and its recordings.
//
// The client library writes, addresses and sends the request. Its HTTP client (exchange) adds the fields to the body
// that the library's types lack, and this package reads the answer itself, because the library's stream drops fields
// that providers add:
//
//	Request ─ request ─▶ go-openai ─▶ exchange ─▶ endpoint
//	                                     │ statuses, web pages, redirects → typed errors
//	                                     │ silence and size are bounded
//	                                     ▼
//	                                  httpapi   stream or document → events
//	                                     ▼
//	                                  answer    events → Deltas, or why there is no answer
//
// The endpoint is not trusted: nothing it does may block the caller, grow its memory without bound, or bring the key
// into a message.
package openai
