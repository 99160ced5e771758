package engine

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Each case is a conversation: what the model says, and the session that comes
// of it.
func TestConversations(t *testing.T) {
	crash := newTool("Crash", tool.Once, func(context.Context, tool.Call) (tool.Result, error) { panic("boom") })
	silent := newTool("Silent", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil })
	tools := enginetest.Toolbox{echo("Read", tool.ReadOnly), echo("Bash", tool.Once), crash, silent, ending("Finish"), ending("Reject")}
	cases := map[string]struct {
		turns  []turn
		schema string
		want   task.Reason
		told   string
	}{
		"an answer": {
			turns: []turn{says("hello")},
			want:  task.ReasonFinished,
			told:  "user: go\nassistant: hello",
		},
		"results come in call order": {
			turns: []turn{calls(`Read {"n":1}`, `Bash {"n":2}`, `Read {"n":3}`), says("ok")},
			want:  task.ReasonFinished,
			told: `user: go
assistant:  Read{"n":1} Bash{"n":2} Read{"n":3}
tool: Read{"n":1}
tool: Bash{"n":2}
tool: Read{"n":3}
assistant: ok`,
		},
		"an unknown tool is told the names of the others": {
			turns: []turn{calls(`Reed {}`), says("ok")},
			want:  task.ReasonFinished,
			told: `user: go
assistant:  Reed{}
tool: Error: Unknown tool name: 'Reed'. Available tools: Read, Bash, Crash, Silent, Finish, Reject
assistant: ok`,
		},
		"broken arguments are kept as a string and told": {
			turns: []turn{calls(`Read {"n":`), says("ok")},
			want:  task.ReasonFinished,
			told: `user: go
assistant:  Read"{\"n\":"
tool: Error: the arguments are not valid JSON
assistant: ok`,
		},
		"a tool that crashes is told": {
			turns: []turn{calls(`Crash {}`), says("ok")},
			want:  task.ReasonFinished,
			told:  "user: go\nassistant:  Crash{}\ntool: Error: the tool crashed: boom\nassistant: ok",
		},
		"an empty result is never empty": {
			turns: []turn{calls(`Silent {}`), says("ok")},
			want:  task.ReasonFinished,
			told:  "user: go\nassistant:  Silent{}\ntool: (no output)\nassistant: ok",
		},
		"the calls of a cut answer are never executed": {
			turns: []turn{{calls: []model.Call{{Name: "Crash", Args: "{}"}}, finish: step.FinishLength}, says("ok")},
			want:  task.ReasonFinished,
			told:  "user: go\nassistant:  Crash{}\ntool: Error: " + toolcall.ResultCut + "\nassistant: ok",
		},
		"finish runs last, whatever its place": {
			turns:  []turn{calls(`Finish {"a":1}`, `Read {}`)},
			schema: `{"type":"object"}`,
			want:   task.ReasonFinished,
			told:   "user: go\nassistant:  Finish{\"a\":1} Read{}\ntool: ended\ntool: Read{}",
		},
		"only the first call that ends the Run counts": {
			turns: []turn{calls(`Reject {}`, `Finish {}`)},
			want:  task.ReasonRejected,
			told:  "user: go\nassistant:  Reject{} Finish{}\ntool: ended\ntool: Error: " + toolcall.ResultEnded,
		},
		"a text where finish is asked for is answered once": {
			turns:  []turn{says("done"), calls(`Finish {"a":1}`)},
			schema: `{"type":"object"}`,
			want:   task.ReasonFinished,
			told:   "user: go\nassistant: done\nuser: " + nudgeFinish + "\nassistant:  Finish{\"a\":1}\ntool: ended",
		},
		"an output that is too large is told": {
			turns:  []turn{calls(`Finish {"a":"` + strings.Repeat("x", task.MaxOutput) + `"}`), calls("Finish {}")},
			schema: `{"type":"object"}`,
			want:   task.ReasonFinished,
		},
		"limits end the work and keep what was said": {
			turns: []turn{calls("Read {}"), calls("Read {}"), calls("Read {}")},
			want:  task.ReasonStepLimit,
		},
		"a model that cannot be reached": {
			turns: []turn{fails(&model.UnavailableError{Status: 503, Message: "busy", Final: true})},
			want:  task.ReasonModelUnavailable,
			told:  "user: go",
		},
		"a model whose window is full": {
			turns: []turn{fails(&model.ContextTooLongError{Message: "too long"})},
			want:  task.ReasonContextTooLong,
		},
		"a prompt that the provider's policy declines": {
			turns: []turn{fails(&model.RefusedError{Message: "filtered"})},
			want:  task.ReasonRejected,
			told:  "user: go",
		},
		"a key that is refused": {
			turns: []turn{fails(&model.UnauthorizedError{Status: 401, Message: "no"})},
			want:  task.ReasonMisconfigured,
		},
		"the calls of a refusal are never executed": {
			turns: []turn{{text: "I cannot", calls: []model.Call{{Name: "Crash", Args: "{}"}}, finish: step.FinishRefusal}},
			want:  task.ReasonRejected,
			told:  "user: go\nassistant: I cannot Crash{}\ntool: Error: " + toolcall.ResultRefused,
		},
		"a web page": {
			turns: []turn{fails(&model.NotAModelError{ContentType: "text/html", Message: "<html>"})},
			want:  task.ReasonMisconfigured,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestRun(tools, tc.turns...)
			s.Actor.Agent.OutputSchema = []byte(tc.schema)
			s.Task.Limits.Steps = 3
			out := s.run(t)
			if out.Reason != tc.want {
				t.Errorf("ended %s (%s), want %s", out.Reason, out.Message, tc.want)
			}
			if got := s.transcript(t); tc.told != "" && got != tc.told {
				t.Errorf("the session is\n%s\nwant\n%s", got, tc.told)
			}
			sound(t, s)
		})
	}
}

