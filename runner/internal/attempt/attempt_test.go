package attempt

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestAnAttempt(t *testing.T) {
	p := newTestPod(t, writeTurn("a.txt", "hello"), modeltest.Turn{Text: "I wrote a.txt"})
	if code := p.run(); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	told := p.api.reported
	if len(told) != 2 || told[0].Effects != task.EffectsBegun {
		t.Fatalf("told %+v; want that effects begin, and the end", told)
	}
	end := told[1].Result
	if end == nil || !end.Committed || end.Reason != task.ReasonFinished || end.Text != "I wrote a.txt" {
		t.Fatalf("the end is %+v", end)
	}
	if len(end.Files) != 1 || end.Files[0] != (task.File{Path: "/workspace/a.txt", Size: 5}) {
		t.Errorf("files %+v", end.Files)
	}
	if last := p.termination(t); last.Result.Text != end.Text || !last.Result.Committed || last.Effects != task.EffectsBegun {
		t.Errorf("the termination message is %+v", last)
	}
	if told[1].Counts != (task.Counts{Steps: 2, ModelCalls: 2, ToolCalls: 1}) {
		t.Errorf("counts %+v", told[1].Counts)
	}
}

func TestATrivialRunIsOneWrite(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "hi"})
	p.run()
	if n := len(p.api.reported); n != 1 || p.api.reported[0].Result == nil {
		t.Errorf("%d writes, want the result alone: %+v", n, p.api.reported)
	}
}

// A runner whose pod is not recorded asks no model.
func TestARunnerThatIsNotRecordedDoesNothing(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "hi"})
	asked := 0
	p.api.answer = func(int, task.Progress) (int, string) {
		if asked++; asked <= 3 {
			if n := len(p.model.Requests()); n != 0 {
				t.Errorf("the model was asked %d times before the pod was recorded", n)
			}
			return http.StatusUnprocessableEntity, `{"details":{}}`
		}
		return http.StatusOK, ""
	}
	if code := p.run(); code != task.ExitCommitted {
		t.Errorf("exit code %d: %+v", code, p.termination(t))
	}
}

// respond is an API server that refuses some of what it is told.
type respond func(n int, p task.Progress) (status int, said string)

// fencedWhen refuses what another attempt has taken over.
func fencedWhen(when func(n int, p task.Progress) bool) respond {
	return func(n int, p task.Progress) (int, string) {
		if when(n, p) {
			return http.StatusForbidden, "fenced: attempt 2 is current"
		}
		return http.StatusOK, ""
	}
}

// failReports records the pod only after so many reports.
func failReports(reports int) respond {
	return func(int, task.Progress) (int, string) {
		if reports--; reports >= 0 {
			return http.StatusUnprocessableEntity, "testing value /status/attempt/podUID failed"
		}
		return http.StatusOK, ""
	}
}

func TestEnds(t *testing.T) {
	cases := map[string]struct {
		turns   []modeltest.Turn
		change  func(tk *task.Task, s *task.Snapshot)
		answer  respond
		code    int
		reason  task.Reason
		commits bool
	}{
		"a limit is committed": {
			turns:  []modeltest.Turn{writeTurn("a", "b"), writeTurn("b", "c")},
			change: func(tk *task.Task, _ *task.Snapshot) { tk.Limits.Steps = 1 },
			code:   task.ExitLimit, reason: task.ReasonStepLimit, commits: true,
		},
		"a provider that nobody knows is committed": {
			change: func(_ *task.Task, s *task.Snapshot) { s.Models[0].Provider = "Acme" },
			code:   task.ExitConfig, reason: task.ReasonMisconfigured, commits: true,
		},
		"a snapshot that is not the one that the task names": {
			change: func(tk *task.Task, _ *task.Snapshot) { tk.SnapshotHash = "0" },
			code:   task.ExitBadTask, reason: task.ReasonMisconfigured,
		},
		"an attempt that is fenced while it works": {
			turns:  []modeltest.Turn{writeTurn("a", "b"), {Text: "done"}},
			answer: fencedWhen(func(_ int, p task.Progress) bool { return p.Effects != "" }),
			code:   task.ExitFenced, reason: task.ReasonFenced,
		},
		"an attempt that is fenced at its end": {
			turns:  []modeltest.Turn{{Text: "done"}},
			answer: fencedWhen(func(_ int, p task.Progress) bool { return p.Result != nil }),
			code:   task.ExitFenced, reason: task.ReasonFenced,
		},
		"a report that is refused before the operator has recorded the pod": {
			turns:  []modeltest.Turn{{Text: "done"}},
			answer: failReports(3),
			code:   task.ExitCommitted, reason: task.ReasonFinished, commits: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestPod(t, tc.turns...)
			if tc.change != nil {
				tc.change(&p.task, &p.snapshot)
			}
			p.api.answer = tc.answer
			if code := p.run(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if r := p.termination(t).Result; r.Reason != tc.reason || r.Committed != tc.commits && tc.commits {
				t.Errorf("the termination message says %s (%s), want %s", r.Reason, r.Message, tc.reason)
			}
			if p.api.committed() != tc.commits {
				t.Errorf("committed: %t, want %t", p.api.committed(), tc.commits)
			}
		})
	}
}

