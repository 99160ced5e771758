// Package policy decides which calls an agent may make, which it may not make, and which need a user's decision.
//
// A policy is a list of rules, each a condition in CEL over one call of a tool and an answer: Allow, Deny or Ask. The
// first rule that applies decides; if none does, the call is allowed. [Compile] finds errors in rules before anything
// runs, so that their author gets them, and [Policy.Decide] decides one call. A rule that cannot be decided asks a
// user: it never lets a call pass.
//
// Both are pure. CEL is set up when the first condition is compiled, not before.
package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/deckhand-dev/deckhand/internal/shared/celhints"
)

// A Kind is what rules may read of a tool.
type Kind string

// The kinds.
const (
	Plain Kind = "Plain" // its name and its arguments, whatever they are
	Other Kind = "Other" // the same, and none of them is called path, url or method
	Shell Kind = "Shell" // as Other, and the command line that it is given
	Files Kind = "Files" // as Plain; args.path is canonical, args.url and args.method are not there
	Web   Kind = "Web"   // as Plain; args.url and args.method are canonical, args.path is not there
)

// ToolKinds are the tools that rules may name. A name that ends in an asterisk matches all names with that prefix, such
// as tools of a server that are known only when it runs. If it is empty, rules may name any tool.
type ToolKinds map[string]Kind

// has reports whether there may be a tool with a name, or with a pattern of names.
func (k ToolKinds) has(name string) bool {
	if len(k) == 0 || k[name] != "" {
		return true
	}
	begin, pattern := strings.CutSuffix(name, "*")
	for known := range k {
		prefix, open := strings.CutSuffix(known, "*")
		if open && strings.HasPrefix(name, prefix) || pattern && strings.HasPrefix(prefix, begin) {
			return true
		}
	}
	return false
}

// unknown returns the message about a tool that does not exist.
func (k ToolKinds) unknown(name string) string {
	known := slices.Sorted(maps.Keys(k))
	const most = 20
	if len(known) > most {
		known = append(known[:most], "…")
	}
	return fmt.Sprintf("there is no tool %q; the agent has %s", shorten(name), strings.Join(known, ", "))
}

// shell reports whether any tool may be a shell.
func (k ToolKinds) shell() bool {
	return len(k) == 0 || slices.Contains(slices.Collect(maps.Values(k)), Shell)
}

// A Policy is a list of valid rules. It is safe for concurrent use; a nil one allows everything.
type Policy struct {
	rules []compiled
}

// A compiled rule has its condition as a program; nil: it always holds.
type compiled struct {
	Rule
	program  cel.Program
	patterns int // instructions of those that are literals
}

// A Check finds a mistake in a rule whose condition compiles; nil: there is none.
type Check func(r Rule, condition *ast.AST) *Error

// Compile checks rules. The error is an [*Error], or several of them joined.
func Compile(rules []Rule, tools ToolKinds, checks ...Check) (*Policy, error) {
	if len(rules) > MaxRules {
		return nil, &Error{Rule: MaxRules, Name: rules[MaxRules].Name, Field: "name", Message: fmt.Sprintf("a policy has at most %d rules", MaxRules)}
	}
	p := &Policy{}
	var wrong []error
	seen := map[string]bool{}
	patterns := 0
	for i, r := range rules {
		one, e := compile(r, tools, checks, patterns)
		patterns += one.patterns
		if e == nil && seen[r.Name] {
			e = &Error{Field: "name", Message: "another rule has this name; give each its own"}
		}
		if e != nil {
			e.Rule, e.Name = i, r.Name
			wrong = append(wrong, e)
		}
		if patterns > maxPatterns {
			break // none of the others is compiled
		}
		seen[r.Name] = true
		p.rules = append(p.rules, one)
	}
	switch len(wrong) {
	case 0:
		return p, nil
	case 1:
		return nil, wrong[0]
	}
	return nil, errors.Join(wrong...)
}

