package conversation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
)

func TestLinesAreBrokenAtWords(t *testing.T) {
	delta := func(texts ...string) (log string) {
		for i, text := range texts {
			log += `{"v":1,"n":` + string(rune('1'+i)) + `,"attempt":1,"type":"text.delta","data":{"step":1,"text":"` + text + `"}}` + "\n"
		}
		return log
	}
	const width = 24
	for name, tc := range map[string]struct{ log, want string }{
		"at a blank":                       {delta("Lamps on black water, ropes creak"), "● Lamps on black water,\n  ropes creak\n"},
		"a word in pieces":                 {delta("Lamps on black wat", "er, ropes ", "creak"), "● Lamps on black water,\n  ropes creak\n"},
		"a line that is just full":         {delta("Lamps on black water,", " ropes"), "● Lamps on black water,\n  ropes\n"},
		"lines of the text stay":           {delta("one\\n\\n    two  three\\n"), "● one\n\n      two  three\n"},
		"a word that fits on no line":      {delta("see abcdefghijklmnopqrstuvwxyz"), "● see abcdefghijklmnopq\n  rstuvwxyz\n"},
		"wide characters":                  {delta("港の夜の灯りがゆれる水面"), "● 港の夜の灯りがゆれる\n  水面\n"},
		"blanks at the end of a line":      {delta("Lamps on black waters    ", "x"), "● Lamps on black waters\n  x\n"},
		"a warning":                        {`{"v":1,"n":1,"attempt":1,"type":"warning","message":"Check the result of the call"}` + "\n", "! Check the result of\n  the call\n"},
		"what the user asked":              {`{"v":1,"n":1,"attempt":1,"type":"step.finished","data":{"step":{"role":"user","parts":[{"kind":"text","text":"Write a haiku on\nlamps"}]}}}` + "\n", "▸ Write a haiku on\n  lamps\n"},
		"another agent, which is indented": {`{"v":1,"n":1,"attempt":1,"scope":{"depth":1,"parent":"s1c1"},"type":"text.delta","data":{"step":1,"text":"Keep the last line of it"}}` + "\n", "  ● Keep the last line\n    of it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := conversationOf(t, conversation.Options{Width: width, Wrap: true}, []byte(tc.log))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for _, log := range []string{"delegation", "denied", "types", "faults", "once"} {
		const width = 50
		whole := testdata(t, log+".jsonl")
		o := conversation.Options{Width: width, Wrap: true}
		want := conversationOf(t, o, whole)
		for line := range strings.Lines(want) {
			cells := 0
			for _, r := range strings.TrimRight(line, "\n") {
				cells += conversation.Cells(r)
			}
			if cells > width {
				t.Errorf("%s: %d columns: %s", log, cells, line)
			}
		}
		words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
		if log != "once" { // has a word that fits on no line
			if diff := cmp.Diff(words(conversationOf(t, conversation.Options{Width: width}, whole)), words(want)); diff != "" {
				t.Errorf("%s: words are lost (-unbroken +broken):\n%s", log, diff)
			}
		}
		var pieces [][]byte
		for rest := whole; len(rest) > 0; {
			n := min(7, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if diff := cmp.Diff(want, conversationOf(t, o, pieces...)); diff != "" {
			t.Errorf("%s: -whole +pieces:\n%s", log, diff)
		}
	}
}
