// Package policy says what an agent may do by itself, what it may not do, and
// what a user decides.
//
// A policy is a list of rules, each a condition in CEL over one call of a tool
// and an answer: Allow, Deny or Ask. The first that applies decides; where none
// does, the call is allowed. [Compile] finds what is wrong with rules before
// anything runs, so that their author gets an error, and [Policy.Decide] decides one
// call. A rule that cannot be decided asks a user: it never lets a call pass.
//
// Both are pure. CEL is set up when the first condition is compiled, not before.
package policy
