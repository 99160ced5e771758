package responses_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// stream is an answer of n pieces of text as OpenAI writes them.
func stream(n int) string {
	var b strings.Builder
	write := func(kind, fields string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, fields)
	}
	const id = "msg_06c839edbdd88254016a3c11a93e1481908acf9bbba9834b75"
	write("response.created", `"response":{"id":"resp_1","status":"in_progress","output":[]},"sequence_number":0`)
	write("response.output_item.added", `"item":{"id":"`+id+`","type":"message","status":"in_progress","content":[],"role":"assistant"},"output_index":0,"sequence_number":1`)
	for i := range n {
		write("response.output_text.delta", fmt.Sprintf(
			`"content_index":0,"delta":" word%d","item_id":"%s","logprobs":[],"obfuscation":"kQ3x9vTzAb","output_index":0,"sequence_number":%d`, i%1000, id, i+2))
	}
	write("response.completed", `"response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":10,"output_tokens":4000,"total_tokens":4010}},"sequence_number":9999`)
	return b.String()
}

func answering(text string) wiretest.RoundTrip {
	return wiretest.Answering(200, "text/event-stream", text)
}

// BenchmarkStream reads an answer from the bytes of the network to the last delta.
func BenchmarkStream(b *testing.B) {
	body := stream(2000)
	wiretest.BenchmarkStream(b, at(b, answering(body)), len(body))
}

// BenchmarkCollect assembles the same answer too.
func BenchmarkCollect(b *testing.B) {
	body := stream(2000)
	wiretest.BenchmarkCollect(b, at(b, answering(body)), len(body))
}

// BenchmarkRequest writes a request of 500 KB.
func BenchmarkRequest(b *testing.B) {
	req := *wiretest.Ask
	for i := range int64(100) {
		s := recorded(2*i+2, "m", model.Response{Calls: []model.Call{{Name: "Ls", Args: `{"path":"."}`}}})
		r := results(s)[0]
		r.Parts = []step.Part{{Kind: step.PartText, Text: strings.Repeat("if a < b && c {\n", 320)}}
		req.Steps = append(req.Steps, s, r)
	}
	m := at(b, answering(stream(1)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Stream(b.Context(), &req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
