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

// A past is what counts of the end of a session.
type past struct {
	// turns are those with calls, the last first; outcomes are theirs, one behind
	// the other, since this is asked before every answer.
	turns    []turn
	outcomes []outcome
	// said is how often the last text was said in a row without a call.
	said   int
	saying string
	// summaries is how many there are with nothing between or after.
	summaries int
}

// A turn is what one answer of the model called, and what came of it.
type turn []outcome

type outcome struct {
	call   *step.Call
	result *step.Step
}

// look goes back from the end of a session to where it began anew.
func look(steps []step.Step) *past {
	p := &past{turns: make([]turn, 0, recent), outcomes: make([]outcome, 0, recent)}
	called, onlySummaries := false, true
	end := len(steps) // the results of an assistant's step are those up to here
	for i := len(steps) - 1; i >= 0 && !begins(&steps[i]) && len(p.turns) < recent; i-- {
		s := &steps[i]
		onlySummaries = onlySummaries && s.Note == step.NoteSummary
		switch {
		case onlySummaries:
			p.summaries++
		case s.Role != step.RoleAssistant:
			// Results are seen from their call; what is said in between by others than a
			// person breaks no circle.
		case len(s.Calls) > 0:
			called = true
			p.turns = append(p.turns, p.turnOf(s, steps[i+1:end]))
		case !called:
			called = !p.say(s)
		}
		if s.Role != step.RoleTool {
			end = i
		}
	}
	return p
}

// begins says whether a step begins anew: a person spoke, or the agent was told
// that it is stuck.
func begins(s *step.Step) bool {
	return s.Role == step.RoleUser && (s.Note == "" || s.Note == step.NoteMessage || s.Note == step.NoteStuck)
}

// say counts a text without calls; false ends the counting. An empty one is
// another trouble.
func (p *past) say(s *step.Step) bool {
	text := s.Text()
	if text == "" || p.said > 0 && text != p.saying {
		return false
	}
	p.said, p.saying = p.said+1, text
	return true
}

// achieves reports whether a turn has a success that no earlier turn has had: a
// file was changed, or something was learned.
func (p *past) achieves(i int) bool {
	for _, o := range p.turns[i] {
		if o.result.IsError || o.result.Pending {
			continue
		}
		known := slices.ContainsFunc(p.turns[i+1:], func(earlier turn) bool {
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

// turnOf ties calls to their results. A call without one is left out.
func (p *past) turnOf(s *step.Step, results []step.Step) turn {
	from := len(p.outcomes)
	for i := range s.Calls {
		c := &s.Calls[i]
		at := i // where it is, as a rule
		if at >= len(results) || results[at].CallID != c.ID {
			at = slices.IndexFunc(results, func(r step.Step) bool { return r.CallID == c.ID })
		}
		if at >= 0 {
			p.outcomes = append(p.outcomes, outcome{c, &results[at]})
		}
	}
	return slices.Clip(p.outcomes[from:])
}

// repeats is how many of the last turns are each the same as the one so many
// before it; the first ones of such a circle count too.
func (p *past) repeats(apart int, same func(a, b turn) bool) int {
	n := 0
	for n+apart < len(p.turns) && same(p.turns[n], p.turns[n+apart]) {
		n++
	}
	if n == 0 {
		return 0
	}
	return n + apart
}

// failed says whether every call of the turn did.
func (t turn) failed() bool {
	return len(t) > 0 && !slices.ContainsFunc(t, func(o outcome) bool { return !o.result.IsError })
}

// same says whether two turns called the same with the same results. Asking
// again about what still runs is no repetition.
func (t turn) same(other turn) bool {
	return !t.pending() && t.matches(other, func(a, b outcome) bool { return sameOutcome(a, b) && sameCall(a.call, b.call) })
}

func (t turn) sameCalls(other turn) bool {
	return t.matches(other, func(a, b outcome) bool { return sameCall(a.call, b.call) })
}

// manyCalls is how many calls of one turn are compared in any order; more are
// compared in theirs, because the effort grows with the square.
const manyCalls = 32

// matches says whether each outcome of one turn has its like in the other.
func (t turn) matches(other turn, like func(a, b outcome) bool) bool {
	if len(t) != len(other) || len(t) == 0 {
		return false
	}
	if slices.EqualFunc(t, other, like) {
		return true
	}
	if len(t) > manyCalls {
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
	return a.result.IsError == b.result.IsError && sameText(a.result, b.result)
}

func sameText(a, b *step.Step) bool {
	if len(a.Parts) == 1 && len(b.Parts) == 1 { // as nearly all are: nothing is copied
		return a.Parts[0].Kind == b.Parts[0].Kind && a.Parts[0].Text == b.Parts[0].Text
	}
	return a.Text() == b.Text()
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
	x, plainX := sum(a.Args)
	y, plainY := sum(b.Args)
	return (x == y || !plainX || !plainY) && bytes.Equal(canonical(a.Args), canonical(b.Args))
}

// sum adds up the hashes of the words of JSON: what means the same has the same sum,
// whatever the order of its members. Not so where escapes spell one text in several
// ways: that is not plain. It is of
// words, not of bytes: those of 12 and 21 are the same.
func sum(args json.RawMessage) (total uint64, plain bool) {
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

// names are the tools of a turn, each once, for people.
func (t turn) names() string {
	var all []string
	for _, o := range t {
		all = append(all, cut(o.call.Name))
	}
	slices.SortFunc(all, cmp.Compare)
	return cut(strings.Join(slices.Compact(all), ", "))
}

// mostWords bounds what a Finding repeats of what the model wrote.
const mostWords = 120

func cut(s string) string {
	if len(s) <= mostWords {
		return s
	}
	end := mostWords
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