// compile compiles a rule. before is the size of the patterns of earlier rules, in instructions.
func compile(r Rule, tools ToolKinds, checks []Check, before int) (compiled, *Error) {
	if field, message := r.validate(); field != "" {
		return compiled{}, &Error{Field: field, Message: message}
	}
	for _, name := range r.Tools {
		if !tools.has(name) {
			return compiled{}, &Error{Field: "tools", Message: tools.unknown(name)}
		}
	}
	if strings.TrimSpace(r.When) == "" {
		return compiled{Rule: r}, nil
	}
	one, e := condition(r, tools, checks, before)
	one.Rule = r
	return one, e
}

// condition compiles a condition, unless its patterns and those before it are too large together.
func condition(r Rule, tools ToolKinds, checks []Check, before int) (compiled, *Error) {
	parsed, e := Parse(r.When, tools)
	if e != nil {
		return compiled{}, e
	}
	for _, check := range checks {
		if e := check(r, parsed.NativeRep()); e != nil {
			return compiled{}, e
		}
	}
	size := patternSize(parsed.NativeRep())
	if before+size > maxPatterns {
		return compiled{patterns: size}, tooManyPatterns(before + size)
	}
	env, err := environment()
	if err != nil {
		return compiled{}, &Error{Field: "when", Message: err.Error()}
	}
	program, err := env.Program(parsed, programOptions()...)
	if err != nil {
		return compiled{}, &Error{Field: "when", Line: 1, Column: 1, Message: err.Error()}
	}
	return compiled{program: program, patterns: size}, nil
}

// Parse returns the syntax tree of a condition without mistakes.
func Parse(when string, tools ToolKinds) (*cel.Ast, *Error) {
	env, err := environment()
	if err != nil {
		return nil, &Error{Field: "when", Message: err.Error()}
	}
	parsed, issues := env.Compile(when)
	if issues.Err() != nil {
		return nil, explain(when, issues.Errors()[0])
	}
	if out := parsed.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, &Error{
			Field: "when", Line: 1, Column: 1,
			Message: fmt.Sprintf("this is a value of type %s, not a condition; compare it, as in tool == 'Write'", cel.FormatCELType(out)),
		}
	}
	if e := review(parsed.NativeRep(), tools); e != nil {
		return nil, e
	}
	return parsed, nil
}

// explain explains an error of CEL in a condition, with what to write.
func explain(when string, e *cel.Error) *Error {
	wrong := &Error{Field: "when", Line: max(e.Location.Line(), 1), Column: max(e.Location.Column()+1, 1)}
	wrong.Message = celhints.Append(celhints.Message(e), when, wrong.Line, wrong.Column, hints)
	return wrong
}

// hints are tried in their order.
var hints = slices.Concat([]celhints.Hint{
	{Message: "token recognition", After: "=~", Text: "write args.x.matches('…')"},
	{Message: "token recognition", After: "$", Text: "values have no mark here: write args.x"},
}, celhints.Syntax, []celhints.Hint{
	{Message: "mismatched input", Text: "conditions are joined by && and ||"},
	{Message: "extraneous input", Text: "conditions are joined by && and ||"},
	{Message: "undeclared reference to 'run'", After: "(", Text: shellHint},
	{Message: "undeclared reference to", After: "(", Text: functionHint + shellHint},
	{Message: "undeclared reference to 'agent'", Text: "an agent has agent.name and agent.depth"},
	{Message: "undeclared reference to 'run'", Text: "a run has run.namespace, run.name, run.user and run.labels"},
	{Message: "undeclared reference", Text: "a condition reads tool, args, agent.name, agent.depth, run.namespace, run.name, run.user, run.labels and shell; strings need quotes"},
	{Message: "type 'shell' does not support field selection", Text: shellHint},
	{Message: "does not support field selection", Text: "only args and run.labels have fields; tool is the name itself, as in tool == 'Write'"},
	{Message: "no matching overload for 'runs'", Text: "write a program and at most seven words, each in quotes: shell.runs('git', 'push')"},
	{Message: "no matching overload for 'opaque'", Text: "write shell.opaque()"},
	{Message: "no matching overload for '_&&_'", Text: "both sides must be conditions"},
	{Message: "no matching overload for '_||_'", Text: "both sides must be conditions"},
	{Message: "no matching overload for '!_'", Text: "only a condition can be negated"},
	{Message: "no matching overload for '_==_'", Text: "compare values of one type: strings need quotes"},
	{Message: "invalid argument to has()", Text: "write has(args.x)"},
	{Message: "invalid matches argument", Text: "the syntax is RE2, without look-around and back-references"},
	{Message: "nesting limit", Text: "at most two of exists and all go into each other"},
})

