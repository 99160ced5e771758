package untrusted

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Line returns text on one line that a terminal shows as it is, cut at limit bytes.
// White space is collapsed. Control characters, and characters that are invisible or
// change the direction of writing (Trojan Source, CVE-2021-42574), are escaped.
func Line(text string, limit int) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			out.WriteByte(' ')
		case unicode.Is(unicode.Variation_Selector, r): // of emoji; carries no meaning alone
		case isInvisible(r):
			out.WriteString(escaped(r))
		default:
			out.WriteRune(r)
		}
	}
	return task.Cut(strings.Join(strings.Fields(out.String()), " "), limit)
}

// Text returns text in full that a terminal shows as it is, with its lines and tabs.
// Whatever else is invisible, moves the cursor or changes the direction of writing is escaped.
func Text(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r == '\ufe0e' || r == '\ufe0f': // how an emoji looks; carries no meaning alone
		case isInvisible(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Variation_Selector):
			out.WriteString(escaped(r))
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func isInvisible(r rune) bool {
	const brailleBlank = '\u2800'
	return r == brailleBlank || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Other_Default_Ignorable_Code_Point)
}

func escaped(r rune) string {
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// quotationMarks are the characters that look like the ones that Quote writes.
const quotationMarks = "\u201c\u201d\u201e\u201f\u2033\u2036\u275d\u275e\u2760\u301d\u301e\u301f\uff02\u02ba\u02dd\u02ee\u05f4\u3003"

// Quote returns text on one line in curly quotation marks that it cannot close:
// what stands behind the second one is the operator's again.
func Quote(text string, limit int) string {
	inside := strings.Map(func(r rune) rune {
		if strings.ContainsRune(quotationMarks, r) {
			return '\''
		}
		return r
	}, Line(text, limit))
	return "“" + inside + "”"
}
