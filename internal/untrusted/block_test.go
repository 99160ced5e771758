package untrusted_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/untrusted"
)

func TestBlockKeepsLinesAndEscapesControls(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"plain lines":            {"a\n\tb  c\n", "a\n\tb  c\n"},
		"other scripts":          {"東京\nGröße", "東京\nGröße"},
		"line breaks of Windows": {"a\r\nb", "a\nb"},
		"a line overwritten":     {"deny\rallow", "denyallow"},
		"separators":             {"a\u2028b\u0085c", "a b c"},
		"ANSI escapes":           {"\x1b[2J\x1b]0;title\x07", `\x1b[2J\x1b]0;title\x07`},
		"C1 controls":            {"a\u009b31mb", `a\u009b31mb`},
		"override of direction":  {"rm \u202e/ fr-", `rm \u202e/ fr-`},
		"backspaces":             {"deny\b\b\b\ballow", `deny\x08\x08\x08\x08allow`},
		"bytes that are no text": {"a\xff", "a\ufffd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := untrusted.Block(tc.text); got != tc.want {
				t.Errorf("Block(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}
