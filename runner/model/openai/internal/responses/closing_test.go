package responses_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// closing is the event that ends an answer, with its items.
func closing(items ...string) string {
	return `{"type":"response.completed","response":{"status":"completed","output":[` + strings.Join(items, ",") + `],"usage":{"input_tokens":7,"output_tokens":5}}}`
}

func TestClosingList(t *testing.T) {
	const reasoning = `{"type":"reasoning","id":"r"}`
	message := func(id, text string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"content":[{"type":"output_text","text":%q}]}`, id, text)
	}
	call := func(id, callID, name, args string) string {
		return fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":%q,"name":%q,"arguments":%q}`, id, callID, name, args)
	}
	hi, ls, rm := message("m", "Hi"), call("f", "c", "Ls", `{"a":1}`), call("g", "d", "Rm", `{}`)
	thought := []string{added(0, reasoning), delta("reasoning_text", 0, "Hm")}
	cases := map[string]struct {
		stream []string
		closed []string
		want   string
	}{
		"reasoning left out before a call":     {append(thought, added(1, ls), done(1, ls)), []string{ls}, "thinking Hm | Ls{\"a\":1}"},
		"reasoning left out before a message":  {append(thought, added(1, `{"type":"message","id":"m"}`), delta("output_text", 1, "Hi")), []string{hi}, "thinking Hm | text Hi"},
		"reasoning left out, all ids changed":  {append(thought, done(1, ls)), []string{call("x", "y", "Ls", `{ "a": 1 }`)}, "thinking Hm | Ls{\"a\":1}"},
		"a message that only the list has":     {thought, []string{reasoning, hi}, "thinking Hm | text Hi"},
		"a message in front of a call":         {[]string{done(1, ls)}, []string{hi, ls}, "Ls{\"a\":1} | text Hi"},
		"one index for all items":              {[]string{added(0, `{"type":"message","id":"m"}`), delta("output_text", 0, "Hi"), done(0, ls), done(0, rm)}, []string{hi, ls, rm}, "text Hi | Ls{\"a\":1} | Rm{}"},
		"one index and one id for all items":   {[]string{done(0, message("x", "A")), done(0, call("x", "c", "Ls", "")), done(0, call("", "d", "Ls", ""))}, []string{message("x", "A")}, "text A | Ls{} | Ls{}"},
		"another index at the end of a call":   {[]string{added(0, ls), done(1, ls)}, []string{ls}, "Ls{\"a\":1}"},
		"two messages at one index":            {[]string{done(0, message("m", "A")), done(0, message("n", "B"))}, []string{message("m", "A"), message("n", "B")}, "text A | text B"},
		"a call twice":                         {[]string{done(0, ls)}, []string{ls, ls}, "Ls{\"a\":1}"},
		"a call twice in an unfinished answer": {[]string{added(0, ls), added(1, `{"type":"function_call","id":"g","call_id":"d","name":"Rm","arguments":""}`)}, []string{ls, ls, rm}, "Ls{\"a\":1} | Rm{}"},
		"a call twice, not streamed":           {nil, []string{ls, rm, ls}, "Ls{\"a\":1} | Rm{}"},
		"a call twice in the stream":           {[]string{done(0, ls), done(1, ls)}, []string{ls}, "Ls{\"a\":1}"},
		"calls that share an id":               {nil, []string{ls, call("f", "c", "Ls", `{"a":2}`)}, "Ls{\"a\":1} | Ls{\"a\":2}"},
		"the first call left out of the stream, ids changed": {
			[]string{done(1, rm)}, []string{call("", "x", "Ls", `{"a":1}`), call("", "y", "Rm", `{}`)}, "Rm{} | Ls{\"a\":1}",
		},
		"calls in another order, ids changed":   {[]string{done(0, ls), done(1, rm)}, []string{call("", "x", "Rm", `{}`), call("", "y", "Ls", `{"a":1}`)}, "Ls{\"a\":1} | Rm{}"},
		"two messages streamed as one":          {[]string{delta("output_text", 0, "A"), delta("output_text", 0, "B")}, []string{message("m", "A"), message("n", "B")}, "text AB"},
		"one message streamed as two":           {[]string{done(0, message("m", "A")), done(1, message("n", "B"))}, []string{message("o", "AB")}, "text A | text B"},
		"one more message":                      {[]string{done(0, hi)}, []string{hi, message("n", "Ho")}, "text Hi | text Ho"},
		"the end of a message before a call":    {[]string{delta("output_text", 0, "H"), done(1, ls)}, []string{hi, ls}, "text H | Ls{\"a\":1} | text i"},
		"a search of the provider":              {[]string{delta("output_text", 1, "Hi")}, []string{`{"type":"web_search_call","id":"w"}`, hi}, "text Hi"},
		"ids that change, without an index":     {[]string{`{"type":"response.output_text.delta","item_id":"a","delta":"H"}`, `{"type":"response.output_text.delta","item_id":"b","delta":"i"}`}, []string{hi}, "text Hi"},
		"elements of other types":               {[]string{delta("output_text", 0, "Hi")}, []string{"7", `{}`, "null", hi}, "text Hi"},
		"a call with a name for its first time": {[]string{delta("function_call_arguments", 0, `{"a":1}`)}, []string{ls}, "Ls{\"a\":1}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(append(slices.Clone(tc.stream), closing(tc.closed...))...))
			if got := content(r); got != tc.want || err != nil {
				t.Errorf("error %v\ngot  %s\nwant %s", err, got, tc.want)
			}
		})
	}
}

