// Package engine is the agent loop: ask the model, run the tool calls that it asks
// for, until it is done or may not go on.
//
// What comes next is a pure function of the session (next.go, a list of rules). The
// loop does it (session.go): it asks the model (turn.go, and modelerrors.go where that
// fails), makes space for it (compact.go), tells it what users and the runner say
// (messages.go), has tool calls run (package toolcall) and asks for more of what is used
// up (limits.go). Everything
// is recorded before it has an effect (records.go), and the sessions in memory are
// what the records amount to (package state): a session that is resumed (resume.go)
// is therefore the session that was interrupted.
//
//	          ┌────────────────────┐
//	resume → │        next        │ → end
//	          └┬────┬───┬────┬────┬┘
//	          ask tell  │ compact grant   each: intent → effect → result,
//	           ↑    │ execute │    │       in the journal
//	           └────┴────┴────┴────┘
//
// Sessions form a tree (delegate.go): a call of an agent runs this same loop in a
// session named after the call, and is resumed where that stands. They share one
// meter, in which each has an account, and the requests to approvers and to the
// operator (package approval). What others want of the Run is one value (package
// signals). The status is a function of all these (progress.go).
//
// Around each model call and each tool call stand the layers of the session
// (middleware.Stack); innermost is the engine's own function, so what is recorded as
// intended is final.
//
// It knows ports only: model.Model, tool.Tool, journal.Log, signals.Source, and the
// Reporter and the Sink defined here.
package engine
