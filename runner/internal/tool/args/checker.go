// Package args reads the arguments that a model wrote for a tool, and validates them against the schema of the tool.
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

// A Problem describes to the model what is wrong with arguments.
type Problem struct {
	Message         string
	Recommendations []string
}

// A Checker validates the arguments of one tool. Its schema is compiled when it is first needed: most tools of a
// session are never called.
type Checker struct {
	compiled func() (*schema.Validator, error)
	// foreign reports that a server validates the arguments itself.
	foreign bool
	// unvalidated is the reason why arguments were not validated, until TakeUnvalidated returns it. reported is true
	// once a reason was noted.
	mu          sync.Mutex
	unvalidated string
	reported    bool
}

// NewChecker returns the Checker of a schema. If the schema comes from a server, the server validates the arguments
// itself.
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

// skip notes, once, why arguments were not validated.
func (c *Checker) skip(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reported {
		c.unvalidated, c.reported = why.Error(), true
	}
}

// TakeUnvalidated returns why arguments were not validated, the first time it is called after that; otherwise it
// returns an empty text.
func (c *Checker) TakeUnvalidated() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := c.unvalidated
	c.unvalidated = ""
	return why
}

// Check returns the error for the model if arguments do not match the schema. If the schema of an MCP server is
// invalid, or validation takes too long, every object is accepted, because the server validates the arguments itself.
// For all other tools, such arguments are refused.
func (c *Checker) Check(name string, args json.RawMessage) *Problem {
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return notJSON(err.Error())
	}
	if _, ok := value.(map[string]any); !ok {
		return notObject(value)
	}
	v, unusable := c.compiled()
	if unusable != nil {
		return c.unchecked(name, unusable, "Tell the user: no arguments of this tool are accepted until its schema is corrected.")
	}
	err := v.Validate(args)
	if cost, ok := errors.AsType[*schema.CostError](err); ok {
		return c.unchecked(name, cost, "Write fewer items, or shorter texts.")
	}
	if err != nil {
		return Invalid(name, strings.TrimSuffix(err.Error(), ".")+".")
	}
	return nil
}

// unchecked returns the error for the model if arguments cannot be validated, with advice.
func (c *Checker) unchecked(name string, why error, mend string) *Problem {
	if c.foreign {
		c.skip(why)
		return nil
	}
	return Invalid(name, "they cannot be validated: "+why.Error()+". "+mend)
}

// notJSON reports arguments that are not JSON and could not be repaired.
func notJSON(why string) *Problem {
	return &Problem{
		Message:         "Tool call failed: arguments were not valid JSON. Please check your tool call format and try again.",
		Recommendations: []string{"What is wrong: " + why, `Inside a string write a line end as \n, a quote as \" and a backslash as \\.`},
	}
}

// notObject reports arguments that are JSON but not an object. A string is the original text of a model, if that was
// not JSON at all.
func notObject(value any) *Problem {
	if text, ok := value.(string); ok {
		var ignored any
		if err := json.Unmarshal([]byte(text), &ignored); err != nil {
			return notJSON(err.Error())
		}
	}
	return &Problem{Message: "Tool call failed: arguments must be a JSON object, such as {\"name\": \"value\"}."}
}

// Invalid reports arguments that do not match the schema of a tool.
func Invalid(name, words string) *Problem {
	return &Problem{Message: fmt.Sprintf("Invalid arguments for %s: %s", name, words)}
}
