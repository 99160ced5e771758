package anthropic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
)

// stream is an answer of n deltas as Anthropic writes them.
func stream(n int) string {
	var b strings.Builder
	b.WriteString(begin + `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}      }

`)
	for i := range n {
		fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" some words, word %d, \\\"quoted\\\"\\n\"}%s}\n\n",
			i%1000, strings.Repeat(" ", i%12))
	}
	return b.String() + blockStop(0) + end("end_turn")
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

// BenchmarkStreamOfOthers reads the same answer as servers write it that put
// spaces elsewhere.
func BenchmarkStreamOfOthers(b *testing.B) {
	body := strings.NewReplacer(`","`, `", "`, `:{`, `: {`, `"index":`, `"index": `).Replace(stream(2000))
	wiretest.BenchmarkStream(b, at(b, streaming(body)), len(body))
}
