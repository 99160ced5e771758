package eventlog

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// page is standard output in a test.
type page struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *page) lines(t *testing.T) []events.Line {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []events.Line
	for line := range strings.Lines(p.buf.String()) {
		var e events.Line
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
	}
	return all
}

func start(out *page, change func(*Options)) *Writer {
	o := Options{Out: out, Run: "fix-1", Attempt: 1, Mode: Full, Now: time.Now}
	if change != nil {
		change(&o)
	}
	return New(o)
}

// Each type of event has a line here: what a reader may rely on.
func TestGolden(t *testing.T) {
	all := []struct {
		message string
		payload events.Payload
	}{
		{"Attempt 1 of Agent fixer begins with 0 messages", events.RunStarted{Agent: "fixer", Model: "sonnet", Restarts: 1, Limits: task.Limits{Steps: 30}}},
		{"The runner is asked to end; nothing new begins", events.StateChanged{State: "Interrupted"}},
		{"Step s2: asking sonnet", events.StepStarted{ID: "s2", Step: 2, Kind: task.KindModel, Name: "sonnet"}},
		{"", events.ThinkingDelta{Step: 2, Text: "Hm."}},
		{"", events.TextDelta{Step: 2, Text: "Let me"}},
		{"The answer broke off and begins again", events.Reset{Step: 2}},
		{"", events.TextDelta{Step: 2, Text: "Let me look."}},
		{"assistant: Let me look.", events.StepFinished{Step: step.Step{Seq: 2, Role: step.RoleAssistant, Finish: step.FinishCalls}}},
		{"Calling Read", events.CallStarted{ID: "s2c1", Name: "Read", Args: []byte(`{"path":"a.go"}`)}},
		{"", events.CallOutput{ID: "s2c1", Text: "reading"}},
		{"Read was denied by policy rule no-reads", events.CallDenied{ID: "s2c2", Name: "Read", By: task.DeniedByPolicy, Rule: "no-reads", Step: 2}},
		{"Read: a.go", events.CallFinished{ID: "s2c1", Name: "Read", Summary: "a.go", DurationMs: 3}},
		{"Used 25 of 30 steps", events.LimitNear{Limit: "steps", Used: 25, Max: 30}},
		{"The request is sent with a change: prompt_cache_key is not sent", events.Repaired{Step: 2, Kind: "Field", Change: "prompt_cache_key is not sent"}},
		{"Model haiku is asked instead of sonnet: about 9000 tokens are not in its prompt cache", events.ModelRouted{Step: 3, From: "sonnet", To: "haiku", When: "budgetLeft.cost < 0.2", UncachedTokens: 9000, UncachedMicroUSD: 8100}},
		{"Notice to the model: go on", events.Nudged{Text: "go on"}},
		{"Messages through 8 are hidden: 90000 tokens become 12000", events.Compacted{Through: 8, Before: 90_000, After: 12_000}},
		{"Asks: which branch?", events.Pending{ID: "s4c1", Kind: task.PendingQuestion, Question: "which branch?", AskedAt: "2026-01-02T03:04:05Z"}},
		{"Decided by ann: fix-1.s4c1", events.Decided{Name: "fix-1.s4c1", Request: "s4c1", Type: task.DecisionAnswer, By: "ann"}},
		{"Agent reviewer begins", events.ChildStarted{Session: "s6c1", Agent: "reviewer", Model: "haiku"}},
		{"Agent reviewer ended: Finished", events.ChildFinished{Session: "s6c1", Agent: "reviewer", Reason: task.ReasonFinished, Counts: task.Counts{Steps: 2}}},
		{"A command was refused a connection to evil.example:443: the host is not in sandbox.egress.hosts of the Agent", events.HostRefused{Host: "evil.example", Port: 443, Reason: task.RefusedNotListed, ID: "s2c1", Step: 2}},
		{"The reader was too slow; events are missing", events.Dropped{From: 3, To: 9}},
		{"", events.File{Path: "a.txt", Size: 2, Data: []byte("hi")}},
		{"1 file of the Run is in the log. Not in the log: b.bin (too large, files may have 1 MiB in all)", events.Files{Files: []events.LoggedFile{{Path: "a.txt", Size: 2, SHA256: "8f43"}}, LeftOut: []events.LeftOutFile{{Path: "b.bin", Size: 9 << 20, Reason: events.LeftOutTooLarge}}}},
		{"Check the result", events.Warning{Text: "Check the result", Step: 1}},
		{"Finished", events.RunFinished{Reason: task.ReasonFinished, Text: "done", Output: []byte(`{"a":1}`), Counts: task.Counts{Steps: 1}}},
	}
	synctest.Test(t, func(t *testing.T) {
		out := &page{}
		w := start(out, nil)
		seen := map[step.EventType]bool{}
		for _, e := range all {
			w.Emit(scopeOf(e.payload), e.message, e.payload)
			seen[e.payload.EventType()] = true
		}
		w.Close(time.Second)
		const golden = "testdata/events.jsonl"
		if *update {
			if err := os.WriteFile(golden, out.buf.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.buf.String()); diff != "" {
			t.Errorf("lines -want +got:\n%s", diff)
		}
		for _, p := range events.Payloads {
			if !seen[p.EventType()] {
				t.Errorf("%s has no golden line: add it to this test; see AGENTS.md, \"Add an event of the log\"", p.EventType())
			}
		}
	})
}

// scopeOf is a place below the Run's own session for what comes from there.
func scopeOf(p events.Payload) step.Scope {
	switch p.(type) {
	case events.ChildStarted, events.ChildFinished:
		return step.Scope{Depth: 1, Parent: "s6c1", Agent: "reviewer"}
	}
	return step.Scope{}
}

// texts are the texts of the deltas that were written, in order.
func texts(t *testing.T, out *page) []string {
	t.Helper()
	var all []string
	for _, e := range out.lines(t) {
		var d struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		if d.Text != "" {
			all = append(all, d.Text)
		}
	}
	return all
}

func TestDeltasAreJoined(t *testing.T) {
	wide := strings.Repeat("x", 100)
	cases := map[string]struct {
		emit func(w *Writer)
		want []string
	}{
		"until they are worth a line": {
			emit: func(w *Writer) {
				for range 4 {
					w.Emit(step.Scope{}, "", events.TextDelta{Text: wide})
				}
			},
			want: []string{wide + wide + wide, wide},
		},
		"but not for long": {
			emit: func(w *Writer) {
				w.Emit(step.Scope{}, "", events.TextDelta{Text: "a"})
				time.Sleep(2 * joinFor)
				w.Emit(step.Scope{}, "", events.TextDelta{Text: "b"})
			},
			want: []string{"a", "b"},
		},
		"not over another event": {
			emit: func(w *Writer) {
				w.Emit(step.Scope{}, "", events.TextDelta{Text: "a"})
				w.Emit(step.Scope{}, "", events.Nudged{})
				w.Emit(step.Scope{}, "", events.TextDelta{Text: "b"})
			},
			want: []string{"a", "b"},
		},
		"not over another kind of text": {
			emit: func(w *Writer) {
				w.Emit(step.Scope{}, "", events.ThinkingDelta{Text: "a"})
				w.Emit(step.Scope{}, "", events.TextDelta{Text: "b"})
				w.Emit(step.Scope{}, "", events.CallOutput{ID: "1", Text: "c"})
				w.Emit(step.Scope{}, "", events.CallOutput{ID: "2", Text: "d"})
			},
			want: []string{"a", "b", "c", "d"},
		},
		"not over another session": {
			emit: func(w *Writer) {
				for _, session := range []string{"s2c1", "s2c2", "s2c1", "s2c2"} {
					w.Emit(step.Scope{Parent: session}, "", events.TextDelta{Text: session + strings.Repeat(".", joinBytes/2)})
				}
			},
			want: []string{
				"s2c1" + strings.Repeat(".", joinBytes/2),
				"s2c2" + strings.Repeat(".", joinBytes/2) + "s2c2" + strings.Repeat(".", joinBytes/2),
				"s2c1" + strings.Repeat(".", joinBytes/2),
			},
		},
		"and cut where they are too long": {
			emit: func(w *Writer) {
				w.Emit(step.Scope{}, "", events.CallOutput{ID: "1", Text: strings.Repeat("é", maxBytes/2+1)})
			},
			want: []string{strings.Repeat("é", maxBytes/2), "é"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &page{}
				w := start(out, nil)
				tc.emit(w)
				w.Close(time.Second)
				if diff := cmp.Diff(tc.want, texts(t, out)); diff != "" {
					t.Errorf("texts -want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestASecretInTwoDeltasIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &page{}
		w := start(out, func(o *Options) {
			o.Redact = redact.New(redact.Secret{Name: "s", Key: "k", Value: []byte("canary-0123")})
		})
		for _, piece := range []string{"the key is can", "ary-", "0123!"} {
			w.Emit(step.Scope{}, "", events.TextDelta{Text: piece})
			w.Emit(step.Scope{}, "saying canary-0123", events.Nudged{Text: "canary-0123"})
			time.Sleep(2 * joinFor)
		}
		w.Emit(step.Scope{}, "", events.StepFinished{})
		w.Close(time.Second)
		got := out.buf.String()
		for _, part := range []string{"canary", "ary-", "0123"} {
			if strings.Contains(got, part) {
				t.Errorf("%q is shown:\n%s", part, got)
			}
		}
		if !strings.Contains(got, "‹secret:s/k›!") {
			t.Errorf("the name of the secret is not shown:\n%s", got)
		}
	})
}

func TestModes(t *testing.T) {
	cases := map[Mode]int{Full: 3, Steps: 2, None: 0, "": 3}
	for mode, want := range cases {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &page{}
				w := start(out, func(o *Options) { o.Mode = mode })
				w.Emit(step.Scope{}, "", events.StepStarted{})
				w.Emit(step.Scope{}, "", events.TextDelta{Text: "a"})
				w.Emit(step.Scope{}, "", events.StepFinished{})
				w.Close(time.Second)
				if got := len(out.lines(t)); got != want {
					t.Errorf("%d lines, want %d", got, want)
				}
			})
		})
	}
}

