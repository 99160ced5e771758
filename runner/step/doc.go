// Package step is the vocabulary of the runner: what was said in a session (Step), what it
// cost (Usage), where it happened (Scope) and what is reported about it (Event).
//
// Every other package of the runner speaks in these types; this one imports
// only the standard library and knows none of them.
package step