// The log of the pod says why an attempt ended that could not begin its work.
func TestAnAttemptThatCannotBeginFinishesItsEvents(t *testing.T) {
	p := newTestPod(t)
	p.snapshot.Models[0].Provider = "Acme"
	var log bytes.Buffer
	p.Stdout = &log
	p.run()
	for _, want := range []string{`"type":"run.finished"`, `"reason":"Misconfigured"`, "Acme"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log of the pod lacks %s: %q", want, log.String())
		}
	}
}

func TestAnAttemptThatWasReplacedDoesNothing(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "done"})
	d, err := journal.Open(journal.Options{Dir: p.State, RunUID: "uid-1", Attempt: 2, Now: time.Now})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	if code := p.run(); code != task.ExitFenced {
		t.Errorf("exit code %d, want %d", code, task.ExitFenced)
	}
	if len(p.api.reported) != 0 || len(p.model.Requests()) != 0 {
		t.Errorf("it told %+v and asked %d times", p.api.reported, len(p.model.Requests()))
	}
}

func TestATextThatDoesNotFitGoesToAFile(t *testing.T) {
	long := strings.Repeat("word ", 4000)
	p := newTestPod(t, modeltest.Turn{Text: long})
	p.run()
	r := p.api.reported[len(p.api.reported)-1].Result
	if len(r.Text) > task.MaxText || len(r.Files) != 1 || !strings.Contains(r.Message, r.Files[0].Path) {
		t.Fatalf("text of %d bytes, files %+v, message %q", len(r.Text), r.Files, r.Message)
	}
	whole, err := os.ReadFile(filepath.Join(p.Workspace, textFile))
	if err != nil || string(whole) != long {
		t.Errorf("the file has %d bytes, %v", len(whole), err)
	}
	if last := p.termination(t); last.Result.Text == "" {
		t.Error("the termination message has no text at all")
	}
}

// Where others work on the same files each has a file of its own for that.
func TestATextThatDoesNotFitIsNotThatOfAnother(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: strings.Repeat("word ", 4000)})
	p.origin = t.TempDir()
	p.run()
	r := p.api.reported[len(p.api.reported)-1].Result
	if want := "/workspace/.deckhand/fix-1/result.txt"; len(r.Files) != 1 || r.Files[0].Path != want || !strings.Contains(r.Message, want) {
		t.Errorf("files %+v, message %q, want %s", r.Files, r.Message, want)
	}
}

// What a command left in the place of that file must not hold the end up.
func TestATextIsNotWrittenIntoAPipe(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: strings.Repeat("word ", 4000)})
	at := filepath.Join(p.Workspace, textFile)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), syscall.Mkfifo(at, 0o600)); err != nil {
		t.Fatal(err)
	}
	if code := p.run(); code != task.ExitCommitted {
		t.Fatalf("exit code %d", code)
	}
	r := p.api.reported[len(p.api.reported)-1].Result
	if len(r.Files) != 0 || !strings.Contains(r.Message, "is cut here") {
		t.Errorf("files %+v, message %q", r.Files, r.Message)
	}
}

func TestTheKeyIsNowhere(t *testing.T) {
	p := newTestPod(t, writeTurn("a.txt", "x"), modeltest.Turn{Text: "the key is " + secret})
	p.task.Prompt = "my key is " + secret
	var out strings.Builder
	p.Stdout = &out
	p.run()
	seen := p.allOutput(t) + out.String()
	for _, r := range p.model.Requests() {
		seen += string(r.Raw)
	}
	if strings.Contains(seen, secret) {
		t.Error("the key is in the events, the journal, the status, the termination message or a request")
	}
	if told := p.api.reported[len(p.api.reported)-1]; !strings.Contains(told.Result.Text, "‹secret:anthropic/api-key›") {
		t.Errorf("status: %+v", told)
	}
}

func TestARunThatIsToStopDoesNotBegin(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "done"})
	p.SignalsFile = filepath.Join(t.TempDir(), "signals.json")
	writeFile(t, p.SignalsFile, `{"stop":true}`)
	if code := p.run(); code != task.ExitWorkFailed {
		t.Errorf("exit code %d, want %d", code, task.ExitWorkFailed)
	}
	if r := p.termination(t).Result; r.Reason != task.ReasonStopped || !r.Committed {
		t.Errorf("ended %+v", r)
	}
	if n := len(p.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}