// A stuck writer never returns until it is let go.
type stuck struct {
	page
	free chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.free
	return s.page.Write(b)
}

func TestASlowReaderLosesEventsAndGetsADroppedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{free: make(chan struct{})}
		w := New(Options{Out: out, Mode: Full, Now: time.Now})
		w.Emit(step.Scope{}, "", events.Nudged{})
		synctest.Wait() // until the writer is stuck, so that it empties no queue in between
		before := time.Now()
		for range queueSize + 100 {
			w.Emit(step.Scope{}, "", events.Nudged{})
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("emitting took %s", took)
		}
		close(out.free)
		synctest.Wait()
		w.Emit(step.Scope{}, "", events.Nudged{})
		w.Close(time.Minute)
		lines := out.lines(t)
		seen, gaps := int64(0), 0
		for _, e := range lines {
			if e.Type == step.EventDropped {
				gaps++
			} else if e.N != seen+1 {
				t.Errorf("event %d follows %d without a word", e.N, seen)
			}
			seen = e.N
		}
		if gaps != 1 {
			t.Errorf("%d gaps, want 1", gaps)
		}
	})
}

func TestASleepingReaderDoesNotKeepThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{free: make(chan struct{})}
		w := New(Options{Out: out, Mode: Full, Now: time.Now})
		w.Emit(step.Scope{}, "", events.Nudged{})
		before := time.Now()
		w.Close(time.Second)
		w.Emit(step.Scope{}, "", events.Nudged{}) // too late, and harmless
		if took := time.Since(before); took != time.Second {
			t.Errorf("closing took %s", took)
		}
		close(out.free)
	})
}

func TestFirst(t *testing.T) {
	if a, b, c := First(1, 0), First(1, 2), First(2, 0); a != 0 || b <= a || c <= b {
		t.Errorf("First: %d, %d, %d; want rising from 0", a, b, c)
	}
}
