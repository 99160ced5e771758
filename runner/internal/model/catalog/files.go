package catalog

import (
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A textModel is a model that takes neither images nor documents.
type textModel struct {
	// name is its canonical name, without a date.
	name string
	// source is the page that lists its inputs, and day the day on which it was read.
	source, day string
}

// textModels are models whose pages list text as their only input. A model that is not here is sent
// images: its provider refuses them if it takes none. So a row saves a refused request, and a wrong row
// hides images from a model that would take them.
var textModels = []textModel{
	{"gpt-3-5-turbo", "https://github.com/anomalyco/models.dev/blob/dev/providers/openai/models/gpt-3.5-turbo.toml", "2026-11-27"},
	{"gpt-4", "https://developers.openai.com/api/docs/models/gpt-4.md", "2026-11-27"},
	{"o3-mini", "https://github.com/anomalyco/models.dev/blob/dev/providers/openai/models/o3-mini.toml", "2026-11-27"},
	{"gpt-oss-120b", "https://developers.openai.com/api/docs/models/gpt-oss-120b.md", "2026-11-27"},
	{"gpt-oss-20b", "https://github.com/anomalyco/models.dev/blob/dev/providers/groq/models/openai/gpt-oss-20b.toml", "2026-11-27"},
	{"kimi-k2-thinking", "https://github.com/anomalyco/models.dev/blob/dev/providers/moonshotai/models/kimi-k2-thinking.toml", "2026-11-27"},
}

// Takes reports whether a model takes images or documents. Behind the name of a row only a date may
// follow: gpt-4-turbo is another model than gpt-4.
func Takes(model string, kind step.PartKind) bool {
	if kind != step.PartImage && kind != step.PartDocument {
		return true
	}
	name := strings.ReplaceAll(canonical(model), ":", "-")
	for _, m := range textModels {
		if rest, ok := strings.CutPrefix(name, m.name); ok && isDate(rest) {
			return false
		}
	}
	return true
}

// isDate reports whether the end of a name is empty or a date, such as -0613 or -2025-01-31.
func isDate(rest string) bool {
	return rest == "" || len(rest) >= len("-0613") && rest[0] == '-' && rest[2] != '-' && strings.Trim(rest, "0123456789-") == ""
}
