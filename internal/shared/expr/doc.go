// Package expr compiles and evaluates expressions in ${{ }} and in fields of Workflows: standard CEL, type-checked
// against what they read.
//
// [FromSchema] converts a JSON Schema to a [Type]; a [Language] has the functions, and its [Env] the variables and
// their types; [Env.Compile] and [Env.Template] compile a text once, into a [Program] or a [Template] that is safe for
// concurrent use over JSON values.
//
// Two checks are stricter than CEL's own. A field that may be absent has to be selected with .? or be tested with has()
// (absent.go), because CEL would find out at run time only. A string literal that is compared with a field of a closed
// set of values has to be one of them (enum.go).
//
// Authors of expressions, and the models whose output is read, are not trusted with the operator's time and memory.
// Expressions are bounded in length and depth. Expressions for which the parser or the checker need exponential time
// are refused (rewrite.go). Evaluation has a cost limit. The functions that Kubernetes' cost estimator charges too
// little for have costs of their own, which are checked before a call (cost.go).
//
// Package celkubernetes adds the functions of Kubernetes, which the runner does not link.
// docs/designs/010-workflow-expressions.md lists which parts of Kubernetes' CEL are used, and why others are not.
package expr
