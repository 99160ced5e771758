// Package listprices knows the list prices of well-known models, so that the cost of a Run is not
// unknown only because nobody entered prices.
package listprices

import (
	"regexp"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Date is when the prices were last compared with the price lists.
const Date = "2026-09-22"

// endpoints are those of the providers themselves. Whoever else serves a model under the same
// name has prices of their own.
var endpoints = map[v1alpha1.Provider]string{
	v1alpha1.ProviderOpenAI:    "https://api.openai.com/v1",
	v1alpha1.ProviderAnthropic: "https://api.anthropic.com",
}

// dated is the date at the end of the name of a fixed version of a model.
var dated = regexp.MustCompile(`-20[0-9]{2}-?[0-9]{2}-?[0-9]{2}$`)

// Of returns the prices of a Model, and where they come from. They are nil if they are unknown.
func Of(m v1alpha1.ModelSpec) (*v1alpha1.Prices, v1alpha1.PriceSource) {
	if m.Prices != nil {
		return m.Prices, v1alpha1.PricesOfModel
	}
	official, known := endpoints[m.Provider]
	if !known || m.Endpoint != "" && strings.TrimSuffix(m.Endpoint, "/") != official {
		return nil, v1alpha1.PricesUnknown
	}
	p, listed := prices[m.Provider][m.ModelID]
	if !listed {
		p, listed = prices[m.Provider][dated.ReplaceAllString(m.ModelID, "")]
	}
	if !listed {
		return nil, v1alpha1.PricesUnknown
	}
	return p.prices(), v1alpha1.PricesOfCatalog
}

// A row is the prices of a model in US dollars per million tokens. An empty one is as input.
type row struct{ input, output, cacheRead, cacheWrite v1alpha1.Money }

func (r row) prices() *v1alpha1.Prices {
	out := &v1alpha1.Prices{Input: r.input, Output: r.output}
	if r.cacheRead != "" {
		out.CacheRead = &r.cacheRead
	}
	if r.cacheWrite != "" {
		out.CacheWrite = &r.cacheWrite
	}
	return out
}
