package engine

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A killedLog dies after so many records, as a SIGKILL would have it.
type killedLog struct {
	journal.Log

	left *int
}

func (k killedLog) Append(r journal.Record) error {
	if *k.left == 0 {
		return errKilled
	}
	*k.left--
	return k.Log.Append(r)
}

// openJournal opens the journal of a Run in a directory.
func openJournal(t *testing.T, dir, uid string, attempt int, c *journal.Continued) *journal.Dir {
	t.Helper()
	d, err := journal.Open(journal.Options{Dir: dir, RunUID: uid, Attempt: attempt, Now: time.Now, Continue: c})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// afterPrompt is a model that makes a call when it is asked for more, and then ends. Before, it answers as byLength.
type afterPrompt struct{}

func (afterPrompt) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	since := -1
	for i, s := range req.Steps {
		if s.Role == step.RoleUser && strings.HasPrefix(s.Text(), "more") {
			since = i
		}
	}
	switch {
	case since < 0:
		return byLength{}.Stream(ctx, req)
	case len(req.Steps)-since < 2:
		return (&fakeModel{turns: []turn{calls(`Bash {"n":3}`)}}).Stream(ctx, req)
	}
	return (&fakeModel{turns: []turn{calls(`Finish {"ok":true}`)}}).Stream(ctx, req)
}

// attemptOn makes one attempt on a journal.
func attemptOn(t *testing.T, log journal.Log, did effects, set func(*Config)) Outcome {
	t.Helper()
	s := newTestRun(did.tools())
	s.Journal, s.Actor.Agent.OutputSchema, s.Actor.Model.Model = log, []byte("{}"), afterPrompt{}
	set(&s.Config)
	return s.run(t)
}

