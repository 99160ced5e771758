package listprices

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	haiku     = "claude-haiku-4-5"
	atGemini  = "https://generativelanguage.googleapis.com/v1beta/openai"
	atBedrock = "https://bedrock-runtime.eu-central-1.amazonaws.com"
)

// listed is a Model with the price that the catalog has for it.
type listed struct {
	provider        v1alpha1.Provider
	model, endpoint string
	input           int64 // per million tokens, in millionths of a dollar; 0: unknown
}

func (tc listed) check(t *testing.T) {
	got, err := Of(v1alpha1.ModelSpec{Provider: tc.provider, ModelID: tc.model, Endpoint: tc.endpoint})
	input := int64(0)
	if got.Prices != nil {
		input = got.Prices.Input
	}
	if err != nil || input != tc.input || (got.List != nil) != (tc.input > 0) || (got.Source == v1alpha1.PricesOfCatalog) != (tc.input > 0) {
		t.Errorf("error %v, input %d, want %d: %+v", err, input, tc.input, got)
	}
}

func TestPricesOfAModel(t *testing.T) {
	cases := map[string]listed{
		"of the catalog":                       {"Anthropic", haiku, "", 1e6},
		"of a dated version":                   {"Anthropic", haiku + "-20251001", "", 1e6},
		"of a dated version of an equal name":  {"OpenAI", "gpt-5.4-2031-01-02", "", 2.5e6},
		"at the provider's endpoint":           {"Anthropic", haiku, "https://api.anthropic.com/", 1e6},
		"of another model of the family":       {"Anthropic", haiku + "-fast", "", 0},
		"of a later model of the family":       {"Anthropic", "claude-sonnet-5-5", "", 0},
		"at a gateway":                         {"Anthropic", haiku, "https://gateway.example", 0},
		"at another host below the endpoint":   {"Anthropic", haiku, "https://api.anthropic.com.example", 0},
		"at another host with the endpoint":    {"OpenAI", "gpt-5", "https://gateway.example/https://api.openai.com", 0},
		"at another port":                      {"OpenAI", "gpt-5", "https://api.openai.com:8443/v1", 0},
		"without encryption":                   {"OpenAI", "gpt-5", "http://api.openai.com/v1", 0},
		"of a compatible provider, by address": {"AnthropicCompatible", haiku, "https://api.anthropic.com", 1e6},
		"of another provider":                  {"OpenAI", haiku, "", 0},
		"of a version with its own":            {"OpenAI", "gpt-4o-2024-05-13", "", 5e6},
		"of Azure":                             {"Azure", "gpt-5", "https://acme.openai.azure.com", 1.25e6},
		"of Azure, by another maker":           {"Azure", "DeepSeek-R1", "https://acme.services.ai.azure.com", 0},
		"of Azure, with open weights":          {"Azure", "gpt-oss-120b", "https://acme.services.ai.azure.com", 0},
		"of Claude at Azure":                   {"AnthropicCompatible", haiku, "https://acme.services.ai.azure.com/anthropic", 1e6},
		"of Bedrock, with a revision":          {"OpenAICompatible", "mistral.mixtral-8x7b-instruct-v0:1", atBedrock, 450_000},
		"of Azure behind a gateway":            {"Azure", "gpt-5", "https://acme.example", 0},
		"of Ollama":                            {"Ollama", "gpt-oss-120b", "", 0},
		"of a custom driver":                   {"Custom", "gpt-5", "https://api.openai.com", 0},
		"of Mistral":                           {"OpenAICompatible", "mistral-medium-latest", "https://api.mistral.ai/v1", 1.5e6},
		"of xAI":                               {"OpenAICompatible", "grok-4.5", "https://api.x.ai/v1", 2e6},
		"of Groq":                              {"OpenAICompatible", "llama-3.3-70b-versatile", "https://api.groq.com/openai/v1", 590_000},
		"of Gemini":                            {"OpenAICompatible", "models/gemini-3.6-flash", "https://generativelanguage.googleapis.com/v1beta/openai", 750_000},
		"of Gemini, but speech":                {"OpenAICompatible", "gemini-2.5-pro-002-tts", "https://generativelanguage.googleapis.com/v1beta/openai", 0},
		"of DeepSeek":                          {"DeepSeek", "deepseek-flash", "", 150_000},
		"of DeepSeek, by a name of before":     {"DeepSeek", "deepseek-v4-flash", "", 150_000},
		"of DeepSeek, at another model":        {"DeepSeek", "deepseek-v4-pro", "", 660_000},
		"of a name that DeepSeek retired":      {"DeepSeek", "deepseek-chat", "", 0},
		"of another one":                       {"DeepSeek", "deepseek-reasoner", "", 0},
		"of Kimi":                              {"Kimi", "kimi-k3", "", 3e6},
		"of OpenRouter":                        {"OpenRouter", "x-ai/grok-4.3", "", 1.25e6},
		"of Bedrock, with its surcharge":       {"AnthropicCompatible", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", atBedrock, 1.1e6},
		"of provider Bedrock":                  {"Bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", atBedrock, 1.1e6},
		"of Bedrock behind a gateway":          {"Bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", "https://gateway.example", 0},
		"of Bedrock, global":                   {"AnthropicCompatible", "global.anthropic.claude-haiku-4-5-20251001-v1:0", atBedrock, 1e6},
		"of nothing":                           {"OpenAI", "", "", 0},
	}
	for name, tc := range cases {
		t.Run(name, tc.check)
	}
}

func TestPricesOfVersionsAndFineTunedModels(t *testing.T) {
	cases := map[string]listed{
		"of a numbered version":                     {"OpenAICompatible", "gemini-2.0-flash-001", atGemini, 100_000},
		"of a numbered version of a smaller model":  {"OpenAICompatible", "gemini-2.0-flash-lite-001", atGemini, 75_000},
		"of an experimental version":                {"OpenAICompatible", "gemini-2.0-flash-thinking-exp-01-21", atGemini, 100_000},
		"of a numbered version, by an expression":   {"OpenAICompatible", "gemini-3.5-flash-001", atGemini, 1.5e6},
		"of another model, by an expression":        {"OpenAICompatible", "gemini-3.5-flash-8b-image", atGemini, 0},
		"of another size, by an expression":         {"OpenAICompatible", "gemini-3.5-flash-9b", atGemini, 0},
		"of a dated version, by an expression":      {"OpenAI", "gpt-6-sol-2026-09-09", "", 2e6},
		"of another model behind a number":          {"OpenAICompatible", "gemini-2.0-flash-0-image", atGemini, 0},
		"of a fine-tuned model":                     {"OpenAI", "ft:gpt-4o-mini-2024-07-18:org::id", "", 300_000},
		"of a fine-tuned model with a suffix":       {"OpenAI", "ft:gpt-4o-2024-08-06:acme:my-gpt-5:9a8b:ckpt-step-90", "", 3.75e6},
		"of a fine-tuned model of before":           {"OpenAI", "ft:gpt-3.5-turbo-0125:org::id", "", 3e6},
		"of a fine-tuned model of Azure":            {"Azure", "gpt-4o-mini-2024-07-18.ft-0e208cf33a6a466994aff31a08aba678", "https://acme.openai.azure.com", 300_000},
		"of a fine-tuned model without a row":       {"OpenAI", "ft:gpt-4.1-mini-2025-04-14:org::id", "", 0},
		"of another's fine-tuned model":             {"OpenAICompatible", "ft:open-mistral-7b:587a6b29:20240514:7e773925", "https://api.mistral.ai/v1", 0},
		"of a fine-tuned model, named by its path":  {"OpenAICompatible", "tunedModels/gemini-2.0-flash", atGemini, 0},
		"of a fine-tuned model without an owner":    {"OpenAI", "ft:gpt-4.1", "", 0},
		"of Bedrock, by an inference profile's ARN": {"AnthropicCompatible", "arn:aws:atBedrock:eu-central-1:123456789012:inference-profile/global.anthropic.claude-haiku-4-5-20251001-v1:0", atBedrock, 1e6},
	}
	for name, tc := range cases {
		t.Run(name, tc.check)
	}
}

// The address of Bedrock has the region of the Model.
func TestPricesOfBedrockInARegion(t *testing.T) {
	got, err := Of(v1alpha1.ModelSpec{Provider: "Bedrock", ModelID: "eu.anthropic.claude-haiku-4-5-20251001-v1:0", Bedrock: &v1alpha1.BedrockModel{Region: "eu-central-1"}})
	if err != nil || got.Prices == nil || got.Prices.Input != 1.1e6 || got.Source != v1alpha1.PricesOfCatalog {
		t.Errorf("error %v, %+v", err, got)
	}
}

// Prices that the list has otherwise than the provider are those of the provider's page.
func TestPricesOfAPage(t *testing.T) {
	got, err := Of(v1alpha1.ModelSpec{Provider: "DeepSeek", ModelID: "deepseek-flash"})
	want := &v1alpha1.PriceList{Source: "https://api-docs.deepseek.com/quick_start/pricing", Date: "2026-11-28"}
	if diff := cmp.Diff(want, got.List); err != nil || diff != "" || len(got.Prices.Changes) != 2 {
		t.Errorf("error %v, %+v, -want +got:\n%s", err, got.Prices, diff)
	}
}

func TestLongRequestsCostMore(t *testing.T) {
	got, err := Of(v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-5.4"})
	want := []task.PriceTier{{Above: 271_999, Input: 5e6, Output: 22.5e6, CacheRead: 500_000, CacheWrite: 5e6}}
	if err != nil || cmp.Diff(want, got.Prices.Tiers) != "" {
		t.Errorf("error %v, %+v", err, got.Prices)
	}
}

func TestPricesOfTheSpec(t *testing.T) {
	money := func(m v1alpha1.Money) *v1alpha1.Money { return &m }
	tier := func(above v1alpha1.Tokens) v1alpha1.PriceTier {
		return v1alpha1.PriceTier{Above: above, Input: "2USD", Output: "4USD", CacheRead: money("0.2USD")}
	}
	wrong := tier("300k")
	wrong.Output = "-1USD"
	none := tier("300k")
	none.Output = ""
	cases := map[string]struct {
		tiers []v1alpha1.PriceTier
		want  string // in the error
	}{
		"in order":              {[]v1alpha1.PriceTier{tier("200k"), tier("1M")}, ""},
		"out of order":          {[]v1alpha1.PriceTier{tier("1M"), tier("200k")}, "tiers[1].above is 200k: not above the tier before. Write more than 1000000"},
		"twice the same":        {[]v1alpha1.PriceTier{tier("200k"), tier("200000")}, "tiers[1].above is 200000"},
		"no number":             {[]v1alpha1.PriceTier{tier("0")}, "tiers[0].above: "},
		"a negative price":      {[]v1alpha1.PriceTier{tier("200k"), wrong}, "tiers[1].output: "},
		"without output prices": {[]v1alpha1.PriceTier{none}, "tiers[0].output: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Of(v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-5", Prices: &v1alpha1.Prices{Input: "1USD", Output: "2USD", Tiers: tc.tiers}})
			switch {
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %s", err, tc.want)
			case tc.want == "" && (err != nil || got.Source != v1alpha1.PricesOfModel || got.List != nil || got.Prices.Tiers[0].CacheWrite != 2e6 || got.Prices.Tiers[1].Above != 1e6):
				t.Errorf("error %v, %+v", err, got)
			}
		})
	}
}

// The embedded file is as the generator writes it, and its rows make sense.
func TestTheCatalogIsAsGenerated(t *testing.T) {
	h, rows, err := decode(catalog)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(h, rows)
	if err != nil || string(again) != string(catalog) {
		t.Errorf("run make catalog: the file differs from what the generator writes (%v)", err)
	}
	if _, err := time.Parse(time.DateOnly, h.Date); err != nil || !strings.Contains(h.License, "Permission is hereby granted") {
		t.Errorf("date %q, license %q", h.Date, h.License)
	}
	for _, r := range rows {
		last := int64(0)
		for _, tier := range r.Prices.Tiers {
			if tier.Above <= last || len(r.Prices.Tiers) > 4 {
				t.Errorf("%s %s: tiers %+v", r.Provider, r.Model, r.Prices.Tiers)
			}
			last = tier.Above
		}
		if len(r.Match) == 0 || r.Prices.Output < 0 {
			t.Errorf("%+v", r)
		}
	}
	changed := strings.Replace(string(catalog), `"input":5000000`, `"input":4000000`, 1)
	if _, _, err := decode([]byte(changed)); err == nil {
		t.Error("a row that was changed by hand is read")
	}
}
