// Package policy decides which calls an agent may make, which it may not make, and which need a user's decision.
//
// A policy is a list of rules, each a condition in CEL over one call of a tool and an answer: Allow, Deny or Ask. The
// first rule that applies decides; if none does, the call is allowed. [Compile] finds errors in rules before anything
// runs, so that their author gets them, and [Policy.Decide] decides one call. A rule that cannot be decided asks a
// user: it never lets a call pass.
//
// Both are pure. CEL is set up when the first condition is compiled, not before.
package policy
