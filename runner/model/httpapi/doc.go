// Package httpapi is what every wire needs of HTTP: one call of a model,
// bounded in time and size, whose failures are the errors of package model.
//
// It knows neither what is asked nor how an answer is written. A wire begins a
// Call, sends one request or several in it, and reads each Answer, which is a
// stream of events or one JSON document:
//
//	Client ─ Begin ─▶ Call ─ Send ─▶ Answer ─▶ Lines or Document
//	                   │ the key, read anew; how long it may take
//	                   │ statuses, web pages, redirects → typed errors
//	                   └ whatever is told, without the key in it
//
// The far end is not trusted: nothing it does may hang the caller, grow its
// memory without bound, or bring the key into a message.
package httpapi
