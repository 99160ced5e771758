package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
)

// A Kind is what rules may ask of a tool.
type Kind string

// The kinds.
const (
	Plain Kind = "Plain" // its name and its arguments, whatever they are
	Other Kind = "Other" // the same, and none of them is called path, url or method
	Shell Kind = "Shell" // as Other, and the command line that it is given
	Files Kind = "Files" // as Plain; args.path is canonical, args.url and args.method are not there
	Web   Kind = "Web"   // as Plain; args.url and args.method are canonical, args.path is not there
)

// ToolKinds are the tools that rules may name. A name that ends in an asterisk
// stands for all that begin like it, such as tools of a server that tells their
// names when it is there. Without any, rules may name what they like.
type ToolKinds map[string]Kind

// has reports whether there may be a tool of a name, or of one like it.
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

// unknown is what to say of a tool that is not there.
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

// A Policy is a list of rules that was found to be good. It may be used by many
// at a time; a nil one allows everything.
type Policy struct {
	rules []compiled
}

// A compiled rule has its condition as a program; nil: it always holds.
type compiled struct {
	Rule
	program  cel.Program
	patterns int // instructions of those that are literals
}

// Compile checks rules. What is wrong with them is an [*Error], or several of
// them joined.
func Compile(rules []Rule, tools ToolKinds) (*Policy, error) {
	if len(rules) > MaxRules {
		return nil, &Error{Rule: MaxRules, Name: rules[MaxRules].Name, Field: "name", Message: fmt.Sprintf("a policy has at most %d rules", MaxRules)}
	}
	p := &Policy{}
	var wrong []error
	seen := map[string]bool{}
	patterns := 0
	for i, r := range rules {
		one, e := compile(r, tools, patterns)
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

// compile compiles a rule. Those before it have patterns of so many instructions.
func compile(r Rule, tools ToolKinds, before int) (compiled, *Error) {
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
	one, e := condition(r, tools, before)
	one.Rule = r
	return one, e
}

// condition compiles a condition, unless its patterns and those before it are too large together.
func condition(r Rule, tools ToolKinds, before int) (compiled, *Error) {
	when := r.When
	env, err := environment()
	if err != nil {
		return compiled{}, &Error{Field: "when", Message: err.Error()}
	}
	ast, issues := env.Compile(when)
	if issues.Err() != nil {
		return compiled{}, explain(when, issues.Errors()[0])
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return compiled{}, &Error{
			Field: "when", Line: 1, Column: 1,
			Message: fmt.Sprintf("this is a value of type %s, not a condition; compare it, as in tool == 'Write'", cel.FormatCELType(out)),
		}
	}
	if e := review(ast.NativeRep(), tools); e != nil {
		return compiled{}, e
	}
	if e := reviewLiterals(ast.NativeRep(), r.Tools, tools); e != nil {
		return compiled{}, e
	}
	size := patternSize(ast.NativeRep())
	if before+size > maxPatterns {
		return compiled{patterns: size}, tooManyPatterns(before + size)
	}
	program, err := env.Program(ast, programOptions()...)
	if err != nil {
		return compiled{}, &Error{Field: "when", Line: 1, Column: 1, Message: err.Error()}
	}
	return compiled{program: program, patterns: size}, nil
}
