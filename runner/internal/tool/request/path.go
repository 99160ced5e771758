package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
)

// readPath takes the path apart at its slashes: a value stays within the segment
// that it is in.
func (p *plan) readPath(at string) error {
	if !strings.HasPrefix(p.tool.Path, "/") {
		return errorf(at, "must begin with /")
	}
	whole, err := p.text(at, p.tool.Path, inputtext.MustHave)
	if err != nil {
		return err
	}
	for _, s := range segmentsOf(whole)[1:] { // before the first slash is nothing
		var words strings.Builder
		for _, part := range s.Parts {
			words.WriteString(part.Words)
			if part.Value != nil {
				words.WriteString("x")
			}
		}
		if err := segment(words.String()); err != nil {
			return errorf(at, "%v", err)
		}
		p.path = append(p.path, s)
	}
	return nil
}

// segmentsOf divides a path at the slashes of its words.
func segmentsOf(path *inputtext.Text) []inputtext.Text {
	all := []inputtext.Text{{}}
	for _, part := range path.Parts {
		pieces := strings.Split(part.Words, "/")
		for i, words := range pieces {
			if i > 0 {
				all = append(all, inputtext.Text{})
			}
			piece := inputtext.Part{Words: words}
			if i == len(pieces)-1 {
				piece.Value = part.Value
			}
			last := &all[len(all)-1]
			last.Parts = append(last.Parts, piece)
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
func (p *plan) bindPath(in *inputtext.Values) (string, error) {
	var path strings.Builder
	for i := range p.path {
		t := &p.path[i]
		escaped, err := t.Bind(in, func(v json.RawMessage) (string, error) {
			s, err := scalar(v)
			return url.PathEscape(s), err
		})
		if err != nil {
			return "", err
		}
		decoded, err := url.PathUnescape(escaped)
		if given := firstValue(t); given != nil && (err != nil || decoded == "" || dots(decoded) || weburl.LeadsUp(decoded)) {
			return "", &valueError{fmt.Sprintf("the path would have %q in it, which leads elsewhere than meant; give another %s", decoded, given)}
		}
		path.WriteString("/" + escaped)
	}
	return path.String(), nil
}

// firstValue returns the first expression of a segment; nil: it has none.
func firstValue(t *inputtext.Text) *inputtext.Expression {
	for _, part := range t.Parts {
		if part.Value != nil {
			return part.Value
		}
	}
	return nil
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
