package anthropic_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
)

// Any text that is cut after any UTF-16 unit arrives whole.
func TestHalvesOfSurrogatePairsAreJoined(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		thought, said := "t"+wiretest.Text(draw), "s"+wiretest.Text(draw)
		args, _ := json.Marshal(map[string]string{"a": wiretest.Text(draw)})
		pieces := func(index int, kind, field, whole string) string {
			var s strings.Builder
			for _, l := range wiretest.Literals(draw, whole) {
				s.WriteString(blockDelta(index, fmt.Sprintf(`{"type":%q,%q:%s}`, kind, field, l)))
			}
			return s.String() + blockStop(index)
		}
		got, err := collect(t, streaming(
			begin,
			blockStart(0, `{"type":"thinking","thinking":"","signature":""}`), pieces(0, "thinking_delta", "thinking", thought),
			blockStart(1, `{"type":"text","text":""}`), pieces(1, "text_delta", "text", said),
			blockStart(2, `{"type":"tool_use","id":"t","name":"x","input":{}}`), pieces(2, "input_json_delta", "partial_json", string(args)),
			end("tool_use"),
		))
		if err != nil || len(got.Calls) != 1 {
			t.Fatalf("%d calls, error %v", len(got.Calls), err)
		}
		if diff := gocmp.Diff([]string{thought, said, string(args)}, []string{got.Parts[0].Text, summarize(got).Text, got.Calls[0].Args}); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

func TestAHalfWithoutItsOtherIsReplaced(t *testing.T) {
	piece := func(index int, literal string) string {
		return blockDelta(index, `{"type":"text_delta","text":`+literal+`}`)
	}
	cases := map[string]struct{ stream, want string }{
		"a first half at the end":             {piece(0, `"a\ud83d"`), "a\ufffd"},
		"a second half at the start":          {piece(0, `"\ude00a"`), "\ufffda"},
		"in two blocks":                       {piece(0, `"a\ud83d"`) + blockStop(0) + thinking(1, "m", "s") + piece(2, `"\ude00"`), "a\ufffd\ufffd"},
		"within a piece":                      {piece(0, `"a\ud83db"`), "a\ufffdb"},
		"one half where the block begins":     {blockStart(0, `{"type":"text","text":"a\ud83d"}`) + piece(0, `"\ude00"`), "a😀"},
		"a backslash before what looks like":  {piece(0, `"a\\ud83d"`) + piece(0, `"\\ude00"`), `a\ud83d\ude00`},
		"the halves of a call after the text": {piece(0, `"a\ud83d"`) + tool(1, "x"), "a\ufffd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := collect(t, streaming(begin, tc.stream, end("end_turn")))
			if said := summarize(got).Text; said != tc.want || err != nil {
				t.Errorf("got %q, %v; want %q", said, err, tc.want)
			}
		})
	}
}

// What goes back to the provider after a pause, or as a block of its own, is
// whole too.
func TestHalvesInWhatGoesBackAreJoined(t *testing.T) {
	network, asked := in(t,
		streaming(begin,
			blockStart(0, `{"type":"text","text":""}`), blockDelta(0, `{"type":"text_delta","text":"a\ud83d"}`), blockDelta(0, `{"type":"text_delta","text":"\ude00"}`), blockStop(0),
			blockStart(1, `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}`),
			blockDelta(1, `{"type":"input_json_delta","partial_json":"{\"q\":\"\ud83d"}`), blockDelta(1, `{"type":"input_json_delta","partial_json":"\ude00\"}"}`), blockStop(1),
			blockStart(2, `{"type":"song","words":""}`), blockDelta(2, `{"type":"x_delta","words":"b\ud83d"}`), blockDelta(2, `{"type":"x_delta","words":"\ude00"}`), blockStop(2),
			end("pause_turn")),
		streaming(hi),
	)
	if _, err := collect(t, network); err != nil {
		t.Fatal(err)
	}
	sent := messages(t, (*asked)[1])
	for _, want := range []string{`"a😀"`, `{"q":"😀"}`, `"b😀"`} {
		if !strings.Contains(sent, want) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
}
