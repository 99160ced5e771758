// Package stuck finds out whether an agent goes round in circles.
//
// It looks at the last turns of a session, back to where a person spoke or the
// agent was last told that it is stuck. Two calls are the same when the tool
// and the meaning of their arguments are; what the model thought, and how calls
// are named, does not count. The calls that a model makes in one turn are
// compared as a set.
package stuck
