package wiretest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"
)

// Literals cuts a text after any of its UTF-16 units, as servers written in
// JavaScript or Java do, and returns the pieces as JSON strings. A half of a
// surrogate pair is written as an escape.
func Literals(draw *rand.Rand, text string) []string {
	units := utf16.Encode([]rune(text))
	var pieces []string
	for len(units) > 0 {
		n := 1 + draw.IntN(min(len(units), 4))
		pieces = append(pieces, literal(draw, units[:n]))
		units = units[n:]
	}
	return pieces
}

func literal(draw *rand.Rand, units []uint16) string {
	var out strings.Builder
	for _, u := range units {
		switch {
		case draw.IntN(3) == 0:
			fmt.Fprintf(&out, `\u%04X`, u)
		case draw.IntN(3) == 0 || utf16.IsSurrogate(rune(u)):
			fmt.Fprintf(&out, `\u%04x`, u)
		default:
			quoted, _ := json.Marshal(string(rune(u))) // a string: cannot fail
			out.Write(quoted[1 : len(quoted)-1])
		}
	}
	return `"` + out.String() + `"`
}

// Text is a random text of letters, signs that JSON escapes, and characters
// beyond the Basic Multilingual Plane.
func Text(draw *rand.Rand) string {
	alphabet := []rune(`aZ0 "\/<>` + "\n\tä日\u2028😀🦀𝄞👩‍💻\U0010ffff")
	text := make([]rune, draw.IntN(24))
	for i := range text {
		text[i] = alphabet[draw.IntN(len(alphabet))]
	}
	return string(text)
}
