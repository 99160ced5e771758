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
		if read, err := time.Parse(time.DateOnly, r.Date); err != nil || read.After(time.Now()) || len(r.Sources) == 0 {
			t.Errorf("%v: sources %v, date %q", r.Families, r.Sources, r.Date)
		}
		if slices.ContainsFunc(r.Levels, func(l string) bool { return !slices.Contains(allLevels, l) }) {
			t.Errorf("%v: levels %q", r.Families, r.Levels)
		}
		if r.Window == 0 && r.MaxOutput == 0 && r.Images == Unknown && r.PDF == Unknown && r.Levels == nil && r.Refused == nil && r.Instead == "" {
			t.Errorf("%v: the row has no fact", r.Families)
		}
	}
}

// A row of all names that begin so has only sizes.
func TestNamesThatBeginSoHaveOnlySizes(t *testing.T) {
	for _, r := range All() {
		for _, f := range r.Families {
			switch {
			case strings.HasSuffix(f, "*") != isOfNames(r):
				t.Errorf("%v: write names that begin so into a row of their own", r.Families)
			case isOfNames(r) && (r.Window == 0 || r.Images != Unknown || r.PDF != Unknown || r.Levels != nil || r.Refused != nil || r.Instead != ""):
				t.Errorf("%v: names that begin so need a window, and have no other facts", r.Families)
			}
		}
		if r.MaxOutput > r.Window && r.Window > 0 {
			t.Errorf("%v: an answer of %d does not fit the window of %d", r.Families, r.MaxOutput, r.Window)
		}
	}
}

// Each window of the list is one of a known maker, and a name of it is found.
func TestWindowsOfTheList(t *testing.T) {
	for _, w := range windows {
		if w.window <= 0 || w.maker == "" || len(w.match) == 0 {
			t.Errorf("%+v", w)
		}
	}
	if read, err := time.Parse(time.DateOnly, ListDate); err != nil || read.After(time.Now()) || ListSource == "" {
		t.Errorf("source %q, date %q", ListSource, ListDate)
	}
}

func TestSizes(t *testing.T) {
	type sizes struct{ window, maxOutput int64 }
	for model, want := range map[string]sizes{
		"gpt-5.4":                {1_050_000, 128_000}, // the list, and a row
		"gpt-5-4-2026-03-05":     {1_050_000, 128_000},
		"codestral-latest":       {128_000, 0}, // a row over the list
		"gpt-5.9-codex":          {400_000, 128_000},
		"gemma3:1b-it":           {32_768, 0},
		"gemma3:27b":             {131_072, 0},
		"deepseek-chat":          {128_000, 0},
		"mixtral-8x22b-instruct": {64_000, 0},
		"house-model":            {},
		"":                       {},
	} {
		var got sizes
		if got.window, got.maxOutput = Sizes(model); got != want {
			t.Errorf("Sizes(%s) = %+v, want %+v", model, got, want)
		}
	}
}

// Each name has one row.
func TestEachNameIsFoundInItsRow(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range All() {
		for _, f := range r.Families {
			found, known := Of([]string{r.Provider}, f)
			if isOfNames(r) {
				found = beginning(dashed(strings.TrimSuffix(f, "*")))
			}
			if !known && !isOfNames(r) || !slices.Equal(found.Families, r.Families) {
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

func TestTheMakerOfAModel(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-5": "openai", "gpt-5.9-new": "openai", "claude-next": "anthropic", "anthropic/claude-opus-5": "", "deepseek-flash": "deepseek", "scripted": "", "": "",
	} {
		if got := MakerOf(model); got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}
