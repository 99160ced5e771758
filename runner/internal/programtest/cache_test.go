package programtest_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// cacheTurns is how many turns the agent has that is followed here.
const cacheTurns = 50

// wires are the Models whose share of cached input is measured, by their APIs.
var wires = map[string]task.Model{
	"OpenAICompatible": {Provider: "OpenAICompatible"},
	"Responses":        {Provider: "OpenAICompatible", API: "Responses"},
	"Anthropic":        {Provider: "Anthropic"},
}

// share is how much of the input of a whole run was read from the prompt cache,
// in percent, where the server counts the prefixes that it knows: an agent that
// reads fifty files of 1 to 7 KB, now and then two at once.
func share(t testing.TB, on task.Model) float64 {
	t.Helper()
	dialogue := modeltest.Dialogue{}
	for i := range cacheTurns - 1 {
		turn := modeltest.Turn{Thinking: "Hm.", Text: fmt.Sprintf("I look at file %d.", i), Calls: []modeltest.Call{reads(i)}}
		if i%7 == 6 {
			turn.Calls = append(turn.Calls, reads(i-3))
		}
		dialogue.Turns = append(dialogue.Turns, turn)
	}
	dialogue.Turns = append(dialogue.Turns, modeltest.Turn{Text: "I have seen them all."})
	server := httptest.NewServer(modeltest.NewServer(modeltest.Script{
		Key: key, Cache: true, Models: map[string]modeltest.Dialogue{modeltest.ModelName: dialogue},
	}))
	t.Cleanup(server.Close)
	b := newBench(t, server.URL+"/v1", func(tk *task.Task, s *task.Snapshot) {
		tk.Limits.Steps = cacheTurns
		s.Models[0].Provider, s.Models[0].API = on.Provider, on.API
	})
	for i := range cacheTurns {
		line := fmt.Appendf(nil, "This is a line of file number %d.\n", i)
		if err := os.WriteFile(filepath.Join(b.workspace, file(i)), bytes.Repeat(line, 30+i*53%170), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code := b.run(t)
	e, finished := b.end(t)
	if code != task.ExitCommitted || finished.Reason != task.ReasonFinished {
		t.Fatalf("ended %s (%s)\n%s", finished.Reason, e.Message, b.log.String())
	}
	if got := finished.Counts.Steps; got != cacheTurns {
		t.Fatalf("it took %d steps, want %d", got, cacheTurns)
	}
	return 100 * float64(finished.Usage.CacheReadTokens) / float64(finished.Usage.InputTokens)
}

func file(i int) string { return fmt.Sprintf("file-%d.txt", i) }

func reads(i int) modeltest.Call {
	return modeltest.Call{Name: "Read", Args: fmt.Appendf(nil, `{"path":%q}`, file(i))}
}

// A request only grows at its end, so nearly all of it is in the provider's
// cache: what is not is new.
func TestPromptsAreReadFromTheCache(t *testing.T) {
	for name, on := range wires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := share(t, on); got < 90 || got > 99 {
				t.Errorf("%.1f %% of the input was read from the cache, want 90 %% or more, and not what is new", got)
			}
		})
	}
}

// BenchmarkCacheRead is the same as a figure.
func BenchmarkCacheRead(b *testing.B) {
	for name, on := range wires {
		b.Run(name, func(b *testing.B) {
			total := 0.0
			for b.Loop() {
				total += share(b, on)
			}
			b.ReportMetric(total/float64(b.N), "cache-read-%")
		})
	}
}
