package textcall

import (
	"encoding/json"
	"html"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Call is a tool call that a text has.
type Call struct {
	// Name is the name of the tool, as it is offered.
	Name string
	// text is the call as it was written, and marker the tag that opens it; empty: it has
	// none.
	text, marker string
}

// maxCandidates bounds how many parts of a text are looked at for each kind of syntax.
const maxCandidates = 32

// A candidate is a part of a text that has the form of a call.
type candidate struct {
	name       string
	marker     string // the tag that opens it; empty: none
	start, end int
	// weak says that prose and code have this form too: such a call must be the end of
	// the text, or go on with an invented result.
	weak bool
}

// Find returns the call of an offered tool that the text makes, and false if it makes none.
func Find(text string, tools []step.Tool) (Call, bool) {
	text = ends(text)
	if !strings.Contains(text, "<") {
		text = html.UnescapeString(text)
	}
	if !strings.ContainsAny(text, "<[{(:") || !namesAny(text, tools) {
		return Call{}, false
	}
	f := finder{text: text, fences: fencesOf(text), offered: offeredOf(tools)}
	var seen []candidate
	for _, find := range []func() []candidate{f.markup, f.objects, f.labeled, f.functions} {
		for _, c := range find() {
			if slices.ContainsFunc(seen, c.isWithin) {
				continue // the JSON in a markup
			}
			if f.isCall(c) {
				return Call{Name: c.name, text: text[c.start:c.end], marker: c.marker}, true
			}
			seen = append(seen, c)
		}
	}
	return Call{}, false
}

// maxText bounds how much of a text is looked at, in bytes: far more than a model says at
// once.
const maxText = 256 << 10

// ends returns a text, or the beginning and the end of a long one: a call begins in the one
// or ends in the other.
func ends(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText/2] + "\n" + text[len(text)-maxText/2:]
}

// namesAny reports whether a text has the name of a tool, in whatever case.
func namesAny(text string, tools []step.Tool) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(tools, func(t step.Tool) bool { return strings.Contains(text, strings.ToLower(t.Name)) })
}

// isWithin reports whether a candidate is a part of another.
func (c candidate) isWithin(other candidate) bool {
	return other.start <= c.start && c.start < other.end
}

// A finder looks for calls in one text.
type finder struct {
	text    string
	fences  []fence
	offered map[string]parameters
}

// parameters are those of a tool.
type parameters struct {
	known    map[string]bool
	required []string
}

func offeredOf(tools []step.Tool) map[string]parameters {
	offered := make(map[string]parameters, len(tools))
	for _, t := range tools {
		var input struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		_ = json.Unmarshal(t.Input, &input) // a schema without properties takes any
		p := parameters{known: map[string]bool{}, required: input.Required}
		for name := range input.Properties {
			p.known[name] = true
		}
		offered[t.Name] = p
	}
	return offered
}

// lookup returns the offered tool that a call means: models write its name with the
// namespace of a template before it, or in another case.
func (f *finder) lookup(name string) (string, bool) {
	name = strings.Trim(name, ".")
	for {
		if _, known := f.offered[name]; known {
			return name, true
		}
		for offered := range f.offered {
			if strings.EqualFold(offered, name) {
				return offered, true
			}
		}
		_, rest, more := strings.Cut(name, ".")
		if !more {
			return "", false
		}
		name = rest
	}
}

// fit reports whether arguments with these names are those of a tool: all that it requires
// are there, or all are its own. A tool without parameters takes none.
func (f *finder) fit(tool string, names []string) bool {
	p := f.offered[tool]
	if len(names) == 0 {
		return len(p.required) == 0
	}
	known := 0
	given := map[string]bool{}
	for _, name := range names {
		given[name] = true
		if p.known[name] {
			known++
		}
	}
	missing := 0
	for _, name := range p.required {
		if !given[name] {
			missing++
		}
	}
	return known > 0 && (missing == 0 || known == len(given))
}
