// Package engine is the agent loop: ask the model, run the tool calls that it asks for, until it is done or must stop.
//
// What comes next is a pure function of the session (next.go, a list of rules). The loop executes it (session.go): it
// asks the model (turn.go, and modelerrors.go where that fails), compacts the session (compact.go), passes on messages
// of users and of the runner, has tool calls run (package toolcall), and asks users to raise limits that are used up
// (limits.go). Everything is recorded before it has an effect (records.go), and the sessions in memory are computed
// from the records (package state): a resumed session (resume.go) therefore equals the interrupted one.
//
//	          ┌────────────────────┐
//	resume → │        next        │ → end
//	          └┬────┬───┬────┬────┬┘
//	          ask tell  │ compact grant   each: intent → effect → result,
//	           ↑    │ execute │    │       in the journal
//	           └────┴────┴────┴────┘
//
// Sessions form a tree (delegate.go): a call of an agent runs this same loop in a session named after the call, which
// is resumed like any other. They share one meter, in which each has an account, and the requests to approvers and to
// the operator (package approval). Signals of approvers, operator and kubelet are one value (package signals). The
// status is a function of all these (progress.go).
//
// The layers of the session (middleware.Stack) surround each model call and each tool call. The innermost function is
// the engine's own, so layers cannot change what it records.
//
// The package depends on interfaces only: model.Model, tool.Tool, journal.Log, signals.Source, and the Reporter and the
// Sink defined here.
package engine
