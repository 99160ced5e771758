package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// BenchmarkCompile compiles the revision of a Run, as after a restart of the operator.
func BenchmarkCompile(b *testing.B) {
	for _, nodes := range []int{3, 10, 64} {
		var text strings.Builder
		text.WriteString(review)
		for i := 1; i < nodes; i++ {
			fmt.Fprintf(&text, "- {name: n%d, agent: reviewer, when: nodes.review.output.score > %d, prompt: 'File ${{ nodes.review.output.files[0] }} for ${{ run.name }}'}\n", i, i)
		}
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			for b.Loop() {
				o := objects(b, map[string]string{"main": text.String()})
				if _, err := workflow.Of(o.Workflows["main"], o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