var functionHint = "the functions are contains, startsWith, endsWith, matches, " + strings.Join(stringFunctionNames, ", ") + ", size, exists, all, map and filter, "

const shellHint = "a shell has shell.runs('git', 'push') and shell.opaque()"

// Bounds of a policy.
const (
	MaxRules  = 128     // those of an agent, and the approvals of its tools
	MaxName   = 100     // characters of the name of a rule
	MaxWhen   = 4 << 10 // bytes of a condition
	MaxReason = 1 << 10 // bytes of a reason
)

// An Answer is the decision of a policy about a call.
type Answer string

// The answers.
const (
	Allow Answer = "Allow" // it runs
	Deny  Answer = "Deny"  // it does not run, and the result tells the model why
	Ask   Answer = "Ask"   // a person decides
)

// A Rule is one line of a policy.
type Rule struct {
	// Name is unique in its policy; it identifies the rule that decided.
	Name string
	// Tools restricts the rule to calls of these tools; empty: any. A name that ends in an asterisk matches all names
	// with that prefix.
	Tools []string
	// When is a condition in CEL; empty: always.
	When   string
	Answer Answer
	// Reason is for the model if the rule denies, and for the approver if it asks.
	Reason string
}

// Approval returns the rule of a tool that needs a user's approval, under a condition; empty: always. It must follow
// the rules of the agent.
func Approval(tool, when string) Rule {
	return Rule{Name: "approval of " + tool, Tools: []string{tool}, When: when, Answer: Ask}
}

// About reports whether the rule is about calls of a tool.
func (r Rule) About(tool string) bool {
	return len(r.Tools) == 0 || slices.ContainsFunc(r.Tools, func(name string) bool {
		prefix, pattern := strings.CutSuffix(name, "*")
		return name == tool || pattern && strings.HasPrefix(tool, prefix)
	})
}

// An Error describes what is wrong with one rule, where, and what to write instead.
type Error struct {
	Rule  int    // its place in the policy, from 0
	Name  string // of the rule
	Field string // name, tools, when, answer or reason
	// Line and Column are where in a condition, from 1; 0 elsewhere.
	Line, Column int
	Message      string
}

// Error implements error.
func (e *Error) Error() string {
	where := ""
	switch {
	case e.Line > 1:
		where = fmt.Sprintf(", line %d, column %d", e.Line, e.Column)
	case e.Column > 0:
		where = fmt.Sprintf(", column %d", e.Column)
	}
	name := ""
	if e.Name != "" {
		name = fmt.Sprintf(" %q", shorten(e.Name))
	}
	return fmt.Sprintf("rule %d%s: %s%s: %s", e.Rule+1, name, e.Field, where, e.Message)
}

// validate returns the first invalid field of a rule and a message; empty: all are valid. It does
// not check the condition.
func (r Rule) validate() (field, message string) {
	switch {
	case strings.TrimSpace(r.Name) == "":
		return "name", "a rule needs a name, which messages show when it decides"
	case len([]rune(r.Name)) > MaxName || strings.ContainsFunc(r.Name, control):
		return "name", fmt.Sprintf("a name has at most %d characters, on one line", MaxName)
	case r.Answer != Allow && r.Answer != Deny && r.Answer != Ask:
		return "answer", fmt.Sprintf("%q is no answer; write Allow, Deny or Ask", shorten(string(r.Answer)))
	case len(r.Reason) > MaxReason:
		return "reason", fmt.Sprintf("a reason has at most %d bytes", MaxReason)
	case len(r.When) > MaxWhen:
		return "when", fmt.Sprintf("a condition has at most %d bytes; make several rules of it", MaxWhen)
	}
	return "", ""
}

func control(c rune) bool { return c < ' ' || c == 0x7f }

// shorten bounds a text that an error repeats.
func shorten(s string) string {
	const most = 100
	if runes := []rune(s[:min(len(s), 4*most)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