// sound asserts what holds of every session that was not interrupted: steps
// are contiguous, and each call has exactly one result, in order, before the
// model is asked again.
func sound(t *testing.T, s *testRun) {
	t.Helper()
	steps := s.steps(t)
	var due []string
	for i, st := range steps {
		if st.Seq != int64(i+1) {
			t.Errorf("step %d has number %d", i+1, st.Seq)
		}
		switch {
		case st.Role == step.RoleTool && (len(due) == 0 || due[0] != st.CallID):
			t.Errorf("a result of %s where one of %v is due", st.CallID, due)
		case st.Role == step.RoleTool:
			due = due[1:]
		case len(due) > 0:
			t.Errorf("step %d comes before the results of %v", st.Seq, due)
		}
		for _, c := range st.Calls {
			due = append(due, c.ID)
		}
	}
	if len(due) > 0 {
		t.Errorf("no results of %v", due)
	}
	state := s.state(t)
	if len(state.Results) > 0 {
		t.Errorf("results without their turn: %v", state.Results)
	}
}

func TestACallThatTakesTooLong(t *testing.T) {
	cases := map[string]func(context.Context, tool.Call) (tool.Result, error){
		"and notices is cancelled": func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		},
		"and does not notice is left behind": func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(time.Hour)
			return tool.Result{Text: "late"}, nil
		},
	}
	for name, call := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestRun(enginetest.Toolbox{newTool("Slow", tool.Once, call)}, calls("Slow {}"), says("ok"))
				if out := s.run(t); out.Reason != task.ReasonFinished {
					t.Errorf("ended %s: %s", out.Reason, out.Message)
				}
				if got, want := s.steps(t)[2].Text(), "Error: "+toolcall.ResultTimeout(toolcall.DefaultTimeout); got != want {
					t.Errorf("result %q, want %q", got, want)
				}
				time.Sleep(2 * time.Hour) // the late one comes and changes nothing
				sound(t, s)
			})
		})
	}
}

func TestEffectsAreReportedBeforeTheyBegin(t *testing.T) {
	var s *testRun
	seen := ""
	bash := newTool("Bash", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
		seen = s.reporter.committed[len(s.reporter.committed)-1].Effects
		return tool.Result{}, nil
	})
	bash.Concurrency = tool.Sequential
	s = newTestRun(enginetest.Toolbox{bash, echo("Read", tool.ReadOnly)}, calls("Read {}"), calls("Bash {}", "Bash {}"), calls("Bash {}"), says("ok"))
	out := s.run(t)
	if seen != task.EffectsBegun {
		t.Errorf("Bash ran while effects were %q", seen)
	}
	if got := len(s.reporter.committed); got != 1 {
		t.Errorf("%d blocking reports, want 1: that effects begin", got)
	}
	if out.Progress.Effects != task.EffectsBegun || s.reporter.reported[0].Effects != "" {
		t.Errorf("effects at the start %q, at the end %q", s.reporter.reported[0].Effects, out.Progress.Effects)
	}
}

func TestNothingHappensBeforeTheAttemptIsRecorded(t *testing.T) {
	s := newTestRun(nil, says("hello"))
	s.reporter.refuse = task.End(task.ReasonFenced, "Another attempt has taken over")
	if out := s.run(t); out.Reason != task.ReasonFenced {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	if len(s.model.asked) != 0 {
		t.Error("the model was asked")
	}
}

// A first attempt begins before a request of it is accepted, and asks before each turn until
// then.
func TestAnAttemptAsksBeforeEachTurnUntilItIsAccepted(t *testing.T) {
	fence := task.End(task.ReasonFenced, "Another attempt has taken over")
	cases := map[string]struct {
		begins []error
		turns  int
		ends   task.Reason
	}{
		"it is accepted later": {[]error{nil, nil, nil}, 3, task.ReasonFinished},
		"it is never accepted": {[]error{nil, nil, fence}, 1, task.ReasonFenced},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, calls("Read {}"), calls("Read {}"), says("ok"))
			s.reporter.begins = tc.begins
			out := s.run(t)
			if out.Reason != tc.ends || len(s.model.asked) != tc.turns || len(s.reporter.begins) > 0 {
				t.Errorf("ended %s after %d turns, want %s after %d; Begin was called %d times less", out.Reason, len(s.model.asked), tc.ends, tc.turns, len(s.reporter.begins))
			}
		})
	}
}

func TestAFencedAttemptRecordsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	fence := task.End(task.ReasonFenced, "Another attempt has taken over")
	s := newTestRun(enginetest.Toolbox{newTool("Bash", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		cancel(fence)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})}, calls("Bash {}"))
	if out := Run(ctx, s.Config); out.Reason != task.ReasonFenced {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	var last journal.Record
	for r := range s.journal.Read() {
		last = r
	}
	if last.Kind != journal.KindIntent {
		t.Errorf("the last record is %s, want the intent", last.Kind)
	}
}

func TestTheMeterGoesOnFromEarlierAttempts(t *testing.T) {
	s := newTestRun(nil, turn{text: "hi", finish: step.FinishStop, usage: step.Usage{InputTokens: 100, CacheReadTokens: 40, OutputTokens: 7, CostMicroUSD: 5, Priced: true}})
	s.Task.Meter = step.Meter{Steps: 2, ModelCalls: 3, ToolCalls: 4, ToolErrors: 1, Errors: 1, Usage: step.Usage{InputTokens: 1000, OutputTokens: 10, CostMicroUSD: 95, Priced: true}}
	p := s.run(t).Progress
	if want := (task.Counts{Steps: 3, ModelCalls: 4, ToolCalls: 4, ToolErrors: 1, Errors: 1}); p.Counts != want {
		t.Errorf("counts %+v, want %+v", p.Counts, want)
	}
	if p.Usage.TotalTokens != 1077 || p.Usage.Cost != "0.0001USD" {
		t.Errorf("usage %+v", p.Usage)
	}
}

func TestTheRequestOnlyGrowsAtItsEnd(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, calls("Read {}", "Read {}"), calls("Read {}"), calls(""), says("ok"))
	s.run(t)
	for i, req := range s.model.asked[1:] {
		before := s.model.asked[i]
		if len(req.Steps) <= len(before.Steps) {
			t.Fatalf("request %d has %d steps, the one before %d", i+1, len(req.Steps), len(before.Steps))
		}
		for j, st := range before.Steps {
			if req.Steps[j].Seq != st.Seq || req.Steps[j].Text() != st.Text() {
				t.Errorf("request %d: step %d changed", i+1, j)
			}
		}
	}
}

// stammer is a model whose first try fails and whose second breaks off behind a
// few words.
type stammer struct{}

func (stammer) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, d := range []model.Delta{
			{Reset: true}, // before a word
			{Text: "I th"},
			{Reset: true, Usage: &step.Usage{InputTokens: 10}},
			{Model: "another", Text: "I think."},
			{Finish: step.FinishStop, Usage: &step.Usage{InputTokens: 20, OutputTokens: 2}},
		} {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func TestAnAnswerThatBeginsAgainIsReportedAndCounted(t *testing.T) {
	s := newTestRun(nil)
	s.Actor.Model.Model = stammer{}
	out := s.run(t)
	if out.Text != "I think." {
		t.Errorf("text %q", out.Text)
	}
	if p := out.Progress; p.Counts.ModelCalls != 3 || p.Counts.Errors != 2 || p.Usage.InputTokens != 20 || p.Model != "another" {
		t.Errorf("counts %+v, usage %+v", p.Counts, p.Usage)
	}
	var told []step.EventType
	for _, e := range s.sink.types {
		if e == step.EventReset || e == step.EventTextDelta {
			told = append(told, e)
		}
	}
	if diff := cmp.Diff([]step.EventType{step.EventReset, step.EventTextDelta, step.EventReset, step.EventTextDelta}, told); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

func TestAFullDisk(t *testing.T) {
	s := newTestRun(nil, says("never"))
	s.Journal = fullAfter{Log: s.journal, n: new(int), max: 1}
	out := s.run(t)
	if out.Reason != task.ReasonStorageFull {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
}

// fullAfter is a journal on a disk with room for so many records.
type fullAfter struct {
	journal.Log
	n   *int
	max int
}

func (f fullAfter) Append(r journal.Record) error {
	if *f.n == f.max {
		return &journal.FullError{Err: errors.New("no space left on device")}
	}
	*f.n++
	return f.Log.Append(r)
}
