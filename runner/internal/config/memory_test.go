package config_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// pageBytes is what each of an endless session's steps brings.
const pageBytes = 2 << 10

// An endless model calls a tool again and again, and sums up what it is asked
// to. It looks at the heap now and then.
type endless struct {
	turn, end int
	// report hears what the loop reports.
	report report
	// heap is the most that the heap had in each tenth of the way.
	heap [10]uint64
	cuts int64
}

func (e *endless) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		usage := step.Usage{OutputTokens: 20}
		if req.Steps[len(req.Steps)-1].Text() == compaction.SummaryPrompt {
			e.cuts++
			yield(model.Delta{Text: fmt.Sprintf("Summary %d.", e.cuts), Usage: &usage, Finish: step.FinishStop}, nil)
			return
		}
		if e.turn++; e.turn%(e.end/100) == 0 {
			tenth := min(e.turn*10/e.end, 9)
			e.heap[tenth] = max(e.heap[tenth], heap())
		}
		if e.turn == e.end {
			yield(model.Delta{Text: "done", Usage: &usage, Finish: step.FinishStop}, nil)
			return
		}
		args := fmt.Sprintf(`{"page":%d}`, e.turn)
		yield(model.Delta{Call: &model.CallDelta{Name: "page", Args: args}, Usage: &usage, Finish: step.FinishCalls}, nil)
	}
}

// heap is what is alive, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// pages returns a tool of many pages.
func pages() tool.Tool {
	return tool.Tool{
		Spec: tool.Spec{
			Name: "page", Description: "Reads a page.", Input: json.RawMessage(`{"type":"object","properties":{"page":{"type":"integer"}}}`),
			Effect: tool.ReadOnly,
		},
		Call: func(_ context.Context, c tool.Call) (tool.Result, error) {
			return tool.Result{Text: strings.Repeat(string(c.Args), pageBytes/len(c.Args))}, nil
		},
	}
}

// A sink takes what the loop tells and keeps nothing of it, as a disk does not
// keep it in memory.
type sink struct{}

func (sink) Emit(step.Scope, string, events.Payload) {}

func (sink) Append(journal.Record) error { return nil }

func (sink) Read() iter.Seq2[journal.Record, error] {
	return func(func(journal.Record, error) bool) {}
}

// A report keeps the last progress, and how large any was as JSON. Parallel calls report too.
type report struct {
	mu      sync.Mutex
	last    task.Progress
	largest int
	recent  int // most steps that any listed
}

func (r *report) Report(now func() task.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = now()
	data, _ := json.Marshal(r.last) // it holds nothing that has no JSON
	r.largest, r.recent = max(r.largest, len(data)), max(r.recent, len(r.last.Recent))
}

func (*report) Accepted() bool { return true }

func (r *report) Begin(_ context.Context, now func() task.Progress) error {
	r.Report(now)
	return nil
}

func (r *report) Commit(_ context.Context, now func() task.Progress) error {
	r.Report(now)
	return nil
}

// work lets an agent that was built from a task work for so many steps.
func work(t testing.TB, steps int) *endless {
	t.Helper()
	m := &endless{end: steps}
	r := config.NewRegistry()
	addModel(t, r, "endless", func(context.Context, registry.ModelSpec) (model.Model, error) { return m, nil })
	addTool(t, r, "pages", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return []tool.Tool{pages()}, nil })
	tk, s, err := config.Read(written(func(map[string]any) {}), []byte(snapshot))
	if err != nil {
		t.Fatal(err)
	}
	tk.Limits.Steps = int64(steps) + 1
	s.Models[0] = task.Model{Name: "m", Provider: "Custom", Driver: "endless", ContextWindow: 64_000, MaxOutputTokens: 4_000}
	s.Agent.Tools = []task.Tool{{Custom: "pages"}}
	place, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	built, err := r.Build(t.Context(), config.Parts{Task: tk, Snapshot: s, Workspace: place, Key: noKey, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	c := built.Engine
	c.Journal, c.Events, c.Report, c.Redact = sink{}, sink{}, &m.report, redact.New()
	c.LowSpace, c.Now, c.Began = func() bool { return false }, time.Now, time.Now()
	out := engine.Run(t.Context(), c)
	if out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s after %d turns: %s", out.Reason, m.turn, out.Message)
	}
	m.report.Report(func() task.Progress { return out.Progress }) // as the runner commits it
	return m
}

// What was compacted is on disk alone: a session of any length takes the memory
// of what its model sees.
func TestALongSessionTakesNoMoreMemoryThanTheWindow(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory, so it runs without the race detector")
	}
	const steps = 3_000
	m := work(t, steps)
	if m.cuts < 2 {
		t.Fatalf("the session was summed up %d times: this tests nothing", m.cuts)
	}
	early, late := m.heap[2], m.heap[9]
	if grown := int64(late) - int64(early); grown > steps*pageBytes/10 {
		t.Errorf("the heap grew from %d to %d bytes while %d bytes were said", early, late, steps*pageBytes*7/10)
	}
}

// The status of a Run of 10,000 steps counts each of them, lists the last ones,
// and is no larger than that of a short one.
func TestTenThousandStepsAreCountedExactly(t *testing.T) {
	steps := int64(10_000)
	if testing.Short() {
		steps = 500
	}
	m := work(t, int(steps))
	p := m.report.last
	want := task.Counts{Steps: steps, ModelCalls: steps + m.cuts, ToolCalls: steps - 1}
	if p.Counts != want || p.Usage.OutputTokens != 20*(steps+m.cuts) {
		t.Errorf("it counts %+v and %d output tokens, want %+v and %d", p.Counts, p.Usage.OutputTokens, want, 20*(steps+m.cuts))
	}
	if m.report.recent != task.MaxRecent || m.report.largest > 16<<10 {
		t.Errorf("the status listed %d steps and had %d bytes at most", m.report.recent, m.report.largest)
	}
}

// BenchmarkTenThousandSteps is the heap of a whole agent, but for its journal,
// in the second and in the last tenth of ten thousand steps of 2 KB.
func BenchmarkTenThousandSteps(b *testing.B) {
	const steps = 10_000
	var m *endless
	for b.Loop() {
		m = work(b, steps)
	}
	b.ReportMetric(float64(m.heap[1])/1024, "heap-KiB-after-1000")
	b.ReportMetric(float64(m.heap[9])/1024, "heap-KiB-after-10000")
	b.ReportMetric(float64(m.cuts), "summaries")
}
