// Package loopdetect finds out whether an agent repeats itself.
//
// It looks at the last turns of a session, back to where a person spoke or the
// agent was last told that it is stuck. Two calls are the same when the tool
// and the meaning of their arguments are; what the model thought, and how calls
// are named, does not count. The calls that a model makes in one turn are
// compared as a set.
//
// Three things look like a loop and are none. A tool may report that the work it
// was asked about still runs ([step.Step.Pending]): asking again is waiting, which
// the limits of the Run end. A call may fail again after something else was
// achieved: a test is run between edits. And calls may fail with other arguments
// each time: an agent guesses names, up to twelve times.
package loopdetect
