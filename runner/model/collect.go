package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxAnswer bounds one answer in memory, in bytes: far more than models write at once. Recording, reporting and sending
// it take several times as much memory.
const maxAnswer = 4 << 20

// Collect assembles a stream into a whole answer, and passes each delta to seen, which may be nil. A stream that ends
// without a finish is an *IncompleteError with what arrived. With an error, the Response also has what arrived, and its
// Usage is the cost of the failed answer. An answer larger than any model's is an error.
func Collect(stream iter.Seq2[Delta, error], seen func(Delta)) (Response, error) {
	var a assembler
	for d, err := range stream {
		if err != nil {
			return a.failed(err)
		}
		if seen != nil {
			seen(d)
		}
		if a.add(d); a.size > maxAnswer {
			return a.failed(&NotAModelError{
				Final:       true,
				ContentType: fmt.Sprintf("more than %d MiB of text and calls at once", maxAnswer>>20),
				Message:     "see what it sends, or lower the Model's maxOutputTokens",
			})
		}
	}
	r := a.response()
	if r.Finish == "" {
		return r, &IncompleteError{Partial: r}
	}
	return r, nil
}

// failed returns what arrived before the stream broke, with the error.
func (a *assembler) failed(err error) (Response, error) {
	r := a.response()
	if incomplete, ok := errors.AsType[*IncompleteError](err); ok {
		incomplete.Partial = r
	}
	return r, err
}

// An assembler joins deltas: neighboring text into one part, pieces of a call
// by their index.
type assembler struct {
	parts  []*part // a part of kind PartCall for each call, where it began
	calls  map[int]*call
	finish step.Finish
	// unclear is the reason behind finish.
	unclear string

	usage  step.Usage
	before step.Usage // what was spent before the last reset
	model  string
	size   int // of what is kept, in bytes
}

type part struct {
	kind      step.PartKind
	text      strings.Builder
	signature strings.Builder
	provider  json.RawMessage
	signed    bool
}

type call struct {
	name     string
	args     strings.Builder
	provider json.RawMessage
	signed   bool
}

func (a *assembler) add(d Delta) {
	if d.Reset {
		a.reset(d)
	}
	if d.Model != "" {
		a.model = d.Model
	}
	if d.Thinking != "" || d.Signature != "" {
		p := a.part(step.PartThinking)
		a.size += len(d.Thinking) + len(d.Signature)
		p.text.WriteString(d.Thinking)
		p.signature.WriteString(d.Signature)
	}
	if d.Text != "" {
		a.size += len(d.Text)
		a.part(step.PartText).text.WriteString(d.Text)
	}
	if d.Provider != nil {
		a.size += len(d.Provider)
		a.part(cmp.Or(d.Kind, step.PartThinking)).provider = d.Provider
	}
	if d.Call != nil {
		a.call(*d.Call)
	}
	if d.Usage != nil {
		a.usage = *d.Usage
	}
	if d.Finish != "" {
		a.finish, a.unclear = d.Finish, d.UnclearReason
	}
}

// reset discards the answer so far, but not its usage.
func (a *assembler) reset(d Delta) {
	spent := a.usage
	if d.Usage != nil {
		spent = *d.Usage
	}
	spent.ContextTokens = 0
	*a = assembler{model: a.model, usage: spent, before: spent}
}

// total returns the usage of all tries. ContextTokens are those of the last try only.
func (a *assembler) total() step.Usage {
	u := a.usage
	if a.before != (step.Usage{}) && u.ContextTokens == 0 {
		u.ContextTokens = max(u.InputTokens+u.OutputTokens-a.before.InputTokens-a.before.OutputTokens, 0)
	}
	return u
}

// part returns the open part of that kind, or a new one. Provider data ends a part.
func (a *assembler) part(kind step.PartKind) *part {
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == kind && a.parts[n-1].provider == nil {
		return a.parts[n-1]
	}
	p := &part{kind: kind}
	a.parts = append(a.parts, p)
	return p
}

func (a *assembler) call(d CallDelta) {
	if a.calls == nil {
		a.calls = map[int]*call{}
	}
	c := a.calls[d.Index]
	if c == nil {
		c = &call{}
		a.calls[d.Index] = c
		a.parts = append(a.parts, &part{kind: step.PartCall})
	}
	if d.Name != "" {
		a.size += len(d.Name) - len(c.name)
		c.name = d.Name
	}
	if d.Replace {
		a.size -= c.args.Len()
		c.args.Reset()
	}
	a.size += len(d.Args)
	c.args.WriteString(d.Args)
	if d.Provider != nil {
		a.size += len(d.Provider) - len(c.provider)
		c.provider, c.signed = d.Provider, d.Signed
	}
}

func (a *assembler) response() Response {
	r := Response{Model: a.model, Finish: a.finish, UnclearReason: a.unclear, Usage: a.total()}
	indexes := slices.Sorted(maps.Keys(a.calls))
	for _, i := range indexes {
		c := a.calls[i]
		r.Calls = append(r.Calls, Call{Name: c.name, Args: cmp.Or(strings.TrimSpace(c.args.String()), "{}")})
	}
	for _, p := range a.parts {
		if p.kind == step.PartCall {
			c := a.calls[indexes[0]]
			p.provider, p.signed, indexes = c.provider, c.signed, indexes[1:]
		}
		r.Parts = append(r.Parts, step.Part{Kind: p.kind, Text: p.text.String(), Signature: p.signature.String(), Provider: p.provider, Signed: p.signed})
	}
	r.Parts = withoutLastCalls(r.Parts)
	return r
}

// withoutLastCalls removes parts of kind PartCall without provider data from the end. They are redundant, because calls
// without a part come last.
func withoutLastCalls(parts []step.Part) []step.Part {
	for len(parts) > 0 && parts[len(parts)-1].Kind == step.PartCall && parts[len(parts)-1].Provider == nil {
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return nil
	}
	return parts
}
