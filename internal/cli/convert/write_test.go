package convert

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestMergeKeepsLinesThatDoNotChange(t *testing.T) {
	for name, tc := range map[string]struct{ was, base, now, want string }{
		"nothing changed":                   {"a  b  c", "a b c", "a b c", "a  b  c"},
		"a line beside one in another form": {"A' B' with F1 F2", "A B with F", "A B input F", "A' B' input F1 F2"},
		"a new line":                        {"a B' c", "a B c", "a B new c", "a B' new c"},
		"a removed line":                    {"a B' c", "a B c", "a B", "a B'"},
		"a changed line in another form":    {"a B' c", "a B c", "a C c", "a C c"},
	} {
		lines := func(text string) []string { return strings.Split(strings.ReplaceAll(text, " ", "\n "), "\n") }
		if got := strings.Fields(merge(lines(tc.was), lines(tc.base), lines(tc.now))); !slices.Equal(got, strings.Fields(tc.want)) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// What is the same in two texts stays, whatever the third is.
func TestMergeOfTwoTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() []string {
		lines := make([]string, random.IntN(8)+1)
		for i := range lines {
			lines[i] = string(rune('a'+random.IntN(4))) + "\n"
		}
		return lines
	}
	for range 2000 {
		a, b := text(), text()
		if got := merge(a, b, b); got != strings.Join(a, "") {
			t.Fatalf("merge(%q, %q, the same) = %q", a, b, got)
		}
		if got := merge(a, a, b); got != strings.Join(b, "") {
			t.Fatalf("merge(%q, the same, %q) = %q", a, b, got)
		}
	}
}
