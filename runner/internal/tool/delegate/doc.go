// Package delegate has the tools with which an agent delegates to others: Task, which opens a new session, and agents
// as tools with their own names. An agent works in the same pod, or in a child Run ([Run]). The session executes
// delegations ([tool.Session]); this package defines what a model reads about them. The other agent knows only its
// input, and only its result is returned. A call that a crash interrupted is repeated and continues the session that it
// had opened.
package delegate
