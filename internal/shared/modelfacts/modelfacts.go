// Package modelfacts is a table of documented facts about models: the context window, the longest answer, images, PDFs,
// levels of reasoning and parameters that are refused. It is written by hand, except for windows from a list.
// Models change, so nothing is refused because of it: the operator warns.
//
// The runner reads it too: it sends a line of text for each image to a model that accepts none, and it uses the window
// of the table for a Model that sets none.
package modelfacts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/modelname"
)

// A Row has the documented facts of a family of models.
type Row struct {
	// Provider is the provider in the catalog of prices, or the maker of models that others serve.
	Provider string
	// Families are the names of the models, without versions. A name that ends in * matches all names with that prefix,
	// and its row has only sizes: it is for newer models, and for names with a size or a tag.
	Families []string
	// Window is the maximum number of tokens of a request and its answer together; 0: from the list, or unknown.
	Window int64
	// MaxOutput is the maximum number of tokens of one answer; 0: unknown.
	MaxOutput   int64
	Images, PDF Answer
	// Levels are the levels of reasoning, by their names in Model.spec.inference.reasoning: nil if
	// unknown, empty if the model accepts none.
	Levels []string
	// Refused are parameters of the provider's API that end a request with an error.
	Refused []string
	// Instead is the model to use instead of these, which the provider no longer serves.
	Instead string
	// Sources are the addresses of the documentation, and Date is when the last of them was read.
	Sources []string
	Date    string
}

// A listed is the context window of a model in the list.
type listed struct {
	maker  string
	window int64
	match  [][]string // as in [modelname.Fits]
}

// An Answer may be unknown.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// Of returns the facts about a model at the first of several providers that has a row for it.
func Of(providers []string, model string) (Row, bool) {
	for _, form := range modelname.Forms(model) {
		for _, p := range providers {
			for _, r := range rows {
				if r.Provider == p && r.has(form) {
					return r, true
				}
			}
		}
	}
	return Row{}, false
}

// TakesNoImages returns the row of a model that accepts no images, by its name only: this holds behind a gateway, too.
func TakesNoImages(model string) (Row, bool) {
	for _, form := range modelname.Forms(model) {
		for _, r := range rows {
			if r.Images == No && r.has(form) {
				return r, true
			}
		}
	}
	return Row{}, false
}

// Sizes returns the context window and the longest answer of a model by its name only; 0: unknown. A row of the model
// takes precedence over the list, and the list over a row for a prefix.
func Sizes(model string) (window, maxOutput int64) {
	for _, form := range modelname.Forms(model) {
		for _, r := range rows {
			if r.has(form) {
				window, maxOutput = cmp.Or(window, r.Window), cmp.Or(maxOutput, r.MaxOutput)
			}
		}
	}
	begins := beginning(dashed(strings.ToLower(model)))
	return cmp.Or(window, listedWindow(model), begins.Window), cmp.Or(maxOutput, begins.MaxOutput)
}

// has reports whether a form of a name belongs to a model of the row. Azure and Bedrock write dashes for dots.
func (r Row) has(form string) bool {
	return slices.ContainsFunc(r.Families, func(f string) bool { return modelname.IsVersionOf(dashed(f), dashed(form)) })
}

func dashed(name string) string { return strings.ReplaceAll(name, ".", "-") }

// beginning returns the row with the longest prefix of a name among its Families, which end in an asterisk.
func beginning(name string) (best Row) {
	longest := 0
	for _, r := range rows {
		for _, f := range r.Families {
			begin, is := strings.CutSuffix(dashed(f), "*")
			if is && len(begin) > longest && strings.HasPrefix(name, begin) {
				best, longest = r, len(begin)
			}
		}
	}
	return best
}

// listedWindow returns the context window of the list; 0: unknown.
func listedWindow(model string) int64 {
	for _, form := range modelname.Forms(model) {
		for _, w := range windows {
			if modelname.Fits(w.match, form) || modelname.Fits(w.match, dashed(form)) {
				return w.window
			}
		}
	}
	return 0
}

// All returns all rows, in their order.
func All() []Row { return slices.Clone(rows) }

// MakerOf returns the maker of a model by its name only; empty: unknown.
func MakerOf(model string) string {
	for _, form := range modelname.Forms(model) {
		for _, r := range rows {
			if r.has(form) {
				return r.Provider
			}
		}
	}
	return beginning(dashed(strings.ToLower(model))).Provider
}
