// Package middleware is the onion around an agent's calls.
//
// A Layer is data: a name, a priority, tools, words for the instructions, and
// optional functions that wrap the model call and the tool call or run at the
// start and at the end of a session. A smaller priority is further out; layers
// of one priority keep the order in which they were given. By custom 0 to 100
// is the runner's own, 100 to 500 what comes with it, 500 to 1000 the user's.
//
// Build puts layers in order, and Stack.Model and Stack.Tool compose them once a
// session; a call through them then costs what the layers themselves do.
// Innermost is the loop's own function, which records
// what is about to happen and does it: what a layer passes on is final.
package middleware
