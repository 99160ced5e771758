// Package modelfacts is a table of what providers document of their models: the longest answer, images,
// PDFs, levels of reasoning and parameters that are refused. It is written by hand. Models change,
// so nothing is refused because of it: the operator warns.
//
// The runner reads it too: a model that takes no images is sent a line for each.
package modelfacts

import (
	"slices"

	"github.com/deckhand-dev/deckhand/internal/modelname"
)

// A Row is what the provider of a family of models documents.
type Row struct {
	// Provider is the name of the catalog of prices.
	Provider string
	// Families are the names of the models, without versions.
	Families []string
	// MaxOutput is the most tokens of one answer; 0: unknown.
	MaxOutput   int64
	Images, PDF Answer
	// Levels are the levels of reasoning, by their names in Model.spec.inference.reasoning: nil if
	// unknown, empty if the model accepts none.
	Levels []string
	// Refused are parameters of the provider's API that end a request with an error.
	Refused []string
	// Sources are the addresses of the documentation, and Date is when they were read.
	Sources []string
	Date    string
}

// An Answer may be unknown.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// Of returns what is known of a model at the first of several providers that has a row for it.
func Of(providers []string, model string) (Row, bool) {
	for _, form := range modelname.Forms(model) {
		for _, p := range providers {
			for _, r := range rows {
				if r.Provider == p && slices.ContainsFunc(r.Families, func(f string) bool { return modelname.IsVersionOf(f, form) }) {
					return r, true
				}
			}
		}
	}
	return Row{}, false
}

// TakesNoImages returns the row of a model that takes no images, by its name alone: it takes none at a
// gateway either.
func TakesNoImages(model string) (Row, bool) {
	for _, form := range modelname.Forms(model) {
		for _, r := range rows {
			if r.Images == No && slices.ContainsFunc(r.Families, func(f string) bool { return modelname.IsVersionOf(f, form) }) {
				return r, true
			}
		}
	}
	return Row{}, false
}

// All returns all rows, in their order.
func All() []Row { return slices.Clone(rows) }
