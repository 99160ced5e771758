// Package engine is the agent loop: ask the model, execute the calls it asks
// for, until it is done or may not go on.
//
// What comes next is a pure function of the session (next.go, a list of
// rules); what that takes is in ask.go (the model's turn) and execute.go (the
// tools'). Everything is recorded before it has an effect, and the session in
// memory is nothing but the fold of what was recorded (journal.State): a
// session that is resumed is therefore the session that was interrupted.
//
//	        ┌────────────┐
//	replay →│    next    │→ end
//	        └─┬───┬───┬──┘
//	         ask say execute      each: intent → effect → result, in the journal
//	        ↑     │     ↓
//	        └─────┴─────┘
//
// It knows ports only: model.Model, tool.Tool, journal.Log, events.Sink and
// the Reporter defined here.
package engine
