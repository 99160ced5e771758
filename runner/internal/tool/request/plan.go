package request

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A plan is a request whose values are not known yet. It never changes.
type plan struct {
	tool   task.RequestTool
	base   *url.URL
	input  json.RawMessage
	values *inputtext.Input
	media  string
	path   []inputtext.Text // one for each segment
	query  []parameter
	body   *node
	texts  []placed // all of them, in the order of the fields
}

type parameter struct {
	name  string
	value *inputtext.Text
}

// A placed text is a text with its place in the Toolset.
type placed struct {
	at      string
	absence inputtext.Absence
	text    *inputtext.Text
}

// effect is what the request does to the world, as HTTP defines its methods.
func (p *plan) effect() tool.Effect {
	switch p.tool.Method {
	case http.MethodGet, http.MethodHead:
		return tool.ReadOnly
	case http.MethodPut, http.MethodDelete:
		return tool.Idempotent
	}
	return tool.Once
}

// bind makes the request for the arguments of a call.
func (p *plan) bind(ctx context.Context, args json.RawMessage) (*http.Request, error) {
	in, err := inputtext.NewValues(schema.Fill(p.input, args))
	if err != nil {
		return nil, err
	}
	path, err := p.bindPath(in)
	if err != nil {
		return nil, err
	}
	query, err := p.bindQuery(in)
	if err != nil {
		return nil, err
	}
	body, err := p.bindBody(in)
	if err != nil {
		return nil, err
	}
	to := *p.base
	whole := strings.TrimSuffix(p.base.EscapedPath(), "/") + path
	if to.Path, err = url.PathUnescape(whole); err != nil {
		return nil, fmt.Errorf("reading the path: %w", err)
	}
	to.RawPath, to.RawQuery = whole, query
	if to.EscapedPath() != whole { // it would be sent as something else
		return nil, &valueError{fmt.Sprintf("the path %q cannot be sent", whole)}
	}
	req, err := http.NewRequestWithContext(ctx, p.tool.Method, to.String(), body)
	if err != nil {
		return nil, &valueError{err.Error()}
	}
	if req.URL.Scheme != p.base.Scheme || req.URL.Host != p.base.Host || req.URL.EscapedPath() != whole {
		return nil, errors.New("the arguments changed where the request goes")
	}
	if body != nil {
		req.Header.Set("Content-Type", p.media)
	}
	return req, nil
}

// bindQuery is the query with its values. A parameter that is an expression alone
// is left out if that has no value, and repeated if it is an array.
func (p *plan) bindQuery(in *inputtext.Values) (string, error) {
	values := url.Values{}
	for _, q := range p.query {
		alone := q.value.Alone()
		if alone == nil {
			text, err := q.value.Bind(in, plainText)
			if err != nil {
				return "", err
			}
			values.Add(q.name, text)
			continue
		}
		all, err := listOf(in, alone)
		if err != nil {
			return "", err
		}
		for _, one := range all {
			values.Add(q.name, one)
		}
	}
	return values.Encode(), nil
}

// listOf are the values of one parameter.
func listOf(in *inputtext.Values, e *inputtext.Expression) ([]string, error) {
	value, ok, err := e.Find(in)
	value = bytes.TrimSpace(value)
	if err != nil || !ok || string(value) == "null" {
		return nil, err
	}
	items := []json.RawMessage{value}
	if value[0] == '[' {
		items = nil
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
	}
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = template.Text(item)
	}
	return all, nil
}
