package attempt

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A fakeDriver answers with what a function says, turn by turn.
type fakeDriver struct {
	turn int
	says func(turn int, key func() (string, error)) []model.Delta
	key  func() (string, error)
}

func (d *fakeDriver) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		d.turn++
		for _, delta := range d.says(d.turn, d.key) {
			if !yield(delta, nil) {
				return
			}
		}
	}
}

// withDriver makes the pod's Model one of a driver of the test's own.
func (p *testPod) withDriver(says func(turn int, key func() (string, error)) []model.Delta) option {
	p.snapshot.Models[0].Provider, p.snapshot.Models[0].Driver = "Custom", "acme"
	return withModel("acme", func(_ context.Context, s registry.ModelSpec) (model.Model, error) {
		return &fakeDriver{says: says, key: s.Key}, nil
	})
}

func callsWrite() []model.Delta {
	return []model.Delta{
		{Call: &model.CallDelta{Name: "Write", Args: `{"path":"a","content":"b"}`}},
		{Finish: step.FinishCalls, Usage: &step.Usage{InputTokens: 10, OutputTokens: 1}},
	}
}

func TestACrashOfTheRunnerTellsWhatWasDone(t *testing.T) {
	p := newTestPod(t)
	code := p.run(p.withDriver(func(turn int, _ func() (string, error)) []model.Delta {
		if turn > 1 {
			panic("boom")
		}
		return callsWrite()
	}))
	last, told := p.termination(t), p.api.reported[len(p.api.reported)-1]
	if code != task.ExitRunnerFailed || told.Result == nil || told.Result.Reason != task.ReasonRunnerFailed {
		t.Fatalf("exit code %d, told %+v", code, told)
	}
	if told.Effects != task.EffectsBegun || last.Effects != task.EffectsBegun {
		t.Errorf("effects %q in the status, %q in the termination message", told.Effects, last.Effects)
	}
	if told.Counts.ToolCalls != 1 || told.Usage.InputTokens != 10 {
		t.Errorf("counts %+v, usage %+v", told.Counts, told.Usage)
	}
}

func TestAnAttemptThatNeverBeganDoesNotReportOverOthers(t *testing.T) {
	p := newTestPod(t)
	p.Workspace = filepath.Join(t.TempDir(), "none")
	if code := p.run(); code != task.ExitRunnerFailed {
		t.Errorf("exit code %d, want %d", code, task.ExitRunnerFailed)
	}
	if r := p.termination(t).Result; r.Reason != task.ReasonRunnerFailed || len(p.api.reported) != 0 {
		t.Errorf("the termination message says %s, told %+v", r.Reason, p.api.reported)
	}
}

func TestARotatedKeyIsNowhere(t *testing.T) {
	const canary = "sk-rotated-0123456789"
	p := newTestPod(t)
	path := filepath.Join(t.TempDir(), "key")
	writeFile(t, path, secret)
	p.Key = func(task.SecretKey) func() (string, error) { return config.KeyFile(path) }
	var out strings.Builder
	p.Stdout = &out
	p.run(p.withDriver(func(turn int, key func() (string, error)) []model.Delta {
		if turn == 1 {
			return callsWrite()
		}
		writeFile(t, path, canary)
		now, err := key()
		if err != nil {
			t.Error(err)
		}
		return []model.Delta{{Text: "the key is " + now}, {Finish: step.FinishStop}}
	}))
	seen := p.allOutput(t) + out.String()
	if strings.Contains(seen, canary) {
		t.Error("the new key is in the events, the journal, the status or the termination message")
	}
	if !strings.Contains(seen, "the key is ‹secret:anthropic/api-key›") {
		t.Errorf("seen %s", seen)
	}
}

func TestAKeyThatIsEmptyForAWhileIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	w := &attempt{redact: redact.New(), Environment: Environment{Key: func(task.SecretKey) func() (string, error) { return config.KeyFile(path) }}}
	key := w.keyReader(task.SecretKey{Secret: "anthropic", Key: "api-key"})
	if _, err := key(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a key that is gone: %v", err)
	}
	writeFile(t, path, "\n")
	if _, err := key(); err == nil {
		t.Error("an empty key is taken for one")
	}
}

func TestAPathThatDoesNotFitCostsNothingElse(t *testing.T) {
	long := strings.Repeat("d", 200) + "/" + strings.Repeat("f", 100)
	p := newTestPod(t, writeTurn(long, "x"), writeTurn("short", "y"), modeltest.Turn{Text: "done"})
	p.run()
	r := p.api.reported[len(p.api.reported)-1].Result
	if r.Text != "done" || len(r.Files) != 1 || r.Files[0].Path != "/workspace/short" {
		t.Errorf("the result is %+v", r)
	}
	if _, err := os.Stat(filepath.Join(p.Workspace, long)); err != nil {
		t.Errorf("the file is not there: %v", err)
	}
}

func TestAMessageHasNoControlCharacters(t *testing.T) {
	for name, text := range map[string]string{"short": "", "with a text that goes to a file": strings.Repeat("x", task.MaxText)} {
		t.Run(name, func(t *testing.T) {
			w := &attempt{Environment: Environment{Workspace: t.TempDir()}}
			r := w.result(engine.Outcome{Reason: task.ReasonRejected, Message: "no\x1b[31m\x07", Text: text + "."})
			warned := w.result(engine.Outcome{Reason: task.ReasonFinished, Warning: "no\u202e" + strings.Repeat("x", task.MaxWarning)})
			if len(warned.Warning) > task.MaxWarning || !strings.HasPrefix(warned.Warning, "noxx") {
				t.Errorf("warning %q", warned.Warning)
			}
			if strings.ContainsAny(r.Message, "\x1b\x07") || !strings.Contains(r.Message, "no") {
				t.Errorf("message %q", r.Message)
			}
		})
	}
}

// A pod that is shut down has said all before it is killed.
func TestTheEndFitsTheGrace(t *testing.T) {
	if needs := grace - reserve + toolcall.CancelTimeout + partFor + closeFor; needs > grace-2*time.Second {
		t.Errorf("the end takes %s of %s", needs, grace)
	}
	w := &attempt{engineEnded: true}
	w.latest.Update(func(s *signals.Signals) { s.Interrupted = true })
	w.reporter = silentReporter{until: func(ctx context.Context) {
		if at, ok := ctx.Deadline(); !ok || time.Until(at) > partFor {
			t.Errorf("a result is tried until %s", at)
		}
	}}
	_ = w.commit(task.Result{Committed: true}, engine.Outcome{Reason: task.ReasonFinished})
}

// silentReporter is a reporter that nobody hears, for as long as until says.
type silentReporter struct {
	noReporter
	until func(context.Context)
}

func (d silentReporter) Commit(ctx context.Context, _ func() task.Progress) error {
	d.until(ctx)
	return nil
}
