// Package expr compiles and evaluates the expressions of Workflows: CEL with the
// types of what it reads, so that a field that is not there, or a value that may
// be absent, is found when a Workflow is applied and not when it runs.
//
// [FromSchema] makes a [Type] of a JSON Schema; an [Env] is the variables and
// their types; [Env.Compile] and [Env.Template] make a [Program] and a [Template]
// of a text, once; these are evaluated many times, by many at a time, over JSON.
//
// What may be absent has the type optional, however it is reached: a plain
// nodes.a.output is the same as nodes.a.?output where there may be none, and
// what is selected from it is optional too. CEL itself knows this only for its
// own optional values and for no fields of objects, so the expression is checked,
// rewritten where such a field is selected, and checked again (adapt.go).
//
// Whoever writes a Workflow, and the models whose output it reads, are not
// trusted with the operator's time and memory. A text is bounded in size and
// depth; what CEL does at the parser's or checker's leisure in exponential time
// is kept from it (optionals.go, and keys of maps in adapt.go); evaluating has a
// budget, which costly functions are held to before they work (cost.go).
package expr
