package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An InvalidError says what in a Toolset is wrong, and where.
type InvalidError struct {
	// Path is where, such as requests.tools[1].path.
	Path string
	// Problem is what, and what to write instead.
	Problem string
}

func (e *InvalidError) Error() string { return e.Path + ": " + e.Problem }

func errorf(path, format string, args ...any) error {
	return &InvalidError{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// Check says whether tools can be made of a Toolset: nil, or an *InvalidError for
// the first thing that is in the way. It reaches nothing.
func Check(ts task.Toolset) error {
	plans, err := plansOf(ts)
	if err != nil {
		return err
	}
	expressions := 0
	for _, p := range plans {
		for _, t := range p.texts {
			if expressions += t.text.Expressions(); expressions > expr.MaxTemplateExpressions {
				return errorf(t.at, "is one expression too many; a Toolset has at most %d besides paths such as ${{ input.x }}", expr.MaxTemplateExpressions)
			}
			if err := t.text.Compile(); err != nil {
				return invalid(t.at, t.absence, err)
			}
		}
	}
	return nil
}

// plansOf reads a Toolset. Expressions are compiled when they are first used.
func plansOf(ts task.Toolset) ([]*plan, error) {
	r := ts.Requests
	if r == nil {
		return nil, errorf("requests", "is missing")
	}
	base, err := auth.ReadURL(r.BaseURL)
	switch {
	case err != nil:
		return nil, errorf("requests.baseURL", "%v", err)
	case base.RawQuery != "" || base.ForceQuery:
		return nil, errorf("requests.baseURL", "has a query; write its parameters in query of each tool")
	}
	err = auth.Check(r.Headers, r.Auth, "Idempotency-Key", "User-Agent")
	if at, ok := errors.AsType[*auth.FieldError](err); ok {
		return nil, errorf("requests."+at.Field, "%s", at.Problem)
	}
	plans, seen := make([]*plan, len(r.Tools)), map[string]bool{}
	for i, t := range r.Tools {
		at := fmt.Sprintf("requests.tools[%d]", i)
		if seen[t.Name] {
			return nil, errorf(at+".name", "is %q, and so is another; use different names", t.Name)
		}
		seen[t.Name] = true
		p := &plan{tool: t, base: base, input: input(t), values: inputtext.Of(input(t)), media: media(r.Headers)}
		if err := p.read(at); err != nil {
			return nil, err
		}
		plans[i] = p
	}
	return plans, nil
}

// media is what bodies are sent as.
func media(headers map[string]string) string {
	for name, value := range headers {
		if http.CanonicalHeaderKey(name) == "Content-Type" {
			return value
		}
	}
	return "application/json"
}

// nothing is the schema of a tool that takes no arguments.
const nothing = `{"type":"object","properties":{}}`

func input(t task.RequestTool) json.RawMessage {
	if len(t.Input) == 0 || string(t.Input) == "null" {
		return json.RawMessage(nothing)
	}
	return t.Input
}

// read takes the parts of a tool apart.
func (p *plan) read(at string) error {
	if err := schema.Check(p.input); err != nil {
		return errorf(at+".input", "%v", err)
	}
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, p.tool.Method) {
		return errorf(at+".method", "is %q; write GET, HEAD, POST, PUT, PATCH or DELETE", p.tool.Method)
	}
	if err := p.readPath(at + ".path"); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.tool.Query)) {
		place := at + ".query." + name
		if template.Has(name) {
			return errorf(place, "has ${{ in its name; only values are bound")
		}
		t, err := p.text(place, p.tool.Query[name], inputtext.Omits)
		if err != nil {
			return err
		}
		p.query = append(p.query, parameter{name, t})
	}
	return p.readBody(at + ".body")
}

// text reads a text with expressions.
func (p *plan) text(at, text string, a inputtext.Absence) (*inputtext.Text, error) {
	t, err := p.values.Parse(text, a)
	if err != nil {
		return nil, invalid(at, a, err)
	}
	p.texts = append(p.texts, placed{at, a, t})
	return t, nil
}

// invalid is the error of a text with expressions.
func invalid(at string, a inputtext.Absence, err error) error {
	hint := ""
	if wrong, ok := errors.AsType[*expr.Error](err); ok && wrong.Absent {
		hint = ", or list it in required of input"
		if a == inputtext.Omits {
			hint += ", or let the text be ${{ }} alone, which is then left out"
		}
	}
	return errorf(at, "%v%s", err, hint)
}
