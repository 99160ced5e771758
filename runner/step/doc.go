// Package step has the types of a session: its messages (Step), their usage (Usage), their place in the tree of agents
// (Scope) and the events about them (Event). All packages of the runner use these types; this one imports only the
// standard library.
package step
