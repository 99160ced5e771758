package catalog

import (
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A fileRow says whether the models whose canonical name begins so take images. Documents are
// taken by those that take images, as far as it is known.
type fileRow struct {
	prefix string
	images bool
}

// fileRows are the models without images, and what in their families has them. They are as the
// model pages and model cards of their makers had it in the autumn of 2026. A model that is not
// here is sent images: its provider refuses them if it takes none.
var fileRows = []fileRow{
	{"claude-2", false},
	{"claude-instant", false},
	{"gpt-3", false},
	{"gpt-4", false},
	{"gpt-4-turbo", true},
	{"gpt-4-vision", true},
	{"gpt-4-1", true},
	{"gpt-4-5", true},
	{"gpt-4o", true},
	{"gpt-oss", false},
	{"o1-mini", false},
	{"o1-preview", false},
	{"o3-mini", false},
	{"deepseek-", false},
	{"deepseek-vl", true},
	{"deepseek-ocr", true},
	{"kimi-k2", false},
	{"kimi-k2-5", true},
	{"kimi-k2-6", true},
	{"moonshot-v1", false},
	{"codestral", false},
	{"devstral", false},
	{"mixtral", false},
	{"llama-2", false},
	{"llama-3", false},
	{"llama3", false},
	{"qwen3-coder", false},
	{"grok-3", false},
	{"grok-code", false},
	{"glm-4", false},
}

// Takes reports whether a model takes images or documents. Names with "vision" or "vl" in them are
// of models that do.
func Takes(model string, kind step.PartKind) bool {
	name := canonical(model)
	if isVision(name) {
		return true
	}
	takes, length := true, -1
	for _, r := range fileRows {
		if strings.HasPrefix(name, r.prefix) && len(r.prefix) > length {
			takes, length = r.images, len(r.prefix)
		}
	}
	return takes || kind != step.PartImage && kind != step.PartDocument
}

// isVision reports whether a part of a name says that the model takes images.
func isVision(name string) bool {
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == ':' || r == '_' }) {
		if part == "vision" || part == "vl" || part == "4v" || part == "5v" || part == "6v" {
			return true
		}
	}
	return false
}
