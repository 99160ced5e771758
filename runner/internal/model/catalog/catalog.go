package catalog

import "strings"

// Defaults for a model that is not in the catalog.
const (
	UnknownWindow    = 128_000
	UnknownMaxOutput = 8_000
)

// Of is the context window of a model and the most that it writes in one answer,
// in tokens. The provider is one of Model.spec.provider, the model its name there;
// of several rows that fit the most specific counts.
func Of(provider, model string) (window, maxOutput int64) {
	name := canonical(model)
	best := row{window: UnknownWindow, maxOutput: UnknownMaxOutput}
	for _, r := range rows {
		fits := (r.provider == "" || r.provider == provider) && strings.HasPrefix(name, r.prefix)
		if fits && r.rank() > best.rank() {
			best = r
		}
	}
	return best.window, best.maxOutput
}

// canonical is a name as the rows have it: in lower case, with dashes for dots,
// without who hosts it or made it ("anthropic/claude-sonnet-4.5",
// "us.anthropic.claude-sonnet-4-5", "ft:gpt-4o:acme").
func canonical(model string) string {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	if i := strings.Index(name, "anthropic."); i >= 0 {
		name = name[i+len("anthropic."):]
	}
	return strings.ReplaceAll(name, ".", "-")
}

// rank orders the rows that fit a name: the longer prefix first, and a
// provider's own row before the general one.
func (r row) rank() int {
	rank := 2 * len(r.prefix)
	if r.provider != "" {
		rank++
	}
	return rank
}
