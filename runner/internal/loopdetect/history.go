package loopdetect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A history is the part of a session that the rules examine.
type history struct {
	// turns are those with calls, the last first; outcomes are theirs, one behind
	// the other, since this is asked before every answer.
	turns    []turn
	outcomes []outcome
	// textCount is how often the last text was said in a row without a call.
	textCount int
	lastText  string
	// summaries is how many there are with nothing between or after.
	summaries int
}

// A turn is what one answer of the model called, and what came of it.
type turn []outcome

type outcome struct {
	call   *step.Call
	result *step.Step
}

// newHistory reads a session backward from its end to the last boundary.
func newHistory(steps []step.Step) *history {
	h := &history{turns: make([]turn, 0, maxTurns), outcomes: make([]outcome, 0, maxTurns)}
	called, onlySummaries := false, true
	end := len(steps) // the results of an assistant's step are those up to here
	for i := len(steps) - 1; i >= 0 && !isBoundary(&steps[i]) && len(h.turns) < maxTurns; i-- {
		s := &steps[i]
		onlySummaries = onlySummaries && s.Note == step.NoteSummary
		switch {
		case onlySummaries:
			h.summaries++
		case s.Role != step.RoleAssistant:
			// Results are seen from their call; messages in between that are not a user's
			// end no repetition.
		case len(s.Calls) > 0:
			called = true
			h.turns = append(h.turns, h.turnOf(s, steps[i+1:end]))
		case !called:
			called = !h.countText(s)
		}
		if s.Role != step.RoleTool {
			end = i
		}
	}
	return h
}

// isBoundary reports whether the examined part begins after a step: a message of a user, or
// the notice that the agent repeats itself.
func isBoundary(s *step.Step) bool {
	return s.Role == step.RoleUser && (s.Note == "" || s.Note == step.NoteMessage || s.Note == step.NoteStuck)
}

// countText counts a text without calls; false ends the counting. Empty texts
// have a rule of their own.
func (h *history) countText(s *step.Step) bool {
	text := s.Text()
	if text == "" || h.textCount > 0 && text != h.lastText {
		return false
	}
	h.textCount, h.lastText = h.textCount+1, text
	return true
}

// hasNewSuccess reports whether a turn has a success that no earlier turn has had: a
// file was changed, or something was learned.
func (h *history) hasNewSuccess(i int) bool {
	for _, o := range h.turns[i] {
		if o.result.IsError || o.result.Pending {
			continue
		}
		known := slices.ContainsFunc(h.turns[i+1:], func(earlier turn) bool {
			return slices.ContainsFunc(earlier, func(e outcome) bool { return sameOutcome(o, e) && sameCall(o.call, e.call) })
		})
		if !known {
			return true
		}
	}
	return false
}

// pending reports whether the turn asked about work that still runs.
func (t turn) pending() bool {
	return slices.ContainsFunc(t, func(o outcome) bool { return o.result.Pending })
}

// turnOf pairs calls with their results. A call without a result is left out.
func (h *history) turnOf(s *step.Step, results []step.Step) turn {
	from := len(h.outcomes)
	for i := range s.Calls {
		c := &s.Calls[i]
		at := i // where it is, as a rule
		if at >= len(results) || results[at].CallID != c.ID {
			at = slices.IndexFunc(results, func(r step.Step) bool { return r.CallID == c.ID })
		}
		if at >= 0 {
			h.outcomes = append(h.outcomes, outcome{c, &results[at]})
		}
	}
	return slices.Clip(h.outcomes[from:])
}

// repeats is how many of the last turns are each the same as the one so many
// before it; the first ones of such a cycle count too.
func (h *history) repeats(period int, same func(a, b turn) bool) int {
	n := 0
	for n+period < len(h.turns) && same(h.turns[n], h.turns[n+period]) {
		n++
	}
	if n == 0 {
		return 0
	}
	return n + period
}

