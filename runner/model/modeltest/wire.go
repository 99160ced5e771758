package modeltest

import (
	"encoding/json"
	"net/http"
)

// A wire is one API of models.
type wire struct {
	// read fills a Request from its raw body. check refuses what strict providers refuse.
	read  func(*Request) error
	check func(Request) error
	// keys returns the API keys in the headers of a request.
	keys   func(http.Header) []string
	render func(Request, Turn) playback
	// failure is the body of an error.
	failure func(status int, message string) map[string]any
	// marksCache reports whether requests mark how far a prompt is cached.
	marksCache bool
	// framed reports whether an answer is a stream of frames and not of lines.
	framed bool
}

// chat is the wire of OpenAI's chat completions.
var chat = &wire{
	read:   func(r *Request) error { return json.Unmarshal(r.Raw, r) },
	check:  Request.check,
	keys:   func(h http.Header) []string { return []string{h.Get("Authorization"), h.Get("Api-Key")} },
	render: render,
	failure: func(status int, message string) map[string]any {
		return map[string]any{"error": map[string]any{"message": message, "type": "scripted", "code": status}}
	},
}

// shows reports whether a request carries the key.
func (w *wire) shows(h http.Header, key string) bool {
	for _, shown := range w.keys(h) {
		if shown == key || shown == "Bearer "+key {
			return true
		}
	}
	return false
}

// refuse answers an error.
func (w *wire) refuse(rw http.ResponseWriter, status int, message string) {
	rw.Header().Set("Content-Type", "application/json")
	if w.framed {
		rw.Header().Set("X-Amzn-ErrorType", exceptionOf(status)+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	}
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(w.failure(status, message)) // the client went away
}
