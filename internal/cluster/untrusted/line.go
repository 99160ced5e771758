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
const quotationMarks = "\u201c\u201d\u201e\u201f\u2033\u2034\u2036\u2037\u2057\u275d\u275e\u2760\u2e42\u301d\u301e\u301f\uff02\u02ba\u02dd\u02ee\u02f5\u02f6\u05f4\u3003\U0001f676\U0001f677\U0001f678"

// singleMarks are the characters two of which look like one of these.
const singleMarks = "\u2018\u2019\u201a\u201b\u2032\u2035\u275b\u275c\u02bb\u02bc\u02bd\u055a\u05f3\uff07\u02b9\u02bf"

// WithoutQuotationMarks returns text in which nothing looks like the quotation marks that Quote
// writes: it begins and ends no quotation of the operator.
func WithoutQuotationMarks(text string) string {
	runes := []rune(text)
	isSingle := func(i int) bool { return i >= 0 && i < len(runes) && strings.ContainsRune(singleMarks, runes[i]) }
	var out strings.Builder
	for i, r := range runes {
		if strings.ContainsRune(quotationMarks, r) || isSingle(i) && (isSingle(i-1) || isSingle(i+1)) {
			r = '\''
		}
		out.WriteRune(r)
	}
	return out.String()
}

// Words is [Line] for a part of a condition or an event that is not quoted, such as a name.
func Words(text string, limit int) string { return WithoutQuotationMarks(Line(text, limit)) }

// Quote returns text on one line in curly quotation marks that it cannot close:
// what stands behind the second one is the operator's again.
func Quote(text string, limit int) string { return "“" + Words(text, limit) + "”" }
