package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
)

// A Result is what a policy decides about one call.
type Result struct {
	Answer Answer
	// Rule is the name of the rule that decided; empty: none did.
	Rule string
	// Reason is for the model by Deny, and for the person by Ask. It is never
	// empty for those.
	Reason string
	// Hidden says what a command line runs without showing it, when the policy
	// read one: for the person.
	Hidden []string
	// Failed says that the rule could not be decided, and that the answer is Ask
	// for that. What a person says then is about this one call.
	Failed bool
}

// Decide gives the answer of the first rule that applies to a call, and Allow
// when none does. A rule that cannot be decided, since the call lacks what it
// reads or it costs too much, asks a person.
func (p *Policy) Decide(ctx context.Context, call Call) Result {
	if p == nil {
		return Result{Answer: Allow}
	}
	in := newInput(call)
	for _, r := range p.rules {
		applies, err := r.applies(ctx, in)
		if err != nil {
			return r.undecided(err, in)
		}
		if applies {
			return r.result(in)
		}
	}
	return Result{Answer: Allow}
}

// applies reports whether a rule is about a call.
func (r *compiled) applies(ctx context.Context, in *input) (bool, error) {
	if !r.about(in.call.Tool) {
		return false, nil
	}
	if r.program == nil {
		return true, nil
	}
	out, _, err := r.program.ContextEval(ctx, in)
	if err != nil {
		return false, err //nolint:wrapcheck // undecided words it
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("its condition is a value of type %s, neither true nor false", out.Type().TypeName())
	}
	return bool(holds), nil
}

func (r *compiled) result(in *input) Result {
	v := Result{Answer: r.Answer, Rule: r.Name, Reason: r.Reason}
	if r.Answer == Allow {
		return v
	}
	v.Hidden = in.line.hidden()
	if v.Reason == "" {
		v.Reason = fmt.Sprintf("The policy has a rule for this, %q.", r.Name)
	}
	return v
}

func (r *compiled) undecided(err error, in *input) Result {
	message := err.Error()
	switch {
	case strings.Contains(message, "no such key"):
		message += "; where an argument may be left out, write has(args.x) && … in the rule"
	case strings.Contains(message, "no such overload"):
		message += "; an argument is of another type than the rule expects"
	case strings.Contains(message, "actual cost limit exceeded"):
		message = "its condition costs too much to decide for this call"
	}
	return Result{
		Answer: Ask, Rule: r.Name, Failed: true, Hidden: in.line.hidden(),
		Reason: fmt.Sprintf("The rule %q of the policy could not be decided: %s.", r.Name, shorten(message)),
	}
}

// hidden is what the line hides, if a rule read it.
func (l *lazyLine) hidden() []string {
	if l.parsed == nil {
		return nil
	}
	return l.parsed.Reasons()
}
