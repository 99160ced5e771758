// Package hook calls users' services before and after the actions of an agent.
//
// A hook is an HTTP endpoint. It gets a POST with a JSON object about the action: always version, hook, point, run and
// scope, user where the Run has one, and besides
//
//	BeforeSession  prompt
//	AfterSession   reason, text
//	BeforeModel    step, messages: what is new since the model's last answer
//	AfterModel     step, text, calls
//	BeforeTool     id, name, args
//	AfterTool      id, name, args, result
//
// It answers with nothing (204, or 200 without a body), or with a JSON object: {"allow": false, "reason": "…"} forbids;
// at AfterSession there is nothing left to forbid. Otherwise it may change
//
//	BeforeSession  {"prompt": "…"}
//	BeforeModel    {"say": "…"}, added as a user's message
//	AfterModel     {"text": "…", "drop": [0]}: the text, and calls left out, by index
//	BeforeTool     {"args": {…}}, which must fit the tool
//	AfterTool      {"text": "…", "isError": true}
//
// Unknown fields are ignored. Hooks of one point are called in their order, each with the changes of the previous one.
// No hook is called twice about the same action.
//
// A hook fails if it does not answer in time, or answers with a status of 300 or more, or with an invalid or too large
// body. With task.Hook.Ignore the session continues; otherwise a call is not made, or its result is withheld, and at
// any other point the error is an [UnavailableError]. A hook whose host does not exist ends the attempt before the next
// model call, so that a misspelled host is noticed. What each hook did is recorded with the step.
package hook