// content is what an answer says and calls, in one line.
func content(r model.Response) string {
	var lines []string
	for p, call := range recorded(2, "", r).Content() {
		switch {
		case call != nil:
			lines = append(lines, call.Name+string(call.Args))
		case p.Text != "":
			lines = append(lines, string(p.Kind)+" "+p.Text)
		}
	}
	return strings.Join(lines, " | ")
}

// A drawnItem is an item of an answer of a property test.
type drawnItem struct{ id, text, callID, name, args string }

func (d drawnItem) String() string {
	if d.name == "" {
		return fmt.Sprintf(`{"type":"message","id":%q,"content":[{"text":%q}]}`, d.id, d.text)
	}
	return fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":%q,"name":%q,"arguments":%q}`, d.id, d.callID, d.name, d.args)
}

// Whatever a gateway leaves out of the stream or of the closing list, in whatever order the list
// is and whatever indexes it counts: each call is made once, and each text is there once.
func TestNoCallIsReadTwiceAndNoTextIsLost(t *testing.T) {
	for seed := range uint64(2000) {
		draw := rand.New(rand.NewPCG(seed, 28))
		events, want := drawAnswer(draw)
		r, err := collect(t, streaming(events...))
		var got []string
		for p, call := range recorded(2, "", r).Content() {
			if call != nil {
				got = append(got, call.Name+string(call.Args))
			} else if p.Kind == step.PartText && p.Text != "" {
				got = append(got, p.Text)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: error %v\ngot  %q\nwant %q\nof   %s", seed, err, got, want, strings.Join(events, "\n     "))
		}
	}
}

// drawAnswer returns the events of an answer and what it says and calls. Each item is in the stream
// or in the closing list, or in both.
func drawAnswer(draw *rand.Rand) (events, want []string) {
	var closed []string
	isOneIndex, index := draw.IntN(2) == 0, 0
	for i := range 1 + draw.IntN(6) {
		item := drawnItem{id: fmt.Sprint("i", i), text: fmt.Sprint("text ", i)}
		if draw.IntN(2) == 0 {
			item.callID, item.name, item.args = fmt.Sprint("c", i), []string{"Ls", "Rm"}[draw.IntN(2)], fmt.Sprintf(`{"n":%d}`, i)
			want = append(want, item.name+item.args)
		} else {
			want = append(want, item.text)
		}
		at := draw.IntN(3)
		if at != 0 {
			events = append(events, drawEvents(draw, index, item)...)
		}
		if at != 1 {
			closed = append(closed, item.String())
		}
		if draw.IntN(3) == 0 {
			closed = append(closed, `{"type":"reasoning","id":"`+fmt.Sprint("r", i)+`"}`)
		}
		if !isOneIndex {
			index++
		}
	}
	draw.Shuffle(len(closed), func(i, j int) { closed[i], closed[j] = closed[j], closed[i] })
	return append(events, closing(closed...)), want
}

// drawEvents returns the events of an item: its start, its pieces and its end, or some of them.
func drawEvents(draw *rand.Rand, index int, item drawnItem) []string {
	whole, head, kind, text := item, item, "output_text", item.text
	head.text, head.args = "", ""
	if item.name != "" {
		kind, text = "function_call_arguments", item.args
	}
	piece := fmt.Sprintf(`{"type":"response.%s.delta","output_index":%d,"item_id":%q,"delta":%q}`, kind, index, item.id, text)
	switch draw.IntN(3) {
	case 0:
		return []string{done(index, whole.String())}
	case 1:
		return []string{added(index, head.String()), piece}
	}
	return []string{added(index, head.String()), piece, done(index, whole.String())}
}
