// Package args reads the arguments that a model wrote for a tool, and holds them to the schema of
// the tool.
package args

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
)

// A Problem is what is wrong with arguments, for the model.
type Problem struct {
	Message         string
	Recommendations []string
}

// A Checker holds the arguments of one tool to its schema. It is compiled
// when it is first needed: most tools of a session are never called.
type Checker struct {
	compiled func() (*schema.Validator, error)
	// foreign says that a server checks the arguments itself.
	foreign bool
	// unvalidated is why arguments were not validated, until it is taken; and reported is
	// whether that was noted before.
	mu          sync.Mutex
	unvalidated string
	reported    bool
}

// NewChecker returns the Checker of a schema. If the schema is of a server, the server checks
// the arguments itself.
func NewChecker(input json.RawMessage, known facts.Facts) *Checker {
	c := &Checker{foreign: known.Foreign}
	c.compiled = sync.OnceValues(func() (*schema.Validator, error) {
		v, err := schema.CompileTool(input)
		if err == nil && c.foreign {
			return v.WithoutFormats(), nil
		}
		return v, err //nolint:wrapcheck // unusable says what it is
	})
	return c
}

// skip notes why arguments were not validated, once.
func (s *Checker) skip(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reported {
		s.unvalidated, s.reported = why.Error(), true
	}
}

// TakeUnvalidated returns why arguments were not validated, the first time; else nothing.
func (s *Checker) TakeUnvalidated() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := s.unvalidated
	s.unvalidated = ""
	return why
}

// Check returns the error for the model if arguments do not fit. All objects fit a schema of an
// MCP server that cannot be used, or that takes too long to validate them with: the server checks
// them itself. Nobody else checks those of the other tools, which are refused.
func (s *Checker) Check(name string, args json.RawMessage) *Problem {
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return notJSON(err.Error())
	}
	if _, ok := value.(map[string]any); !ok {
		return notObject(value)
	}
	v, unusable := s.compiled()
	if unusable != nil {
		return s.unchecked(name, unusable, "Tell the user: no arguments of this tool are accepted until its schema is corrected.")
	}
	err := v.Validate(args)
	if cost, ok := errors.AsType[*schema.CostError](err); ok {
		return s.unchecked(name, cost, "Write fewer items, or shorter texts.")
	}
	if err != nil {
		return Invalid(name, strings.TrimSuffix(err.Error(), ".")+".")
	}
	return nil
}

// unchecked returns the error for the model if arguments cannot be validated, with what to do.
func (s *Checker) unchecked(name string, why error, mend string) *Problem {
	if s.foreign {
		s.skip(why)
		return nil
	}
	return Invalid(name, "they cannot be validated: "+why.Error()+". "+mend)
}

// notJSON reports arguments that are no JSON and could not be repaired.
func notJSON(why string) *Problem {
	return &Problem{
		Message:         "Tool call failed: arguments were not valid JSON. Please check your tool call format and try again.",
		Recommendations: []string{"What is wrong: " + why, `Inside a string write a line end as \n, a quote as \" and a backslash as \\.`},
	}
}

// notObject reports arguments that are JSON, but no object. A string is what
// the model wrote when that was no JSON at all.
func notObject(value any) *Problem {
	if text, ok := value.(string); ok {
		var ignored any
		if err := json.Unmarshal([]byte(text), &ignored); err != nil {
			return notJSON(err.Error())
		}
	}
	return &Problem{Message: "Tool call failed: arguments must be a JSON object, such as {\"name\": \"value\"}."}
}

// Invalid reports arguments that do not fit the tool of a name.
func Invalid(name, words string) *Problem {
	return &Problem{Message: fmt.Sprintf("Invalid arguments for %s: %s", name, words)}
}
