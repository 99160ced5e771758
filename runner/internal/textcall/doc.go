// Package textcall recognizes tool calls that a model wrote as text.
//
// A server whose parser of tool calls is off, or a model that was not trained for it, gives such an answer: nothing was
// executed, and the text looks like a final answer. A text counts as a call only if it names an offered tool in a
// syntax of calls: in the markup of a chat template (markup.go), in a JSON object (object.go), or after a label or in
// the form of a function (labeled.go). The position distinguishes a call from an example (position.go): an answer with
// a call as text ends with it, or continues with an invented result. quoted.go recognizes that the prompt asked to see
// a call. Directly after a notice that nothing was executed, more forms count as calls (again.go).
//
// It has no I/O.
package textcall
