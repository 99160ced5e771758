package request

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/deckhand-dev/deckhand/internal/schema"
	"github.com/deckhand-dev/deckhand/internal/template"
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
	_, err := compile(ts)
	return err
}

// compile reads a Toolset.
func compile(ts task.Toolset) ([]*plan, error) {
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
		p := &plan{tool: t, base: base, input: input(t), media: media(r.Headers)}
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
		place := at + ".query[" + name + "]"
		if template.Has(name) {
			return errorf(place, "has ${{ in its name; only values are bound")
		}
		t, err := p.template(place, p.tool.Query[name], mayLack)
		if err != nil {
			return err
		}
		p.query = append(p.query, parameter{name, t})
	}
	return p.readBody(at + ".body")
}

// An absence says what becomes of a place whose value is not given.
type absence int

const (
	mustHave absence = iota // there has to be one
	mayLack                 // the place is left out, where it is the value alone
)

// template reads a text with values in it, and holds it to the schema.
func (p *plan) template(at, text string, a absence) (*template.Template, error) {
	t, err := template.Parse(text)
	if err == nil {
		err = template.Check(text, p.input)
	}
	if err != nil {
		return nil, errorf(at, "%s", problem(err))
	}
	if a == mayLack && t.Alone() {
		return t, nil
	}
	for _, path := range t.Paths() {
		if !path.Certain(schema.Filled(p.input)) {
			return nil, errorf(at, "%s may not be given, and then there is nothing to write there; list it in required of input%s", path, alternative(a))
		}
	}
	return t, nil
}

func alternative(a absence) string {
	if a == mayLack {
		return ", or let the text be ${{ }} alone, which is then left out"
	}
	return ""
}

func problem(err error) string {
	if at, ok := errors.AsType[*template.Error](err); ok {
		return cmp.Or(at.Message, err.Error())
	}
	return err.Error()
}
