// Package delegate is the tools by which an agent hands work to others: task,
// which opens a fresh session, and agents as tools, each under a name of its own.
//
// An agent works in the same pod, or in a child Run ([Run]).
//
// What they do is for the session to do ([tool.Session]); here is what a model is
// told of it. The other agent knows only what is handed over, and only its result
// comes back. A call that a crash interrupted is made again and finds the other
// session where it stood.
package delegate
