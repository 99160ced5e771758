package listprices

import (
	"errors"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

const house = `
date: 2026-11-01
rows:
- {provider: OpenAI, modelID: gpt-5, prices: {input: 1USD, output: 2USD, tiers: [{above: 200k, input: 3USD, output: 4USD}]}}
- {provider: OpenAICompatible, modelID: house, prices: {input: 0.5USD, output: 1USD, cacheRead: 0USD}}
`

// use puts an override in force until the end of the test.
func use(t *testing.T, o *Override) {
	t.Helper()
	t.Cleanup(func() { current.Store(nil) })
	Use(o)
}

func TestAnOverrideComesBeforeTheCatalogAndAfterTheModel(t *testing.T) {
	o, err := ParseOverride([]byte(house), "ConfigMap ops/prices")
	if err != nil || o.Len() != 2 {
		t.Fatalf("%d rows, error %v", o.Len(), err)
	}
	use(t, o)
	cases := map[string]struct {
		model  v1alpha1.ModelSpec
		input  int64
		source string
	}{
		"a row of the catalog":               {v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-5"}, 1e6, "ConfigMap ops/prices"},
		"at any endpoint of the provider":    {v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-5", Endpoint: "https://gateway.example"}, 1e6, "ConfigMap ops/prices"},
		"a model that the catalog lacks":     {v1alpha1.ModelSpec{Provider: "OpenAICompatible", ModelID: "house", Endpoint: "http://vllm/v1"}, 500_000, "ConfigMap ops/prices"},
		"another provider":                   {v1alpha1.ModelSpec{Provider: "Ollama", ModelID: "house"}, 0, ""},
		"another version of the model":       {v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-5-2025-08-07"}, 1.25e6, "@pydantic/genai-prices 0.1.8"},
		"a Model with prices of its own":     {v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-5", Prices: &v1alpha1.Prices{Input: "9USD", Output: "9USD"}}, 9e6, ""},
		"a model that only the catalog has ": {v1alpha1.ModelSpec{Provider: "Anthropic", ModelID: "claude-haiku-4-5"}, 1e6, "@pydantic/genai-prices 0.1.8"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Of(tc.model)
			input, source := int64(0), ""
			if got.Prices != nil {
				input = got.Prices.Input
			}
			if got.List != nil {
				source = got.List.Source
			}
			if err != nil || input != tc.input || source != tc.source {
				t.Errorf("error %v, input %d of %q, want %d of %q", err, input, source, tc.input, tc.source)
			}
		})
	}
}

func TestAWrongOverrideSaysRowFieldAndWhatToWrite(t *testing.T) {
	row := func(text string) string {
		return "rows:\n- {provider: OpenAI, modelID: a, prices: {input: 1USD, output: 1USD}}\n- " + text
	}
	cases := map[string]struct{ file, want string }{
		"no YAML":               {"rows: [", "the list of prices cannot be read: yaml: "},
		"a list alone":          {"- {provider: OpenAI}", "Write date, and rows as a list"},
		"another field":         {"prices: {}", `unknown field "prices". Write date, and rows as a list`},
		"nothing":               {"", "rows has 0 entries: write 1 to 10000"},
		"a date that is none":   {"date: yesterday\nrows: []", `date is "yesterday": write 2026-11-27, or remove it`},
		"an unknown provider":   {row("{provider: Openai, modelID: b, prices: {input: 1USD, output: 1USD}}"), `row 2 (Openai b): provider is "Openai": write that of the Model`},
		"no modelID":            {row("{provider: OpenAI, prices: {input: 1USD, output: 1USD}}"), "row 2 (OpenAI ): modelID is missing: write"},
		"no prices":             {row("{provider: OpenAI, modelID: b}"), "row 2 (OpenAI b): prices is missing: write {input: 3USD, output: 15USD}"},
		"a price that is none":  {row("{provider: OpenAI, modelID: b, prices: {input: 1EUR, output: 1USD}}"), `row 2 (OpenAI b): prices.input: reading "1EUR" as money: write 1.50USD`},
		"a price without USD":   {row("{provider: OpenAI, modelID: b, prices: {input: 1.5, output: 1USD}}"), "row 2: prices.input is of type number: write a text, for example 3USD"},
		"no output price":       {row("{provider: OpenAI, modelID: b, prices: {input: 1USD}}"), "row 2 (OpenAI b): prices.output: "},
		"a negative price":      {row("{provider: OpenAI, modelID: b, prices: {input: -1USD, output: 1USD}}"), "row 2 (OpenAI b): prices.input: "},
		"prices that are a sum": {row("{provider: OpenAI, modelID: b, prices: 1USD}"), "row 2: prices is of type string: write fields"},
		"a field that is wrong": {row("{provider: OpenAI, modelID: b, price: {input: 1USD}}"), `row 2: there is no field "price": write provider, modelID and prices`},
		"the same row twice":    {row("{provider: OpenAI, modelID: a, prices: {input: 2USD, output: 1USD}}"), "row 2 (OpenAI a): provider and modelID are those of row 1 too: remove one"},
		"tiers out of order": {
			row("{provider: OpenAI, modelID: b, prices: {input: 1USD, output: 1USD, tiers: [{above: 2k, input: 1USD, output: 1USD}, {above: 1k, input: 1USD, output: 1USD}]}}"),
			"row 2 (OpenAI b): prices.tiers[1].above is 1k: not above the tier before. Write more than 2000",
		},
		"too many tiers": {
			row("{provider: OpenAI, modelID: b, prices: {input: 1USD, output: 1USD, tiers: [{above: 1}, {above: 2}, {above: 3}, {above: 4}, {above: 5}]}}"),
			"row 2 (OpenAI b): prices.tiers has 5 entries: write at most 4",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if o, err := ParseOverride([]byte(tc.file), "x"); err == nil || o != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestARejectedListLeavesTheOneBeforeInForce(t *testing.T) {
	model := v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-5"}
	o, err := ParseOverride([]byte(house), "ConfigMap ops/prices")
	if err != nil {
		t.Fatal(err)
	}
	use(t, nil)
	Reject(errors.New("row 1 is wrong"))
	if got, _ := Of(model); got.Prices.Input != 1.25e6 || Problem() != "row 1 is wrong" {
		t.Errorf("before any list: %+v, problem %q", got, Problem())
	}
	Use(o)
	if Problem() != "" {
		t.Errorf("after a list that is right: problem %q", Problem())
	}
	Reject(errors.New("row 2 is wrong"))
	if got, _ := Of(model); got.Prices.Input != 1e6 || Problem() != "row 2 is wrong" {
		t.Errorf("after a list that is wrong: %+v, problem %q", got, Problem())
	}
	Use(nil)
	if got, _ := Of(model); got.Prices.Input != 1.25e6 || Problem() != "" {
		t.Errorf("without a list: %+v, problem %q", got, Problem())
	}
}
