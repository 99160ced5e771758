// Package httpapi is the HTTP client that all model APIs share: one call of a model, bounded in time and size, whose
// failures are the errors of package model.
//
// It does not depend on the format of requests and answers. A model begins a Call and sends one or more
// requests in it. Its Decoder turns each Answer, a stream of events or one JSON document, into deltas:
//
//	Client ─ Begin ─▶ Call ─ Send ─▶ Answer ─ Relay ─▶ Decoder
//	                   │ the key, read anew; timeouts
//	                   │ statuses, web pages, redirects → typed errors
//	                   └ all messages, without the key in them
//
// The endpoint is not trusted: nothing it does may block the caller, grow its memory without bound, or bring the key
// into a message.
package httpapi
