package step

import (
	"iter"
	"slices"
)

// Content yields the parts in their order. With a part of kind PartCall comes its call; the
// calls without a part come last, each with a part of that kind. A part without a call is
// passed over.
func (s Step) Content() iter.Seq2[Part, *Call] {
	return func(yield func(Part, *Call) bool) {
		calls := s.Calls
		for _, p := range s.withAllCalls() {
			var call *Call
			if p.Kind == PartCall {
				if len(calls) == 0 {
					continue
				}
				call, calls = &calls[0], calls[1:]
			}
			if !yield(p, call) {
				return
			}
		}
	}
}

// withAllCalls returns the parts with one for each call.
func (s Step) withAllCalls() []Part {
	missing := len(s.Calls)
	for i := range s.Parts {
		if s.Parts[i].Kind == PartCall {
			missing--
		}
	}
	if missing <= 0 {
		return s.Parts
	}
	return append(slices.Clip(s.Parts), slices.Repeat([]Part{{Kind: PartCall}}, missing)...)
}

// ForModel returns the step as the Model of that name may read it. An answer of another
// Model keeps its texts and calls in their order, and loses its thinking and all provider
// data; an opaque part becomes its text. An empty name stands for all Models.
func (s Step) ForModel(name string) Step {
	if name == "" || s.Model == "" || s.Model == name || !slices.ContainsFunc(s.Parts, Part.isPrivate) {
		return s
	}
	parts := s.Parts
	s.Parts = nil
	for _, p := range parts {
		switch {
		case p.Kind == PartThinking, p.Kind == PartOpaque && p.Text == "":
			continue
		case p.Kind == PartOpaque:
			p.Kind = PartText
		}
		s.Parts = append(s.Parts, Part{Kind: p.Kind, Text: p.Text, File: p.File})
	}
	return s
}

// isPrivate reports whether only the Model that made a part may read all of it.
func (p Part) isPrivate() bool {
	return p.Kind == PartThinking || p.Kind == PartOpaque || p.Provider != nil
}
