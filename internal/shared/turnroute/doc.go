// Package turnroute decides which route of an Agent answers a turn.
//
// A condition is a CEL expression over five numbers, which always have a value and
// whose ranges are known. [Check] finds routes that can never be used, and conditions
// that do not compile, before anything runs. [Condition.Holds] evaluates one before a
// turn. Lint, the operator and the runner use the same functions.
//
// CEL is set up when the first condition is compiled.
package turnroute
