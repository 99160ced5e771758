package listprices

import "github.com/deckhand-dev/deckhand/api/v1alpha1"

// prices are the standard list prices: without batches, priority tiers, regional endpoints and discounts.
//
//   - Anthropic: https://platform.claude.com/docs/en/about-claude/pricing. cacheWrite is the price
//     for five minutes.
//   - OpenAI: https://platform.openai.com/docs/pricing.
//
// A model whose price depends on the length of a request, or is not certain, is not listed.
var prices = map[v1alpha1.Provider]map[string]row{
	v1alpha1.ProviderAnthropic: {
		"claude-opus-5":     {"5USD", "25USD", "0.5USD", "6.25USD"},
		"claude-opus-4-8":   {"5USD", "25USD", "0.5USD", "6.25USD"},
		"claude-opus-4-7":   {"5USD", "25USD", "0.5USD", "6.25USD"},
		"claude-opus-4-6":   {"5USD", "25USD", "0.5USD", "6.25USD"},
		"claude-opus-4-5":   {"5USD", "25USD", "0.5USD", "6.25USD"},
		"claude-sonnet-5":   {"2USD", "10USD", "0.2USD", "2.5USD"},
		"claude-sonnet-4-6": {"3USD", "15USD", "0.3USD", "3.75USD"},
		"claude-sonnet-4-5": {"3USD", "15USD", "0.3USD", "3.75USD"},
		"claude-haiku-4-5":  {"1USD", "5USD", "0.1USD", "1.25USD"},
	},
	v1alpha1.ProviderOpenAI: {
		"gpt-5":             {"1.25USD", "10USD", "0.125USD", ""},
		"gpt-5-mini":        {"0.25USD", "2USD", "0.025USD", ""},
		"gpt-5-nano":        {"0.05USD", "0.4USD", "0.005USD", ""},
		"gpt-4.1":           {"2USD", "8USD", "0.5USD", ""},
		"gpt-4.1-mini":      {"0.4USD", "1.6USD", "0.1USD", ""},
		"gpt-4.1-nano":      {"0.1USD", "0.4USD", "0.025USD", ""},
		"gpt-4o":            {"2.5USD", "10USD", "1.25USD", ""},
		"gpt-4o-2024-05-13": {"5USD", "15USD", "", ""}, // the first version cost more
		"gpt-4o-mini":       {"0.15USD", "0.6USD", "0.075USD", ""},
		"o3":                {"2USD", "8USD", "0.5USD", ""},
		"o4-mini":           {"1.1USD", "4.4USD", "0.275USD", ""},
	},
}
