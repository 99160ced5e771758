package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// printableProgress is what a runner reports without control characters: models, servers and file
// names choose most of its text, and programs such as kubectl -o jsonpath print it to terminals as
// it is.
func printableProgress(p task.Progress) task.Progress {
	p.Model = redact.Printable(p.Model)
	if w := p.ModelWait; w != nil {
		wait := *w
		wait.Model, wait.Message = redact.Printable(w.Model), redact.Printable(w.Message)
		p.ModelWait = &wait
	}
	if s := p.Step; s != nil {
		step := *s
		step.Name = redact.Printable(s.Name)
		p.Step = &step
	}
	p.Recent = slices.Clone(p.Recent)
	for i := range p.Recent {
		r := &p.Recent[i]
		r.Name, r.Summary = redact.Printable(r.Name), redact.Printable(r.Summary)
	}
	p.Pending = slices.Clone(p.Pending)
	for i := range p.Pending {
		q := &p.Pending[i]
		q.Agent, q.Question, q.Tool, q.Rule = redact.Printable(q.Agent), redact.Printable(q.Question), redact.Printable(q.Tool), redact.Printable(q.Rule)
		if q.Kind != task.PendingDelegation { // the input of a child Run, which is not changed
			q.Args, q.Schema = printableJSON(q.Args, task.MaxArgs), printableJSON(q.Schema, task.MaxSchema)
		}
	}
	p.Decided = slices.Clone(p.Decided)
	for i := range p.Decided {
		p.Decided[i].Refused = redact.Printable(p.Decided[i].Refused)
	}
	if p.Result != nil {
		r := printableResult(*p.Result)
		p.Result = &r
	}
	return p
}

// printableResult is a result without control characters.
func printableResult(r task.Result) task.Result {
	r.Message, r.Warning, r.Text = redact.Printable(r.Message), redact.Printable(r.Warning), redact.Printable(r.Text)
	r.Output = printableJSON(r.Output, task.MaxOutput)
	r.Files = slices.Clone(r.Files)
	for i := range r.Files {
		r.Files[i].Path = printableLine(r.Files[i].Path)
	}
	if r.Published != nil {
		published := *r.Published
		published.Branch = printableLine(published.Branch)
		r.Published = &published
	}
	return r
}

// printableLine is a name with a question mark in place of line ends and tabs.
func printableLine(name string) string {
	return strings.NewReplacer("\n", "?", "\t", "?").Replace(redact.Printable(name))
}

// printableJSON is JSON, or a part of it, with the same value, in which characters that
// [redact.Printable] would drop are escaped. They are dropped if the text is then longer than most.
func printableJSON(text string, most int) string {
	if redact.Printable(text) == text {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if shown := string(r); redact.Printable(shown) == shown {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	if out.Len() > most {
		return redact.Printable(text)
	}
	return out.String()
}
