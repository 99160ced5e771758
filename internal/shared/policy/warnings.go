package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// Arguments are the names of the arguments that tools take, by the names of the tools. The
// arguments of a tool that is not there, or has none but nil, are not known.
type Arguments map[string][]string

// Warnings returns what is likely wrong in rules that compile, in their order: a condition that is
// true for no tool, and one that reads an argument that no tool has, so that it can be decided for
// no call. Without any tools they are not known, and nothing is wrong.
func Warnings(rules []Rule, tools ToolKinds, arguments Arguments) []*Error {
	env, err := environment()
	if err != nil || len(tools) == 0 {
		return nil
	}
	var out []*Error
	for i, r := range rules {
		if strings.TrimSpace(r.When) == "" {
			continue
		}
		parsed, issues := env.Compile(r.When)
		if issues.Err() != nil || review(parsed.NativeRep(), tools) != nil {
			continue // Compile says so
		}
		root := ast.NavigateAST(parsed.NativeRep())
		at, message := warningOf(root, candidates(r, tools, arguments, root))
		if message == "" {
			continue
		}
		where := parsed.NativeRep().SourceInfo().GetStartLocation(at.ID())
		out = append(out, &Error{Rule: i, Name: r.Name, Field: "when", Line: where.Line(), Column: where.Column() + 1, Message: message})
	}
	return out
}

// A candidate is a tool that a rule may be about.
type candidate struct {
	name string // empty: any tool whose name begins with prefix and is not in the condition
	// prefix is the beginning of the names of such tools.
	prefix    string
	arguments []string
	isKnown   bool // arguments are all that it has
}

// lacks reports whether no call of the tool has an argument.
func (c candidate) lacks(argument string) bool {
	return c.isKnown && !slices.Contains(c.arguments, argument)
}

// areWithout reports whether no call of any of the tools has an argument.
func areWithout(tools []candidate, argument string) bool {
	return !slices.ContainsFunc(tools, func(c candidate) bool { return !c.lacks(argument) })
}

// candidates returns the tools that a rule is about, among them those that only its condition names.
func candidates(r Rule, tools ToolKinds, arguments Arguments, root ast.NavigableExpr) []candidate {
	about := tools.about(r.Tools)
	var out []candidate
	for _, name := range slices.Sorted(maps.Keys(about)) {
		prefix, open := strings.CutSuffix(name, "*")
		if !open {
			out = append(out, candidate{name: name, arguments: arguments[name], isKnown: arguments[name] != nil})
			continue
		}
		out = append(out, candidate{prefix: prefix})
		for _, literal := range ast.MatchDescendants(root, ast.KindMatcher(ast.LiteralKind)) {
			if named, ok := text(literal); ok && strings.HasPrefix(named, prefix) {
				out = append(out, candidate{name: named})
			}
		}
	}
	return out
}

// warningOf returns what is wrong with a condition, and where; an empty message: nothing.
func warningOf(root ast.NavigableExpr, tools []candidate) (at ast.NavigableExpr, message string) {
	if root.Kind() == ast.LiteralKind || len(tools) == 0 {
		return nil, ""
	}
	if read, by := missingRead(root, tools); read != nil {
		return read, noArgument(argumentOf(read), by, "the condition cannot be decided for these calls")
	}
	if slices.ContainsFunc(tools, func(c candidate) bool { holds, _ := c.truth(root); return holds }) {
		return nil, ""
	}
	isMissing := func(e ast.NavigableExpr) bool {
		name := optionalArgument(e)
		return name != "" && areWithout(tools, name)
	}
	if missing := ast.MatchDescendants(root, isMissing); len(missing) > 0 {
		return missing[0], noArgument(optionalArgument(missing[0]), tools, "the rule never applies")
	}
	return root, "the condition is true for no tool of this Agent, so the rule never applies. For several tools write, for example, tool in ['Read', 'Write']"
}

// noArgument says that tools have no argument of a name, what follows, and which they have.
func noArgument(name string, tools []candidate, so string) string {
	var have []string
	for _, c := range tools {
		have = append(have, c.arguments...)
	}
	slices.Sort(have)
	have = slices.Compact(have)
	who := "no tool that it matches has"
	if len(tools) == 1 {
		who = "the tool " + tools[0].name + " does not have"
	}
	message := fmt.Sprintf("%s the argument %s, so %s", who, shorten(name), so)
	if hint := template.Similar(name, have); hint != "" {
		return message + hint
	}
	const most = 10
	if len(have) > most {
		have = append(have[:most], "…")
	}
	if len(have) == 0 {
		return message
	}
	return fmt.Sprintf("%s; there are %s", message, strings.Join(have, ", "))
}
