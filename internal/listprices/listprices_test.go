package listprices

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestPricesOfAModel(t *testing.T) {
	own := &v1alpha1.Prices{Input: "1USD", Output: "2USD"}
	listed, read, write := &v1alpha1.Prices{Input: "1USD", Output: "5USD"}, v1alpha1.Money("0.1USD"), v1alpha1.Money("1.25USD")
	listed.CacheRead, listed.CacheWrite = &read, &write
	const haiku = "claude-haiku-4-5"
	cases := map[string]struct {
		model  v1alpha1.ModelSpec
		want   *v1alpha1.Prices
		source v1alpha1.PriceSource
	}{
		"its own":                            {v1alpha1.ModelSpec{Provider: "Anthropic", ModelID: haiku, Prices: own}, own, "Model"},
		"of the catalog":                     {v1alpha1.ModelSpec{Provider: "Anthropic", ModelID: haiku}, listed, "Catalog"},
		"of a dated version":                 {v1alpha1.ModelSpec{Provider: "Anthropic", ModelID: haiku + "-20251001"}, listed, "Catalog"},
		"at the provider's endpoint":         {v1alpha1.ModelSpec{Provider: "Anthropic", ModelID: haiku, Endpoint: "https://api.anthropic.com/"}, listed, "Catalog"},
		"of another model of the family":     {v1alpha1.ModelSpec{Provider: "Anthropic", ModelID: haiku + "-fast"}, nil, "Unknown"},
		"at a gateway":                       {v1alpha1.ModelSpec{Provider: "Anthropic", ModelID: haiku, Endpoint: "https://gateway.example"}, nil, "Unknown"},
		"at another host below the endpoint": {v1alpha1.ModelSpec{Provider: "Anthropic", ModelID: haiku, Endpoint: "https://api.anthropic.com.example"}, nil, "Unknown"},
		"of a compatible server":             {v1alpha1.ModelSpec{Provider: "AnthropicCompatible", ModelID: haiku, Endpoint: "https://api.anthropic.com"}, nil, "Unknown"},
		"of another provider":                {v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: haiku}, nil, "Unknown"},
		"of a deployment of Azure":           {v1alpha1.ModelSpec{Provider: "Azure", ModelID: "gpt-5"}, nil, "Unknown"},
		"of a version with its own":          {v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-4o-2024-05-13"}, &v1alpha1.Prices{Input: "5USD", Output: "15USD"}, "Catalog"},
		"of nothing":                         {v1alpha1.ModelSpec{Provider: "OpenAI"}, nil, "Unknown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, source := Of(tc.model)
			if diff := cmp.Diff(tc.want, got); diff != "" || source != tc.source {
				t.Errorf("source %s, -want +got:\n%s", source, diff)
			}
		})
	}
}

// Reading from a cache costs less than input, writing to it more, and output most.
func TestRowsAreInOrder(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, Date); err != nil {
		t.Error(err)
	}
	micro := func(m v1alpha1.Money) int64 {
		n, err := m.MicroUSD()
		if err != nil || n <= 0 {
			t.Errorf("%s: %d, %v", m, n, err)
		}
		return n
	}
	for provider, models := range prices {
		for id, r := range models {
			if r.cacheRead != "" && micro(r.cacheRead) >= micro(r.input) || micro(r.input) >= micro(r.output) || r.cacheWrite != "" && micro(r.cacheWrite) <= micro(r.input) {
				t.Errorf("%s %s: %+v", provider, id, r)
			}
		}
	}
}
