package mcp

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// Each answer is what a server sends, in the forms of the protocol and in others, and what
// the model reads. None of them ends the session: the tool did its work.
func TestAnswersOfAllKinds(t *testing.T) {
	unknown := func(kind, raw string) string {
		return "[content " + kind + ", which cannot be shown; its JSON follows]\n" + raw
	}
	long := strings.Repeat("z", maxResult)
	cases := map[string]struct{ result, want string }{
		"a kind that is not known, beside text": {
			`{"content":[{"type":"json","json":{"a":1}},{"type":"text","text":"plain part"}]}`,
			unknown(`of type "json"`, `{"type":"json","json":{"a":1}}`) + "\nplain part",
		},
		"another kind that is not known": {
			`{"content":[{"type":"video", "uri":"https://a/b.mp4"}]}`,
			unknown(`of type "video"`, `{"type":"video","uri":"https://a/b.mp4"}`),
		},
		"a kind that is no text": {`{"content":[{"type":7}]}`, unknown("without a type", `{"type":7}`)},
		"a kind that writes lines": {
			`{"content":[{"type":"a]\n[system"}]}`, unknown(`of type "a] [system"`, `{"type":"a]\n[system"}`),
		},
		"an unknown part that is too large leaves room for the rest": {
			`{"content":[{"type":"blob","x":"` + long + `"},{"type":"text","text":"the rest"}]}`, "\nthe rest\n[cut: ",
		},
		"text that is an object":         {`{"content":[{"type":"text","text":{"a":1}}]}`, unknown(`of type "text"`, `{"type":"text","text":{"a":1}}`)},
		"a part in place of a list":      {`{"content":{"type":"text","text":"hello"}}`, "hello"},
		"text in place of a list":        {`{"content":"hello"}`, "hello"},
		"texts in place of parts":        {`{"content":["one","two"]}`, "one\ntwo"},
		"a number in place of a list":    {`{"content":7}`, unknown("without a type", "7")},
		"text in place of a result":      {`"hello"`, "[the answer is no result of a tool; its JSON follows]\n\"hello\""},
		"a list in place of a result":    {`[{"a":1}]`, "[the answer is no result of a tool; its JSON follows]\n[{\"a\":1}]"},
		"a result of an old form":        {`{"toolResult":{"a":1}}`, "[the answer has no content; its JSON follows]\n{\"toolResult\":{\"a\":1}}"},
		"text with odd annotations":      {`{"content":[{"type":"text","text":"x","annotations":{"audience":"user","priority":"high"}}]}`, "x"},
		"an image":                       {`{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"text","text":"a chart"}]}`, "[image image/png, 8 bytes]\na chart"},
		"an image that is no base64":     {`{"content":[{"type":"image","data":"%%%"},{"type":"text","text":"a chart"}]}`, "[image , 2 bytes]\n[it is not shown: it is not valid base64]\na chart"},
		"an image without data":          {`{"content":[{"type":"image","url":"https://a/b.png"}]}`, unknown(`of type "image"`, `{"type":"image","url":"https://a/b.png"}`)},
		"audio":                          {`{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}`, "[audio audio/wav, 3 bytes]\n" + notAFile},
		"a link with an odd size":        {`{"content":[{"type":"resource_link","uri":"file:///a","name":"a","size":"big"}]}`, "[resource file:///a a]"},
		"a link without a URI":           {`{"content":[{"type":"resource_link","name":"a"}]}`, unknown(`of type "resource_link"`, `{"type":"resource_link","name":"a"}`)},
		"a resource without contents":    {`{"content":[{"type":"resource","resource":{"uri":"a:b"}}]}`, unknown(`of type "resource"`, `{"type":"resource","resource":{"uri":"a:b"}}`)},
		"a resource of text":             {`{"content":[{"type":"resource","resource":{"uri":"a:b","text":"inside"}}]}`, "[resource a:b]\ninside"},
		"an empty resource":              {`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":""}}]}`, "[resource a:b, 0 bytes]\n" + notAFile},
		"a failure of an unknown kind":   {`{"isError":true,"content":[{"type":"json","json":1}]}`, "Error: " + unknown(`of type "json"`, `{"type":"json","json":1}`)},
		"a failure that says so as text": {`{"isError":"true","content":[{"type":"text","text":"no"}]}`, "Error: no"},
		"no failure":                     {`{"isError":null,"content":[{"type":"text","text":"yes"}]}`, "yes"},

		"structured content alone":                      {`{"content":[],"structuredContent":{"total":36, "ids":[9007199254740993]}}`, `{"total":36,"ids":[9007199254740993]}`},
		"structured content beside an empty text":       {`{"content":[{"type":"text","text":""}],"structuredContent":{"a":1}}`, `{"a":1}`},
		"structured content beside text":                {`{"content":[{"type":"text","text":"Found 2."}],"structuredContent":{"ids":[7,9]}}`, "Found 2.\n[structured content]\n{\"ids\":[7,9]}"},
		"structured content beside an image":            {`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}],"structuredContent":{"a":1}}`, "[image image/png, 3 bytes]\n" + notAFile + "\n[structured content]\n{\"a\":1}"},
		"structured content beside its JSON":            {`{"content":[{"type":"text","text":"{\n \"b\": 2, \"a\": 1}"}],"structuredContent":{"a":1,"b":2}}`, "{\n \"b\": 2, \"a\": 1}"},
		"structured content beside the JSON of another": {`{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":2}}`, "{\"a\":1}\n[structured content]\n{\"a\":2}"},
		"structured content that differs in a late digit": {
			`{"content":[{"type":"text","text":"{\"id\":9007199254740992}"}],"structuredContent":{"id":9007199254740993}}`,
			"{\"id\":9007199254740992}\n[structured content]\n{\"id\":9007199254740993}",
		},
		"structured content that wraps the text":  {`{"content":[{"type":"text","text":"hello"}],"structuredContent":{"result":"hello"}}`, "hello"},
		"structured content that wraps a number":  {`{"content":[{"type":"text","text":"5"}],"structuredContent":{"result":5}}`, "5"},
		"structured content that wraps the texts": {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"result":["a",{"n":1}]}}`, "a\n{\"n\":1}"},
		"structured content that has more than the text": {
			`{"content":[{"type":"text","text":"a"}],"structuredContent":{"result":["a","b"]}}`, "a\n[structured content]\n{\"result\":[\"a\",\"b\"]}",
		},
		"structured content that is a list":   {`{"content":[],"structuredContent":[1,2]}`, "[1,2]"},
		"structured content that is null":     {`{"content":[{"type":"text","text":"x"}],"structuredContent":null}`, "x"},
		"structured content of a failure":     {`{"isError":true,"content":[{"type":"text","text":"no"}],"structuredContent":{"code":7}}`, "Error: no\n[structured content]\n{\"code\":7}"},
		"an answer that nothing is known of":  {`{"_meta":{"a":1}}`, "[done; the tool answered nothing]"},
		"an answer that waits for a question": {`{"content":[{"type":"form"}],"resultType":"input_required"}`, "Error: The tool asks for something that only a person could give it here, and was not given it."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := begin(t, stdio(), scripted(only("tools/call", func(r request, say func(string)) bool {
				say(answerTo(r, tc.result))
				return true
			})))
			for range 2 {
				got := use(t, s, "do", `{}`).Render()
				if isPart := strings.HasSuffix(tc.want, ": ") && strings.Contains(got, tc.want); got != tc.want && !isPart || len(got) > maxResult+40 {
					t.Errorf("got  %.600s\nwant %s", got, tc.want)
				}
			}
			if n := s.Sandbox.(*fakeSandbox).started.Load(); n != 1 {
				t.Errorf("the session was begun %d times", n)
			}
		})
	}
}

// png begins like an image of one pixel.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"

// notAFile is the line of what models are not shown.
const notAFile = "[it is not shown: it is not an image or a PDF, and models take PNG, JPEG, GIF, WebP and PDF. Convert it to one of these]"

// What a file is, its bytes tell, whatever type the server names. The session goes on after
// each of them.
func TestImagesOfAnswersAreShown(t *testing.T) {
	large := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 4<<20)...))
	cases := map[string]struct {
		result, text string
		files        int
	}{
		"an image and a text":             {`{"content":[{"type":"text","text":"a chart"},{"type":"image","data":"` + png + `","mimeType":"image/png"}]}`, "a chart\n[image image/png, 33 bytes]", 1},
		"an image of another type":        {`{"content":[{"type":"image","data":"` + png + `","mimeType":"image/jpeg"}]}`, "[image image/jpeg, 33 bytes]", 1},
		"a resource that is a PDF":        {`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"JVBERi0xLjQK"}}]}`, "[resource a:b, 9 bytes]", 1},
		"an image of a failure":           {`{"isError":true,"content":[{"type":"image","data":"` + png + `"}]}`, "Error: [image , 33 bytes]", 1},
		"a resource that is something":    {`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"AAAA"}}]}`, "[resource a:b, 3 bytes]\n" + notAFile, 0},
		"an image that breaks off":        {`{"content":[{"type":"image","data":"` + png + `*"}]}`, "[image , 33 bytes]\n[it is not shown: it is not valid base64]", 0},
		"an image that is too large":      {`{"content":[{"type":"image","data":"` + large + `"}]}`, "[it is not shown: it has 4.0 MiB, and at most 3.75 MiB are sent. Make it smaller, or cut out what matters]", 0},
		"more images than the model sees": {`{"content":[` + strings.Repeat(`{"type":"image","data":"`+png+`"},`, 30) + `{"type":"text","text":"end"}]}`, "end\n[10 more files are not shown: at most 20 are at once]", model.MaxFiles},
		"twice as many images":            {`{"content":[` + strings.Repeat(`{"type":"image","data":"`+png+`"},`, 39) + `{"type":"image","data":"` + png + `"}]}`, "[20 more files are not shown: at most 20 are at once]", model.MaxFiles},
		"a drawing":                       {`{"content":[{"type":"image","data":"PHN2Zz48L3N2Zz4=","mimeType":"image/svg+xml"}]}`, "[image image/svg+xml, 11 bytes]\n[it is not shown: it is SVG, and models take PNG, JPEG, GIF, WebP and PDF. Convert it to one of these]", 0},
		"a bitmap":                        {`{"content":[{"type":"image","data":"Qk02AAAAAAA=","mimeType":"image/bmp"}]}`, "[it is not shown: it is BMP, and models take", 0},
		"a data URL":                      {`{"content":[{"type":"image","data":"data:image/png;base64,` + png + `","mimeType":"image/png"}]}`, "[image image/png, 33 bytes]", 1},
		"a data URL of a blob":            {`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"data:;base64,JVBERi0xLjQK"}}]}`, "[resource a:b, 9 bytes]", 1},
		"an address":                      {`{"content":[{"type":"image","data":"https://example.com/a.png"}]}`, "[it is not shown: it is not valid base64]", 0},
	}
	if testing.Short() {
		delete(cases, "an image that is too large") // takes many seconds under the race detector
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := begin(t, stdio(), scripted(only("tools/call", func(r request, say func(string)) bool {
				say(answerTo(r, tc.result))
				return true
			})))
			for range 2 {
				got := use(t, s, "do", `{}`)
				if !strings.Contains(got.Render(), tc.text) || len(got.Files) != tc.files {
					t.Errorf("got %d files and %.600s\nwant %d and %s", len(got.Files), got.Render(), tc.files, tc.text)
				}
			}
		})
	}
}

// Prompts and resources have parts of the same kinds.
func TestPromptsAndResourcesOfAllKinds(t *testing.T) {
	cases := map[string]struct{ method, home, args, result, want string }{
		"a prompt with a part that is not known": {
			methodPrompt, getPrompt, `{"name":"x"}`,
			`{"messages":[{"role":"user","content":{"type":"json","json":1}},{"role":"assistant","content":{"type":"text","text":"yes"}}]}`,
			"[user]\n[content of type \"json\", which cannot be shown; its JSON follows]\n{\"type\":\"json\",\"json\":1}\n[assistant]\nyes",
		},
		"a prompt with several parts in a message": {
			methodPrompt, getPrompt, `{"name":"x"}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`, "[user]\na\nb",
		},
		"a prompt without messages": {methodPrompt, getPrompt, `{"name":"x"}`, `{}`, "[The prompt is empty.]"},
		"a resource that is not as the protocol has it": {
			methodResource, readResource, `{"uri":"a:b"}`,
			`{"contents":[{"uri":"a:b","blob":7},{"uri":"a:b","text":"inside"}]}`,
			"[content that is no resource; its JSON follows]\n{\"uri\":\"a:b\",\"blob\":7}\n[resource a:b]\ninside",
		},
		"a resource without contents": {methodResource, readResource, `{"uri":"a:b"}`, `{"contents":[]}`, "[The resource is empty.]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := offering(t, tc.method, tc.result)
			if got := use(t, s, tc.home, tc.args).Render(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// offering is a server of resources and prompts that answers a method.
func offering(t *testing.T, method, result string) *Server {
	t.Helper()
	ts := stdio()
	ts.Resources, ts.Prompts = true, true
	return begin(t, ts, scripted(func(r request, say func(string)) bool {
		switch r.Method {
		case "initialize":
			say(answerTo(r, strings.Replace(hello, `{"tools":{}}`, `{"tools":{},"resources":{},"prompts":{}}`, 1)))
		case method:
			say(answerTo(r, result))
		}
		return true
	}))
}

func TestImagesOfPromptsAreShown(t *testing.T) {
	s := offering(t, methodPrompt, `{"messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","data":"`+png+`"}]}]}`)
	got := use(t, s, getPrompt, `{"name":"x"}`)
	if got.Render() != "[user]\nlook\n[image , 33 bytes]" || len(got.Files) != 1 {
		t.Errorf("got %d files and %q", len(got.Files), got.Render())
	}
}

func TestAnswersWithTheIDAsAString(t *testing.T) {
	s := begin(t, stdio(), scripted(only("tools/call", func(r request, say func(string)) bool {
		r.ID = []byte(`"` + string(r.ID) + `"`)
		say(answerTo(r, `{"content":[{"type":"text","text":"done"}]}`))
		return true
	})))
	if got := use(t, s, "do", `{}`).Render(); got != "done" {
		t.Errorf("got %s", got)
	}
}
