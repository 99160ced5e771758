// Package textcall recognizes tool calls that a model wrote as text.
//
// A server whose parser of tool calls is off, or a model that was not trained for it, gives
// such an answer: nothing ran, and the text looks like a last word. A text counts as a call
// only if it names an offered tool where a syntax of calls has the name: in the markup of
// a chat template (markup.go), in a JSON object (object.go), or behind a label or in the
// form of a function (labeled.go). Where the call stands tells it from an example
// (position.go): an answer that leaks a call ends with it, or goes on with an invented
// result. Whether the prompt asked for a call to be shown is in quoted.go.
// A model that was just told that nothing was executed is read less kindly (again.go).
//
// It has no I/O.
package textcall
