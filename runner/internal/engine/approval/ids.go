package approval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// FreeID returns an id for a new request about a call, which no request had and no
// decision named before. The id of a request for approval ends in the digest of what
// would be called; a question has none.
func FreeID(call, sum string, asked []state.Asked, answered map[string]journal.Decision) string {
	for n := len(asked); ; n++ {
		id := RequestID(call, n, sum)
		_, taken := answered[id]
		if !taken && !slices.ContainsFunc(asked, func(q state.Asked) bool { return q.ID == id }) {
			return id
		}
	}
}

// MaxRequestID is the most bytes of an id that ends in a digest. A Decision on the
// request is named <run>.<id>, or <run>.<id>.2 and so on after one was refused, which
// leaves task.MaxRequest bytes for both.
const MaxRequestID = task.MaxRequest - len(".999")

// RequestID is the id of a request about a call, of which there were so many before.
// Below several agents the id of a call can be too long: then its hash stands for it.
func RequestID(call string, before int, sum string) string {
	suffix := ""
	if before > 0 {
		suffix = fmt.Sprintf("-%d", before+1)
	}
	if sum == "" {
		return call + suffix
	}
	suffix += "-" + digest.Short(sum)
	if len(call)+len(suffix) > MaxRequestID {
		call = "h" + digest.Short(task.Hash([]byte(call)))
	}
	return call + suffix
}

// CallOf returns the call that a request is about, from the id of the request. It
// does not know calls whose ids are hashed: those are in the journal.
func CallOf(request string) string {
	call, _, _ := strings.Cut(request, "-")
	return call
}

// DisplayArgs is arguments for people: in their one form, and nothing in them that
// cannot be seen.
func DisplayArgs(args json.RawMessage) string {
	canonical, err := digest.Canonical(args)
	if err != nil {
		return redact.Printable(string(args))
	}
	var out strings.Builder
	for _, r := range string(canonical) {
		if unicode.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}
