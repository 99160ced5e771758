package modelfacts

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	cases := map[string]struct {
		providers []string
		model     string
		output    int64 // 0: no row
	}{
		"a model":                       {[]string{"anthropic"}, "claude-opus-5", 128_000},
		"a dated version":               {[]string{"anthropic"}, "claude-haiku-4-5-20251001", 64_000},
		"a later model of the family":   {[]string{"anthropic"}, "claude-haiku-4-5-5", 0},
		"another size of the family":    {[]string{"google"}, "gemini-3.5-flash-lite", 0},
		"another provider":              {[]string{"groq"}, "claude-opus-5", 0},
		"the second of two providers":   {[]string{"azure", "openai"}, "GPT-5.4", 128_000},
		"a name with its kind in front": {[]string{"google"}, "models/gemini-3.5-flash", 65_536},
		"a fine-tuned model":            {[]string{"openai"}, "ft:gpt-5.4:org::id", 0},
		"no provider":                   {nil, "claude-opus-5", 0},
		"no name":                       {[]string{"anthropic"}, "", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if row, known := Of(tc.providers, tc.model); row.MaxOutput != tc.output || known != (tc.output > 0) {
				t.Errorf("%t %+v", known, row)
			}
		})
	}
}

// Each fact has an address and a date.
func TestEachRowSaysWhereItIsFrom(t *testing.T) {
	for _, r := range All() {
		if slices.ContainsFunc(r.Sources, func(s string) bool { return !strings.HasPrefix(s, "https://") }) {
			t.Errorf("%v: the sources %q are not all https addresses", r.Families, r.Sources)
		}
		if _, err := time.Parse(time.DateOnly, r.Date); err != nil || len(r.Sources) == 0 {
			t.Errorf("%v: sources %v, date %q", r.Families, r.Sources, r.Date)
		}
		if slices.ContainsFunc(r.Levels, func(l string) bool { return !slices.Contains(allLevels, l) }) {
			t.Errorf("%v: levels %q", r.Families, r.Levels)
		}
		if r.MaxOutput == 0 && r.Images == Unknown && r.PDF == Unknown && r.Levels == nil && r.Refused == nil {
			t.Errorf("%v: the row has no fact", r.Families)
		}
	}
}

// Each name has one row.
func TestEachNameIsFoundInItsRow(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range All() {
		for _, f := range r.Families {
			if found, known := Of([]string{r.Provider}, f); !known || !slices.Equal(found.Families, r.Families) {
				t.Errorf("%s is found in the row of %v", f, found.Families)
			}
			name := r.Provider + "/" + f
			if seen[name] || f != strings.ToLower(f) {
				t.Errorf("%s is there twice, or not in lower case", name)
			}
			seen[name] = true
		}
	}
}
