package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/template"
	"github.com/deckhand-dev/deckhand/internal/weburl"
)

// readPath takes the path apart at its slashes: a value stays within the segment
// that it is in.
func (p *plan) readPath(at string) error {
	rest, ok := strings.CutPrefix(p.tool.Path, "/")
	if !ok {
		return errorf(at, "must begin with /")
	}
	for _, s := range splitPath(rest) {
		t, err := p.template(at, s.text, mustHave)
		if err != nil {
			return err
		}
		if err := segment(s.words); err != nil {
			return errorf(at, "%v", err)
		}
		p.path = append(p.path, t)
	}
	return nil
}

// A pathSegment is the text between two slashes of a path.
type pathSegment struct {
	text  string // a template
	words string // with x in place of each value
}

// splitPath divides a path at its slashes, except those in ${{ }}.
func splitPath(path string) []pathSegment {
	parts, err := template.Scan(path)
	if err != nil {
		return []pathSegment{{text: path}} // parsing the template returns the error
	}
	all := []pathSegment{{}}
	for _, part := range parts {
		for i, words := range strings.Split(part.Words, "/") {
			if i > 0 {
				all = append(all, pathSegment{})
			}
			last := &all[len(all)-1]
			last.text += template.Literal(words)
			last.words += words
		}
		if part.HasExpression {
			last := &all[len(all)-1]
			last.text += "${{" + part.Expression + "}}"
			last.words += "x"
		}
	}
	return all
}

// segment checks what an author wrote between two slashes.
func segment(s string) error {
	u, err := url.Parse("http://host/" + s)
	switch {
	case strings.ContainsAny(s, "?#"):
		return errors.New("has ? or #; write parameters in query")
	case err != nil || u.EscapedPath() != "/"+s:
		if found := template.FindForeign(s); len(found) > 0 {
			return fmt.Errorf("%s is no reference to the input; write ${{ input.%s }}", found[0].Text, found[0].Name())
		}
		return fmt.Errorf("%q cannot stand in a path as it is; write it percent-encoded", s)
	case dots(u.Path[1:]):
		return fmt.Errorf("%q leads elsewhere; write the path that is meant", s)
	}
	return nil
}

// dots reports whether a segment leads to another, as the author of a Toolset may
// write it.
func dots(decoded string) bool { return decoded == "." || decoded == ".." }

// A valueError says that a value cannot go where it is to go.
type valueError struct{ problem string }

func (e *valueError) Error() string { return e.problem }

// bindPath is the path with its values, escaped. A value that has a part ".." in
// it, encoded or not, between slashes or backslashes, is refused: a server that
// decodes more than it should would follow it.
func (p *plan) bindPath(in *template.Input) (string, error) {
	var path strings.Builder
	for _, t := range p.path {
		escaped, err := t.Bind(in, func(v json.RawMessage) (string, error) {
			s, err := scalar(v)
			return url.PathEscape(s), err
		})
		if err != nil {
			return "", err
		}
		decoded, err := url.PathUnescape(escaped)
		if given := t.Paths(); len(given) > 0 && (err != nil || decoded == "" || dots(decoded) || weburl.LeadsUp(decoded)) {
			return "", &valueError{fmt.Sprintf("the path would have %q in it, which leads elsewhere than meant; give another %s", decoded, given[0])}
		}
		path.WriteString("/" + escaped)
	}
	return path.String(), nil
}

// scalar writes a value that is one word: a text, a number or a truth.
func scalar(v json.RawMessage) (string, error) {
	v = bytes.TrimSpace(v)
	switch v[0] {
	case '{', '[', 'n':
		return "", errors.New("must be a string, a number or a boolean here")
	case '"':
		var s string
		err := json.Unmarshal(v, &s)
		return s, err
	}
	return string(v), nil
}
