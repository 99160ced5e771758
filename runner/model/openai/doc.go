// Package openai speaks the chat completions dialect: to OpenAI itself and to
// the many servers that imitate it.
//
// Reading is liberal and the same for all of them; writing is strict, and where
// providers want different things the difference is a row of data (dialect).
//
// The official client builds the request and reads the stream. Everything else
// happens in the one HTTPDoer below it (exchange) and in our own reading of the
// chunks (answer):
//
//	Request ─ body ─▶ exchange ─▶ endpoint
//	                     │ statuses, web pages, errors in 200   → typed errors
//	                     ▼
//	                  patientBody   silence and size are bounded
//	                     ▼
//	                  events        whatever servers send → data lines
//	                     ▼
//	                  go-openai     data lines → chunks
//	                     ▼
//	                  answer        chunks → Deltas, or why there is no answer
//
// The far end is not trusted: nothing it does may hang the caller, grow its
// memory without bound, or bring the key into a message.
package openai
