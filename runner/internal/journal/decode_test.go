package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// long is a text that is taken out, with all that is written with an escape.
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
			e := textExtractor{in: body}
			if strings.Contains(name, "a text") || strings.Contains(name, "several") || strings.Contains(name, "result") {
				if !e.record() || len(e.texts) == 0 || !e.decode(new(Record)) {
					t.Errorf("the long texts of %.300s are not taken out", body)
				}
			}
		})
	}
}

// A body that nobody of us wrote is read, or refused, all the same.
func TestDecodeRecordOfWhatWeDidNotWrite(t *testing.T) {
	x := strings.Repeat("x", longText)
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
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Errorf("%.200q: error %v, want %v", body, err, wantErr)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" && err == nil {
		t.Errorf("%.200q: -want +got:\n%s", body, diff)
	}
}

func TestUnquoteKeepsNoMoreThanItNeeds(t *testing.T) {
	text, ok := unquote([]byte(strings.Repeat(`\u003c`, 1000)))
	if !ok || text != strings.Repeat("<", 1000) {
		t.Errorf("unquote() = %d bytes, %t", len(text), ok)
	}
}

// What is read without encoding/json is what encoding/json reads. An escape that only other programs
// write may be left to it.
func TestUnquoteReadsWhatEncodingJSONReads(t *testing.T) {
	for raw, isRead := range map[string]bool{
		``: true, `a`: true, `\n\t\r\b\f\"\\\/`: true, `a\u003cb`: true, `\u00e9`: true, `\u00E9`: true, `\u0000`: true, `\ud83d\ude00x`: true,
		`\ud83d`: true, `\ud83dx`: true, `\ud83d\n`: true, `\ud83d\u0041`: true, `\ude00\ud83d`: true, `\ud83d\`: false,
		`\`: false, `\z`: false, `\u`: false, `\u12`: false, `\u00g0`: false, `\u+123`: false, `\x0041`: false, `a\u004`: false, "\x01": false, "\xff": false,
	} {
		got, ok := unquote([]byte(raw))
		var want string
		err := json.Unmarshal([]byte(`"`+raw+`"`), &want)
		if ok != isRead || ok && (err != nil || got != want) {
			t.Errorf("%s is read as %q, %t; encoding/json reads %q, %v", raw, got, ok, want, err)
		}
	}
}

// Whatever the body of a line is, it is read as encoding/json reads it.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"seq":1,"kind":"step","step":{"seq":1,"role":"user","parts":[{"kind":"text","text":"`+strings.Repeat("x", longText)+`\n\u00e9"}]}}`), uint16(0), byte(0))
	f.Add([]byte(`{"step":{"parts":[{"text":"`+strings.Repeat("y", longText)+`","Text":""},{}],"calls":[{"args":{"a":[1]}}]}}`), uint16(9), byte('"'))
	f.Fuzz(func(t *testing.T, body []byte, at uint16, c byte) {
		wantSame(t, body)
		if int(at) < len(body) { // long texts are hard to come by: spoil one that is there
			body[at] = c
			wantSame(t, body)
		}
	})
}

func TestPlainFindsControlCharactersAnywhere(t *testing.T) {
	for c := range 0x80 {
		for at := range 17 {
			raw := []byte(strings.Repeat(" ~", 8) + " ")
			raw[at] = byte(c)
			if got, want := plain(raw), c >= 0x20; got != want {
				t.Errorf("%q: %t, want %t", raw, got, want)
			}
		}
	}
	for text, want := range map[string]bool{"": true, "é☃😀 ": true, "\x80        ": false, "☃☃☃\x00☃☃☃": false} {
		if got := plain([]byte(text)); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
