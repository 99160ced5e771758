// Package httpapi is the HTTP client that all model APIs share: one call of a
// model, bounded in time and size, whose failures are the errors of package model.
//
// It knows neither requests nor answers. A model begins a Call, sends one request
// or several in it, and has each Answer, a stream of events or one JSON document,
// turned into deltas by its Decoder:
//
//	Client ─ Begin ─▶ Call ─ Send ─▶ Answer ─ Relay ─▶ Decoder
//	                   │ the key, read anew; timeouts
//	                   │ statuses, web pages, redirects → typed errors
//	                   └ all messages, without the key in them
//
// The endpoint is not trusted: nothing it does may block the caller, grow its
// memory without bound, or bring the key into a message.
package httpapi
