package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// stream is an answer of n chunks as OpenAI writes them.
func stream(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,`+
			`"model":"gpt-5.4-2026-02-01","service_tier":"default","system_fingerprint":"fp_44709d6fcb",`+
			`"choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"kQ3x9vTz"}`+"\n\n", i%1000)
	}
	return b.String() + stop + "\n\n" + done
}

// BenchmarkStream reads an answer from the bytes of the network to the last
// delta.
func BenchmarkStream(b *testing.B) {
	body := stream(2000)
	wiretest.BenchmarkStream(b, at(b, streaming(body)), len(body))
}

// BenchmarkCollect assembles the same answer too.
func BenchmarkCollect(b *testing.B) {
	body := stream(2000)
	wiretest.BenchmarkCollect(b, at(b, streaming(body)), len(body))
}

// BenchmarkRequest writes a request of 500 KB.
func BenchmarkRequest(b *testing.B) {
	req := *wiretest.Ask
	for i := range int64(100) {
		id := step.CallID("", 2*i+2, 1)
		req.Steps = append(req.Steps, asks(id, "Ls", `{"path":"."}`), answers(id, strings.Repeat("if a < b && c {\n", 320)))
	}
	m := at(b, streaming(stop, done))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Stream(b.Context(), &req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
