// Package hook asks people's own services before and after what an agent does.
//
// A hook is an HTTP endpoint. It is sent a POST with a JSON object that says
// what is about to happen, or what did: always version, hook, point, run and
// scope, user where the Run has one, and besides
//
//	BeforeSession  prompt
//	AfterSession   reason, text
//	BeforeModel    step, messages: what is new since the model's last answer
//	AfterModel     step, text, calls
//	BeforeTool     id, name, args
//	AfterTool      id, name, args, result
//
// It answers with nothing (204, or 200 without a body), or with a JSON object:
// {"allow": false, "reason": "…"} forbids; at AfterSession there is nothing left
// to forbid. Otherwise it may change
//
//	BeforeSession  {"prompt": "…"}
//	BeforeModel    {"say": "…"}, added as a user's message
//	AfterModel     {"text": "…", "drop": [0]}: the text, and calls left out, by index
//	BeforeTool     {"args": {…}}, which must fit the tool
//	AfterTool      {"text": "…", "isError": true}
//
// What it does not know it leaves out; what we do not know we ignore. Hooks of
// one point are asked in their order, each with the values of the one before.
// None is asked twice about one thing.
//
// A hook that cannot be asked (no answer in time, a status of 300 or more, an
// answer that is too large or makes no sense) has failed. With task.Hook.Ignore
// the session continues; otherwise a call is not made, or its result withheld, and
// anything else is an [UnavailableError]. A hook whose host does not exist ends the
// attempt before the next model call, so that a misspelled host is not taken for a
// tool that the work can do without. What each hook did is kept with the
// step that it was about.
package hook
