package modelfacts

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const page = "../../../docs/models.md"

// providers are the rows of the page: the provider of the catalog, and how the page names it.
var providers = [][2]string{
	{"anthropic", "Anthropic"},
	{"openai", "OpenAI, Azure"},
	{"google", "Gemini"},
	{"deepseek", "DeepSeek"},
	{"moonshotai", "Kimi"},
	{"mistral", "Mistral"},
	{"x-ai", "xAI"},
	{"groq", "Groq"},
}

// The page of models shows the table, with a line for each provider.
func TestThePageShowsTheTable(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range providers {
		if line := pageLine(p[0], p[1]); !strings.Contains(string(text), line+"\n") {
			t.Errorf("docs/models.md lacks the line\n%s", line)
		}
	}
	for _, r := range All() {
		if line := sizesLine(r); r.Window > 0 && !strings.Contains(string(text), line+"\n") {
			t.Errorf("docs/models.md lacks the line\n%s", line)
		}
		if !isOfNames(r) && !slices.ContainsFunc(providers, func(p [2]string) bool { return p[0] == r.Provider }) {
			t.Errorf("%v: the page has no line for %s", r.Families, r.Provider)
		}
	}
}

// isOfNames reports whether a row is of all names that begin so.
func isOfNames(r Row) bool { return strings.HasSuffix(r.Families[0], "*") }

// sizesLine is the line of a row with a context window.
func sizesLine(r Row) string {
	output := ""
	if r.MaxOutput > 0 {
		output = fmt.Sprint(r.MaxOutput)
	}
	return fmt.Sprintf("| `%s` | %d | %s |", strings.Join(r.Families, "`, `"), r.Window, output)
}

// pageLine is the line of a provider.
func pageLine(provider, name string) string {
	cells := []string{
		cell(provider, func(r Row) string {
			if r.MaxOutput == 0 {
				return ""
			}
			return fmt.Sprint(r.MaxOutput)
		}),
		cell(provider, func(r Row) string { return []string{"", "yes", "no"}[r.Images] }),
		cell(provider, func(r Row) string { return []string{"", "yes", "no"}[r.PDF] }),
		cell(provider, func(r Row) string {
			switch {
			case r.Levels == nil:
				return ""
			case len(r.Levels) == 0:
				return "no level"
			}
			return strings.Join(r.Levels, ", ")
		}),
	}
	return "| " + name + " | " + strings.Join(cells, " | ") + " |"
}

// cell has the values of a column, each with the families that have it.
func cell(provider string, value func(Row) string) string {
	var values []string
	families := map[string][]string{}
	for _, r := range All() {
		v := value(r)
		if r.Provider != provider || v == "" || isOfNames(r) {
			continue
		}
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
		families[v] = append(families[v], r.Families...)
	}
	var out []string
	for _, v := range values {
		out = append(out, v+": `"+strings.Join(families[v], "`, `")+"`")
	}
	return strings.Join(out, "; ")
}
