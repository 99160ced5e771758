package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// A reading is how the dot of a regular expression takes the line ends of a text.
type reading int

// The readings. A line end must lead past no rule, and let no rule allow the lines behind it, so a
// condition is read in both ways. Where the dot says nothing of line ends, (?s) and (?-s) do.
const (
	eitherWay   reading = iota // a match that the line ends decide is unknown
	withinLines                // the dot ends at a line, as in RE2
	acrossLines                // the dot takes line ends
)

// readingName is the name by which matches asks an [input] for its reading. No condition can
// write it.
const readingName = "@reading"

// readLineEnds replaces the function matches of CEL by one that heeds the reading.
func readLineEnds(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.Function() != functionMatches {
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

// Function implements [interpreter.InterpretableCall]. By another name than matches, CEL does not
// replace the call by one of its own.
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
