// Package middleware has the layers around an agent's calls.
//
// A Layer is data: a name, a priority, tools, instructions, and optional functions that wrap the model
// call and the tool call or run at the start and at the end of a session. A smaller priority is further out; layers of
// equal priority keep their order. By convention 0 to 100 are internal layers of the runner, 100 to 500 built-in ones,
// and 500 to 1000 those of a custom runner.
//
// Build sorts layers, and Stack.Model and Stack.Tool compose them once per session. The innermost function is the
// loop's own. It records the action and executes it, so the values that the last layer passes on are final.
package middleware
