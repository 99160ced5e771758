// Package openai speaks the chat completions dialect: to OpenAI itself and to
// the many servers that imitate it.
//
// Reading is liberal and the same for all of them; writing is strict, and where
// providers want different things the difference is a row of data (dialects.go).
// A provider more is a row more, a golden file of what it is sent, and its
// recordings.
//
// The client library addresses, authorizes and builds the HTTP request. Its types
// leave out what is zero and its stream drops what providers add, so the body is
// written and the answer is read here, around its one HTTPDoer (exchange):
//
//	Request ─ body ─▶ go-openai ─▶ exchange ─▶ endpoint
//	                                  │ statuses, web pages, redirects → typed errors
//	                                  │ silence and size are bounded
//	                                  ▼
//	                               events    whatever servers send → chunks
//	                                  ▼
//	                               decode    chunks → what they say, in one pass
//	                                  ▼
//	                               answer    → Deltas, or why there is no answer
//
// The far end is not trusted: nothing it does may hang the caller, grow its
// memory without bound, or bring the key into a message.
package openai
