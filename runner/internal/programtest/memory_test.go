package programtest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A marathon is a model that goes on and on: each turn reads another file, and
// what is asked for a summary gives one. It remembers nothing of what it is
// asked, since it is the runner's memory that is looked at.
type marathon struct {
	turns   int // so far
	end     int // after so many
	measure func(turn int)
}

func (m *marathon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if bytes.Contains(body, []byte(compaction.SummaryPrompt[:60])) {
		answer(w, `{"content":"I read files, one after the other."}`, "stop")
		return
	}
	m.turns++
	m.measure(m.turns)
	if m.turns == m.end {
		answer(w, `{"content":"I have read enough."}`, "stop")
		return
	}
	args := strconv.Quote(fmt.Sprintf(`{"path":%q}`, file(m.turns%100)))
	answer(w, `{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"Read","arguments":`+args+`}}]}`, "tool_calls")
}

// answer is an answer in one chunk.
func answer(w io.Writer, delta, finish string) {
	fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%q}]}`+"\n\ndata: [DONE]\n\n", delta, finish)
}

// A footprint is what a program took: memory in KiB, and the processor.
type footprint struct {
	early, late, most int
	busy              time.Duration
}

// BenchmarkTenThousandSteps is the memory of the program while it waits for its
// model, after 1,000 and after 10,000 steps, each of which reads a file of 2 KB;
// its window holds about a hundred of them. It takes a while.
func BenchmarkTenThousandSteps(b *testing.B) {
	const steps = 10_000
	var seen footprint
	for b.Loop() {
		seen = marathonOf(b, steps)
	}
	b.ReportMetric(float64(seen.early)/1024, "MiB-after-1000")
	b.ReportMetric(float64(seen.late)/1024, "MiB-after-10000")
	b.ReportMetric(float64(seen.most)/1024, "MiB-RSS-at-most")
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N)/steps, "ms/step")
	b.ReportMetric(seen.busy.Seconds()*1000/steps, "cpu-ms/step")
}

func marathonOf(b *testing.B, steps int, mods ...func(*task.Task)) footprint {
	b.Helper()
	var seen footprint
	started := make(chan int, 1)
	pid := sync.OnceValue(func() int { return <-started })
	m := &marathon{end: steps, measure: func(turn int) {
		switch turn {
		case steps / 10:
			seen.early = memory(b, pid(), "smaps_rollup", "Anonymous:")
		case steps:
			seen.late, seen.most = memory(b, pid(), "smaps_rollup", "Anonymous:"), memory(b, pid(), "status", "VmHWM:")
		}
	}}
	server := httptest.NewServer(m)
	defer server.Close()
	t := newBench(b, server.URL+"/v1", func(tk *task.Task, s *task.Snapshot) {
		tk.Limits.Steps = int64(steps) + 1
		for _, mod := range mods {
			mod(tk)
		}
		s.Agent.Events = "Steps"
		s.Models[0].ContextWindow, s.Models[0].MaxOutputTokens = 64_000, 4_000
	})
	for i := range 100 {
		text := strings.Repeat(fmt.Sprintf("This is a line of file number %d.\n", i), 60)
		if err := os.WriteFile(filepath.Join(t.workspace, file(i)), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	c := t.command(b)
	c.Stdout = nil
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	started <- c.Process.Pid
	if err := c.Wait(); err != nil {
		b.Fatalf("it ended after %d turns: %v\n%s", m.turns, err, t.log.String())
	}
	seen.busy = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	return seen
}
