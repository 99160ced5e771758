package journal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// long is a long text with all that is written with an escape.
var long = strings.Repeat("a\"b\\c/d\n\t\r\b\f\x00\x1f<é>&☃\u2028😀\ufffd", 40)

func TestDecodeRecordReadsWhatEncodingJSONReads(t *testing.T) {
	text := step.Part{Kind: step.PartText, Text: long}
	thought := step.Part{Kind: step.PartThinking, Text: long, Signature: long, Provider: json.RawMessage(`{"text":"` + strings.Repeat("x", 999) + `"}`)}
	call := step.Call{ID: "s1c1", Name: "Write", Args: json.RawMessage(`{"parts":[{"text":"` + strings.Repeat(`\"`, 999) + `"}]}`)}
	for name, r := range map[string]Record{
		"a text":                {Step: &step.Step{Seq: 1, Parts: []step.Part{text}}},
		"several, some short":   {Step: &step.Step{Parts: []step.Part{{Text: "short"}, text, {}, thought, text}, Calls: []step.Call{call, call}}},
		"texts of other places": {Step: &step.Step{CallID: long, Name: long}, Mark: &Mark{Text: long}, Hide: &Hide{Summary: long}},
		"a text behind others":  {Session: "s", Ending: &Ending{Output: json.RawMessage(`{"a":[[1,{"b":"]"}],{}],"c":"x\\"}`)}, Step: &step.Step{Seq: 1, CallID: `a\"b`, Parts: []step.Part{{Provider: json.RawMessage(`[{"text":[1,2]},3]`)}, text}}},
		"no step":               {Kind: KindMark, Mark: &Mark{Type: MarkEnded, Text: "x"}},
		"a result with all":     {Seq: 7, Kind: KindResult, Session: "s1c1", Step: &step.Step{Parts: []step.Part{text}}, Ending: &Ending{Output: json.RawMessage(`[1]`)}, Meter: &step.Meter{Steps: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, body)
		})
	}
}

// A body that nobody of us wrote is read, or refused, all the same.
func TestDecodeRecordOfWhatWeDidNotWrite(t *testing.T) {
	x := strings.Repeat("x", 600)
	part := func(text string) string { return `{"step":{"parts":[{"text":"` + text + `"}]}}` }
	for _, body := range []string{
		``, `null`, `[]`, `{`, `{}`, `{"step"`, `{"step":`, `{"step":null}`, `{"step":{}}`, `{"step":{"parts":[]}}`,
		part(x), part(x + `\u00e9\ud83d\ude00`), part(x + `\ud83d`), part(x + `\ud83dx`), part(x + `\ud83d\n`), part(x + `\ud83d\u0041`), part(x + `\ude00\ud83d`),
		part(x + `\q`), part(x + `\u00g0`), part(x + `\u+123`), part(x + `\u12`), part(x + "\n"), part("\x1f" + x), part(x + "\x7f\x80"), part(x + "\xff"), part(x + "\xed\xa0\x80"),
		`{"step":{"parts":[{"text":"` + x + `"}],"parts":[{"text":"b"}]}}`,
		`{"step":{"parts":[{"text":"` + x + `"}]},"step":{"parts":[{"kind":"k"},{"text":"b"}]}}`,
		`{"step":{"parts":[{"text":"` + x + `","text":"b"}]}}`,
		`{"step":{"parts":[{"text":"` + x + `","Text":"b"}]}}`,
		`{"step":{"parts":[{"text":"` + x + `","te\u0078t":"b"}]}}`,
		`{"step":{"Parts":[{"text":"` + x + `"}]}}`, `{"STEP":{"parts":[{"text":"` + x + `"}]}}`,
		`{"ſtep":{"parts":[]},"step":{"parts":[{"text":"` + x + `"}]}}`,
		`{"step":{"parts":[{"text":"` + x + `"},null]}}`, `{"step":{"parts":[{"text":"` + x + `"},]}}`, `{"step":{"parts":[{"text":"` + x + `"}}}`,
		`{ "step" : {"parts" : [ {"text" : "` + x + `" } ] } }`,
		part(x) + `x`, part(x) + ` `, part(x) + `{}`, `{"step":{"parts":[{"text":"` + x, `{"step":{"parts":[{"text":"` + x + `\`,
		`{"seq":"a","step":{"parts":[{"text":"` + x + `"}]}}`, `{"seq":tru,"step":{"parts":[{"text":"` + x + `"}]}}`,
		`{"mark":{"text":"a\\"},"step":{"parts":[{"text":"` + x + `"}]}}`, `{"x":[{"y":["}]"]}],"step":{"parts":[{"text":"` + x + `"}]}}`,
		`{"x":]]],"step":{"parts":[{"text":"` + x + `"}]}}`,
	} {
		wantSame(t, []byte(body))
	}
}

func wantSame(t *testing.T, body []byte) {
	t.Helper()
	var want Record
	wantErr := json.Unmarshal(body, &want)
	got, err := decodeRecord(body)
	if (err == nil) != (wantErr == nil) {
		t.Errorf("%.200q: error %v, encoding/json's is %v", body, err, wantErr)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" && err == nil {
		t.Errorf("%.200q: -want +got:\n%s", body, diff)
	}
}

// Whatever the body of a line is, it is read as encoding/json reads it.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"seq":1,"kind":"step","step":{"seq":1,"role":"user","parts":[{"kind":"text","text":"`+strings.Repeat("x", 600)+`\n\u00e9"}]}}`), uint16(0), byte(0))
	f.Add([]byte(`{"step":{"parts":[{"text":"`+strings.Repeat("y", 600)+`","Text":""},{}],"calls":[{"args":{"a":[1]}}]}}`), uint16(9), byte('"'))
	f.Fuzz(func(t *testing.T, body []byte, at uint16, c byte) {
		wantSame(t, body)
		if int(at) < len(body) { // long texts are hard to come by: spoil one that is there
			body[at] = c
			wantSame(t, body)
		}
	})
}
