package openai_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Any text that is cut after any UTF-16 unit arrives whole.
func TestHalvesOfSurrogatePairsAreJoined(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		thinking, said := "t"+wiretest.Text(draw), "s"+wiretest.Text(draw)
		args, _ := json.Marshal(map[string]string{"a": wiretest.Text(draw)})
		other, _ := json.Marshal(map[string]string{"b": wiretest.Text(draw)})
		var lines []string
		for _, l := range wiretest.Literals(draw, thinking) {
			lines = append(lines, delta(`{"reasoning_content":`+l+`}`))
		}
		for _, l := range wiretest.Literals(draw, said) {
			lines = append(lines, delta(`{"content":`+l+`}`))
		}
		one, two := wiretest.Literals(draw, string(args)), wiretest.Literals(draw, string(other))
		lines = append(lines, tool(`{"index":0,"id":"a","function":{"name":"x"}},{"index":1,"id":"b","function":{"name":"y"}}`))
		for len(one)+len(two) > 0 { // the calls take turns
			if len(one) > 0 {
				lines, one = append(lines, tool(`{"index":0,"function":{"arguments":`+one[0]+`}}`)), one[1:]
			}
			if len(two) > 0 {
				lines, two = append(lines, tool(`{"index":1,"function":{"arguments":`+two[0]+`}}`)), two[1:]
			}
		}
		r, err := collect(t, streaming(append(lines, calls, done)...))
		if err != nil || len(r.Calls) != 2 {
			t.Fatalf("%d calls, error %v", len(r.Calls), err)
		}
		want := []string{thinking, said, string(args), string(other)}
		got := []string{text(r, step.PartThinking), text(r, step.PartText), r.Calls[0].Args, r.Calls[1].Args}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

func TestAHalfWithoutItsOtherIsReplaced(t *testing.T) {
	cases := map[string]struct {
		lines []string
		want  string
	}{
		"a first half at the end":            {[]string{delta(`{"content":"a\ud83d"}`)}, "a\ufffd"},
		"a second half at the start":         {[]string{delta(`{"content":"\ude00a"}`)}, "\ufffda"},
		"two first halves":                   {[]string{delta(`{"content":"a\ud83d"}`), delta(`{"content":"\ud83d"}`), delta(`{"content":"\ude00"}`)}, "a\ufffd😀"},
		"thinking between":                   {[]string{delta(`{"content":"a\ud83d"}`), delta(`{"reasoning_content":"m"}`), delta(`{"content":"\ude00"}`)}, "a\ufffd\ufffd"},
		"within a piece":                     {[]string{delta(`{"content":"a\ud83db"}`)}, "a\ufffdb"},
		"a backslash before what looks like": {[]string{delta(`{"content":"a\\ud83d"}`), delta(`{"content":"\\ude00"}`)}, `a\ud83d\ude00`},
		"an empty delta between":             {[]string{delta(`{"content":"a\ud83d"}`), delta(`{"content":""}`), delta(`{"content":"\ude00"}`)}, "a😀"},
		"a refusal":                          {[]string{delta(`{"refusal":"a\ud83d"}`), delta(`{"refusal":"\ude00"}`)}, "a😀"},
		"parts of content":                   {[]string{delta(`{"content":[{"type":"text","text":"a\ud83d"}]}`), delta(`{"content":[{"type":"text","text":"\ude00"}]}`)}, "a😀"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(append(tc.lines, stop, done)...))
			if got := text(r, step.PartText); got != tc.want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestHalvesInReasoningDetailsAreJoined(t *testing.T) {
	r, err := collect(t, streaming(
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":"a\ud83d"}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":"\ude00"}]}`), delta(`{"content":"Hi"}`), stop, done))
	if err != nil || len(r.Parts) != 2 {
		t.Fatalf("%+v, %v", r.Parts, err)
	}
	var kept struct {
		Details []struct{ Text string } `json:"reasoning_details"`
	}
	if err := json.Unmarshal(r.Parts[0].Provider, &kept); err != nil || len(kept.Details) != 1 || kept.Details[0].Text != "a😀" || r.Parts[0].Text != "a😀" {
		t.Errorf("got %q and %s, %v", r.Parts[0].Text, r.Parts[0].Provider, err)
	}
}