// failed reports whether every call of the turn failed.
func (t turn) failed() bool {
	return len(t) > 0 && !slices.ContainsFunc(t, func(o outcome) bool { return !o.result.IsError })
}

// same reports whether two turns have the same calls with the same results. A poll of running
// work is not a repetition.
func (t turn) same(other turn) bool {
	return !t.pending() && t.matches(other, func(a, b outcome) bool { return sameOutcome(a, b) && sameCall(a.call, b.call) })
}

func (t turn) sameCalls(other turn) bool {
	return t.matches(other, func(a, b outcome) bool { return sameCall(a.call, b.call) })
}

// maxUnorderedCalls is how many calls of one turn are compared in any order; more are
// compared in theirs, because the effort grows with the square.
const maxUnorderedCalls = 32

// matches reports whether the outcomes of two turns are equal in any order.
func (t turn) matches(other turn, like func(a, b outcome) bool) bool {
	if len(t) != len(other) || len(t) == 0 {
		return false
	}
	if slices.EqualFunc(t, other, like) {
		return true
	}
	if len(t) > maxUnorderedCalls {
		return false
	}
	rest := slices.Clone(other)
	for _, a := range t {
		i := slices.IndexFunc(rest, func(b outcome) bool { return like(a, b) })
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return true
}

func sameOutcome(a, b outcome) bool {
	return a.result.IsError == b.result.IsError && sameText(a.result, b.result) && sameFiles(a.result, b.result)
}

func sameText(a, b *step.Step) bool {
	if len(a.Parts) == 1 && len(b.Parts) == 1 { // as nearly all are: nothing is copied
		return a.Parts[0].Kind == b.Parts[0].Kind && a.Parts[0].Text == b.Parts[0].Text
	}
	return a.Text() == b.Text()
}

// sameFiles compares images and documents by their bytes: the text beside two screenshots is the same.
func sameFiles(a, b *step.Step) bool {
	return slices.Equal(digests(a), digests(b))
}

func digests(s *step.Step) []string {
	var all []string
	for _, p := range s.Parts {
		if p.File != nil {
			all = append(all, p.File.Digest)
		}
	}
	return all
}

// sameCall compares the meaning of arguments, not how they are written.
func sameCall(a, b *step.Call) bool {
	if a.Name != b.Name {
		return false
	}
	if bytes.Equal(a.Args, b.Args) {
		return true
	}
	// Decoding is most of what a look back costs: mostly this says enough.
	x, plainX := wordSum(a.Args)
	y, plainY := wordSum(b.Args)
	return (x == y || !plainX || !plainY) && bytes.Equal(canonical(a.Args), canonical(b.Args))
}

// wordSum adds up the hashes of the words of JSON: what means the same has the same sum,
// whatever the order of its members. Not so where escapes spell one text in several
// ways: that is not plain. It is of
// words, not of bytes: those of 12 and 21 are the same.
func wordSum(args json.RawMessage) (total uint64, plain bool) {
	const offset, prime = 14695981039346656037, 1099511628211
	word := uint64(offset)
	for _, c := range args {
		switch c {
		case '\\':
			return 0, false
		case '{', '}', '[', ']', ',', ':', '"':
			total += word
			word = offset
		case ' ', '\t', '\r', '\n':
		default:
			word = (word ^ uint64(c)) * prime
		}
	}
	return total + word, true
}

// canonical is JSON without spaces, its members in order. Numbers stay as they
// are written.
func canonical(args json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return args
	}
	out, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return out
}

// names returns the names of the tools of a turn, for messages.
func (t turn) names() string {
	var all []string
	for _, o := range t {
		all = append(all, cut(o.call.Name))
	}
	slices.SortFunc(all, cmp.Compare)
	return cut(strings.Join(slices.Compact(all), ", "))
}

// maxQuoted bounds what a Finding repeats of what the model wrote.
const maxQuoted = 120

func cut(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	end := maxQuoted
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
