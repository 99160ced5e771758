// Package engine is the agent loop: ask the model, execute the calls it asks
// for, until it is done or may not go on.
//
// What comes next is a pure function of the session (next.go, a list of
// rules); what that takes is in ask.go (the model's turn), compact.go (making
// room for it) and execute.go, job.go and call.go (the tools'). Everything is
// recorded before it has an effect, and the sessions in memory are nothing but
// the fold of what was recorded (state.Run): a session that is resumed is
// therefore the session that was interrupted.
//
//	        ┌────────────────────┐
//	replay →│        next        │→ end
//	        └┬────┬───┬────┬────┬┘
//	        ask  say  │  compact raise   each: intent → effect → result,
//	         ↑    │ execute │    │       in the journal
//	         └────┴────┴────┴────┘
//
// Sessions form a tree (delegate.go): a call of an agent runs this same loop in
// a session named after the call, and is resumed where that stands. They share
// one meter (meter.go), in which each has an account that counts into those
// above it, and one room in which people are asked (people.go, decide.go), and
// whoever makes child Runs is (child.go). While all of them wait for people or
// child Runs the clock stands still (activity.go, clock.go).
//
// Around each model call and each tool call stand the layers of the session
// (middleware.Stack); innermost is the engine's own function, so what is
// recorded as intended is final.
//
// It knows ports only: model.Model, tool.Tool, journal.Log, and the Reporter,
// the Sink, the People and the Children defined here.
package engine