// copySource copies the journal of a Run that ended to where the Run that continues it reads it.
func copySource(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(journal.SourceDir(dir), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(journal.SourceDir(dir), "lock")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// whole is how many records a Run writes if nothing kills it.
const whole = 1 << 20

// played is the journal of a Run that was killed behind a record.
func played(t *testing.T, did effects, at int) (dir string, records int) {
	t.Helper()
	dir = t.TempDir()
	d := openJournal(t, dir, "one", 1, nil)
	left := at
	attemptOn(t, killedLog{d, &left}, did, func(*Config) {})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, at - left
}

// A continuation is a Run that continues another.
type continuation struct {
	journal.Continued

	dir, prompt string
	did         effects
}

// untilDone is killed behind a record, and then works to the end.
func (c continuation) untilDone(t *testing.T, at int) (Outcome, []step.Step) {
	t.Helper()
	for attempt, left := 1, at; ; attempt, left = attempt+1, whole {
		d := openJournal(t, c.dir, "two", attempt, &c.Continued)
		out := attemptOn(t, killedLog{d, &left}, c.did, func(config *Config) {
			config.Task.Attempt, config.Task.Prompt = attempt, c.prompt
			config.Task.Continue = &task.Continue{Run: c.Run, RunUID: c.RunUID, Step: c.Step}
		})
		steps := transcriptSteps(t, d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if left > 0 {
			return out, steps
		}
	}
}

// transcriptSteps are all steps of the Run's own session, hidden ones included.
func transcriptSteps(t *testing.T, d *journal.Dir) []step.Step {
	t.Helper()
	var out []step.Step
	for s, err := range journal.Steps(d.Read(), "", 1) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// A Run is killed behind each of its records, and another continues it, which is killed behind each of its own. The
// prompt is said once, and what must not be repeated happens once, or is reported to the model as interrupted.
func TestARunThatContinuesAnotherRepeatsNothing(t *testing.T) {
	_, all := played(t, effects{}, whole)
	for source := 3; source <= all; source++ {
		for at := 1 + source%stride; at < 20; at += stride {
			did := effects{}
			dir, _ := played(t, did, source)
			c := continuation{journal.Continued{Run: "first", RunUID: "one"}, copySource(t, dir), "more", did}
			out, steps := c.untilDone(t, at)
			if problem := repeated(out, steps, did); problem != "" {
				t.Fatalf("%s; the source was killed behind record %d, the Run behind %d:\n%s", problem, source, at, transcriptOf(steps))
			}
		}
	}
}

// repeated returns what is wrong with a Run that continued another; empty: nothing.
func repeated(out Outcome, steps []step.Step, did effects) string {
	transcript := transcriptOf(steps)
	told := strings.Contains(transcript, toolcall.ResultLost)
	for n := 1; n <= 3; n++ {
		if made := did[fmt.Sprintf(`Bash{"n":%d}`, n)]; made > 1 || n == 3 && made == 0 && !told {
			return fmt.Sprintf("call %d happened %d times", n, made)
		}
	}
	said := strings.Count(transcript, "user: more")
	switch {
	case out.Reason != task.ReasonFinished:
		return "it ended " + string(out.Reason) + ": " + out.Message
	case said != 1:
		return fmt.Sprintf("the prompt was said %d times", said)
	case !rising(steps):
		return "the steps are not in their order"
	}
	return unanswered(steps)
}

// stride leaves records out, because each is written to a disk.
const stride = 6

// A fork makes every call after its step anew, once, and none before.
func TestAForkMakesTheCallsAfterItsStepAnew(t *testing.T) {
	did := effects{}
	dir, _ := played(t, did, whole)
	last := transcriptSteps(t, openJournal(t, dir, "one", 2, nil))
	for at := int64(1); at <= int64(len(last)); at++ {
		again := effects{}
		c := journal.Continued{Run: "first", RunUID: "one", Step: at}
		out, steps := continuation{c, copySource(t, dir), "more", again}.untilDone(t, whole)
		where := fmt.Sprintf("forked at %d, %v:\n%s", at, again, transcriptOf(steps))
		if out.Reason != task.ReasonFinished {
			t.Fatalf("ended %s: %s; %s", out.Reason, out.Message, where)
		}
		want := madeAgain(last[:at])
		if mustJSON(t, again) != mustJSON(t, want) {
			t.Errorf("made %v, want %v; %s", again, want, where)
		}
		if strings.Contains(transcriptOf(steps), toolcall.ResultLost) || unanswered(steps) != "" || !rising(steps) {
			t.Error(where)
		}
	}
}

// madeAgain are the effects of a Run that takes over these steps: calls without a result there, and that of its prompt.
func madeAgain(steps []step.Step) effects {
	want := effects{`Bash{"n":3}`: 1}
	last := int64(len(steps))
	for _, s := range steps {
		for i, call := range s.Calls {
			if s.Seq+int64(i)+1 > last && call.Name != "Finish" {
				want[call.Name+string(call.Args)]++
			}
		}
	}
	return want
}

func TestWhatAContinuedRunIsToldAndRefused(t *testing.T) {
	finished, _ := played(t, effects{}, whole)
	broken, records := played(t, effects{}, 6)
	before, _ := played(t, effects{}, 0)
	for name, tc := range map[string]struct {
		from, prompt string
		step         int64
		want         string
	}{
		"ended before its prompt":    {before, "more", 0, "NothingToContinue: Run first ended before its prompt was said, and has nothing to continue: create a Run with its prompt instead"},
		"finished, with a prompt":    {finished, "more", 0, "Finished"},
		"finished, without a prompt": {finished, "", 0, "Misconfigured: Run first, which is continued, ended with Finished: say what else to do, with a prompt"},
		"killed, without a prompt":   {broken, "", 0, "Finished"},
		"a fork in the middle of it": {finished, "", 2, "Finished"},
	} {
		t.Run(name, func(t *testing.T) {
			c := journal.Continued{Run: "first", RunUID: "one", Step: tc.step}
			out, steps := continuation{c, copySource(t, tc.from), tc.prompt, effects{}}.untilDone(t, whole)
			got := strings.TrimSuffix(string(out.Reason)+": "+out.Message, ": ")
			if got != tc.want {
				t.Errorf("ended %s, want %s (%d records):\n%s", got, tc.want, records, transcriptOf(steps))
			}
			if tc.want == "Finished" && !strings.Contains(transcriptOf(steps), "This continues the work of the Run first") {
				t.Errorf("the model does not know that it continues a Run:\n%s", transcriptOf(steps))
			}
		})
	}
}

// The usage of the Run before, its grants and what it was allowed are not those of the Run that continues it.
func TestARunThatContinuesAnotherCountsFromZero(t *testing.T) {
	dir, _ := played(t, effects{}, whole)
	out, _ := continuation{journal.Continued{Run: "first", RunUID: "one"}, copySource(t, dir), "more", effects{}}.untilDone(t, whole)
	if p := out.Progress; p.Counts.Steps != 2 || p.Counts.ToolCalls != 2 {
		t.Errorf("it counts %+v", p.Counts)
	}
}
