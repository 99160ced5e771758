package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a policy.
const (
	MaxRules  = 128     // those of an agent, and the approvals of its tools
	MaxName   = 100     // characters of the name of a rule
	MaxWhen   = 4 << 10 // bytes of a condition
	MaxReason = 1 << 10 // bytes of a reason
)

// An Answer is what a policy says to a call.
type Answer string

// The answers.
const (
	Allow Answer = "Allow" // it runs
	Deny  Answer = "Deny"  // it does not run, and the result tells the model why
	Ask   Answer = "Ask"   // a person decides
)

// A Rule is one line of a policy.
type Rule struct {
	// Name is unique in its policy; it says which rule decided.
	Name string
	// Tools narrows the rule to calls of these tools; empty: of any. A name that
	// ends in an asterisk stands for all that begin like it.
	Tools []string
	// When is a condition in CEL; empty: always.
	When   string
	Answer Answer
	// Reason is for the model if the rule denies, and for the approver if it asks.
	Reason string
}

// Approval is the rule of a tool that needs a person's approval, under a
// condition; empty: always. It belongs behind the rules of the agent.
func Approval(tool, when string) Rule {
	return Rule{Name: "approval of " + tool, Tools: []string{tool}, When: when, Answer: Ask}
}

// about reports whether the rule is about calls of a tool.
func (r Rule) about(tool string) bool {
	return len(r.Tools) == 0 || slices.ContainsFunc(r.Tools, func(name string) bool {
		prefix, pattern := strings.CutSuffix(name, "*")
		return name == tool || pattern && strings.HasPrefix(tool, prefix)
	})
}

// An Error says what is wrong with one rule, where, and what to write instead.
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

// shorten bounds what an error repeats.
func shorten(s string) string {
	const most = 100
	if runes := []rune(s[:min(len(s), 4*most)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
