package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// A Result is what a policy decides about one call.
type Result struct {
	Answer Answer
	// Rule is the name of the rule that decided; empty: none did.
	Rule string
	// Reason is for the model if the answer is Deny, and for the user if it is Ask. It is never empty for those.
	Reason string
	// Hidden describes what a command line runs without showing it, for the user, if the policy read a command line.
	Hidden []string
	// Failed reports that the rule could not be decided, so that the answer is Ask. A user's answer is then for this
	// one call.
	Failed bool
}

// Decide returns the answer of the first rule that applies to a call, or Allow if none does. A rule that cannot be
// decided, because the call lacks an argument or the evaluation costs too much, asks a user. If line ends decide
// whether a rule applies, the call gets the stricter of both answers.
func (p *Policy) Decide(ctx context.Context, call Call) Result {
	doubtful := Result{Answer: Allow}
	if p == nil {
		return doubtful
	}
	in := newInput(call)
	for _, r := range p.rules {
		result, whether := r.decide(ctx, in)
		switch whether {
		case never:
			continue
		case always:
			return stricter(doubtful, result)
		case perhaps:
			doubtful = stricter(doubtful, result)
		}
		if doubtful.Answer == Deny {
			break
		}
	}
	return doubtful
}

// strictness orders the answers.
var strictness = map[Answer]int{Allow: 0, Ask: 1, Deny: 2}

// stricter returns the stricter of two results; of two that ask, the first.
func stricter(first, second Result) Result {
	if n := strictness[first.Answer]; n > 0 && n >= strictness[second.Answer] {
		return first
	}
	return second
}

// A whether is in which readings of a condition its rule decides.
type whether int

const (
	never whether = iota
	perhaps
	always
)

// decide returns what a rule decides about a call, and whether it does.
func (c *compiled) decide(ctx context.Context, in *input) (Result, whether) {
	applies, err := c.applies(ctx, in)
	if err == nil && applies != perhaps {
		return c.result(in), applies
	}
	within, errWithin := c.applies(ctx, in.read(withinLines))
	across, errAcross := c.applies(ctx, in.read(acrossLines))
	switch {
	case c.Answer != Allow && (err == nil || within == always || across == always):
		return c.result(in), perhaps
	case err == nil && errWithin == nil && errAcross == nil: // it does not allow
		return Result{}, never
	case errWithin != nil && errAcross != nil:
		return c.undecided(cmp.Or(err, errWithin), in), always
	}
	return c.undecided(cmp.Or(err, errWithin, errAcross), in), perhaps
}

// applies reports whether a rule is about a call.
func (c *compiled) applies(ctx context.Context, in *input) (whether, error) {
	if !c.About(in.call.Tool) {
		return never, nil
	}
	if c.program == nil {
		return always, nil
	}
	out, _, err := c.program.ContextEval(ctx, in)
	if err != nil {
		return never, err //nolint:wrapcheck // undecided words it
	}
	holds, ok := out.(types.Bool)
	switch {
	case types.IsUnknown(out):
		return perhaps, nil
	case !ok:
		return never, fmt.Errorf("its condition is a value of type %s, neither true nor false", out.Type().TypeName())
	case bool(holds):
		return always, nil
	}
	return never, nil
}

func (c *compiled) result(in *input) Result {
	v := Result{Answer: c.Answer, Rule: c.Name, Reason: c.Reason}
	if c.Answer == Allow {
		return v
	}
	v.Hidden = in.line.hidden()
	if v.Reason == "" {
		v.Reason = fmt.Sprintf("The policy has a rule for this, %q.", c.Name)
	}
	return v
}

func (c *compiled) undecided(err error, in *input) Result {
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
		Answer: Ask, Rule: c.Name, Failed: true, Hidden: in.line.hidden(),
		Reason: fmt.Sprintf("The rule %q of the policy could not be decided: %s.", c.Name, shorten(message)),
	}
}

// hidden returns what the command line hides, if a rule read it.
func (l *lazyLine) hidden() []string {
	if l.parsed == nil {
		return nil
	}
	return l.parsed.Reasons()
}

// A reading is how the dot of a regular expression takes the line ends of a text.
type reading int

// The readings. A line end must not hide text from a rule, and must not let a rule allow the lines after it, so a
// condition is read in both ways. A pattern can set (?s) or (?-s) to have one reading.
const (
	eitherWay   reading = iota // a match that the line ends decide is unknown
	withinLines                // the dot ends at a line, as in RE2
	acrossLines                // the dot takes line ends
)

// readingName is the name by which matches gets the reading from an [input]. No condition can contain it.
const readingName = "@reading"

// readLineEnds replaces CEL's function matches by a function that applies the reading.
func readLineEnds(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.Function() != "matches" {
		return i, nil
	}
	m := &match{InterpretableCall: call}
	if literal, is := call.Args()[1].(interpreter.InterpretableConst); is {
		if text, ok := literal.Value().(types.String); ok {
			var err error
			if m.compiled, err = compileExpression(string(text)); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// A match is a call of matches in a plan.
type match struct {
	interpreter.InterpretableCall
	compiled *expression // nil: the condition computes the expression
}

// Function implements [interpreter.InterpretableCall]. It has another name than matches, so that CEL does not replace
// the call.
func (*match) Function() string { return "matches in lines" }

// Eval implements [interpreter.Interpretable].
func (m *match) Eval(vars interpreter.Activation) ref.Val { return m.Exec(interpreter.AsFrame(vars)) }

// Exec implements [interpreter.InterpretableV2].
func (m *match) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var values [2]string
	for i, arg := range m.Args() {
		value := arg.Exec(frame)
		if types.IsUnknownOrError(value) {
			return value
		}
		s, ok := value.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(value)
		}
		values[i] = string(s)
	}
	text, p := values[0], m.compiled
	if p == nil {
		var err error
		if p, err = compileExpression(values[1]); err != nil {
			return types.WrapErr(err)
		}
	}
	within := p.within.MatchString(text)
	if !strings.Contains(text, "\n") {
		return types.Bool(within)
	}
	across := p.across.MatchString(text)
	asked, _ := frame.ResolveName(readingName)
	switch {
	case within == across || asked == withinLines:
		return types.Bool(within)
	case asked == acrossLines:
		return types.Bool(across)
	}
	return types.NewUnknown(m.ID(), nil)
}

// An expression is a regular expression in both readings.
type expression struct{ within, across *regexp.Regexp }

func compileExpression(text string) (*expression, error) {
	within, err := pattern.Compile(text)
	if size, large := errors.AsType[*pattern.SizeError](err); large {
		return nil, fmt.Errorf("the pattern compiles to about %d instructions; at most %d are allowed", size.Instructions, size.Max)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it reads as the error of CEL
	}
	across, err := pattern.Compile("(?s)" + text)
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	return &expression{within, across}, nil
}
