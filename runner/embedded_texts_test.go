package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// ofClusters matches the words for what a Go program does not have.
var ofClusters = regexp.MustCompile(`(?m)^.*((?i:\bsecrets?\b|\bpods?\b|PersistentVolumeClaim|ConfigMap|kubectl|podTemplate|chart|cluster|namespace|operator)|\bspec\.|of the Agent\b|\blimits\.).*$`)

// A failingModel answers each request with an error.
type failingModel struct{ err error }

// Stream implements [model.Model].
func (f failingModel) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) { yield(model.Delta{}, f.err) }
}

// fails makes the model of an Agent fail, and is its options.
func fails(a *Agent, err error) []Option {
	a.Model.Driver = "failing"
	return []Option{WithModel("failing", func(context.Context, registry.ModelSpec) (model.Model, error) { return failingModel{err}, nil })}
}

// textsOf makes a Run and returns all that a Go program reads of it: error, events and log.
func textsOf(t *testing.T, agent Agent, options ...Option) (task.Reason, string) {
	t.Helper()
	var log bytes.Buffer
	agent.Log = slog.New(slog.NewTextHandler(&log, nil))
	var texts strings.Builder
	run := New(agent, options...).Run(t.Context(), "go")
	for e := range run.Events() {
		payload, err := json.Marshal(e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		texts.WriteString(e.Message + "\n" + string(payload) + "\n")
	}
	result, err := run.Result()
	if err != nil {
		texts.WriteString(err.Error() + "\n")
	}
	texts.WriteString(result.Warning + "\n" + log.String())
	return reasonOf(err), texts.String()
}

// begun makes a Run whose journal another finds, and returns its directory.
func begun(t *testing.T, agent *Agent) {
	t.Helper()
	agent.State = t.TempDir()
	interrupted, _, answers := scripted(callsTool("Upper", `{"text":"a"}`))
	interrupted.State = agent.State
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := New(interrupted, answers, waiting(cancel, errors.New("a restart"))).Run(ctx, "go").Result(); err == nil {
		t.Fatal("it was not interrupted")
	}
}

// damage changes bytes in the middle of a journal.
func damage(t *testing.T, state string) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(state), "journal*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("the journal is not there: %v", err)
	}
	path := filepath.Join(state, files[0])
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines[1] = strings.Replace(lines[1], "{", "[", 1)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// holdsJournal gives the Agent a directory whose journal another Run holds.
func holdsJournal(t *testing.T, a *Agent) []Option {
	t.Helper()
	a.State = t.TempDir()
	dir, err := journal.Open(journal.Options{Dir: a.State, RunUID: "another", Attempt: 1, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return nil
}

// hasBinaryAgentsMD gives the Agent an AGENTS.md that is no text.
func hasBinaryAgentsMD(t *testing.T, a *Agent) []Option {
	t.Helper()
	a.Workspace, a.Tools = t.TempDir(), []task.Tool{{Builtin: "Files"}}
	if err := os.WriteFile(filepath.Join(a.Workspace, "AGENTS.md"), []byte{0, 1, 2}, 0o600); err != nil {
		t.Fatal(err)
	}
	return nil
}

// A programEnd is how a Run of a Go program ends, and what its texts have.
type programEnd struct {
	change  func(t *testing.T, a *Agent) []Option
	answers [][]model.Delta
	reason  task.Reason
	want    string
}

// check makes the Run.
func (e programEnd) check(t *testing.T) {
	answers := e.answers
	if answers == nil {
		answers = [][]model.Delta{callsTool("Upper", `{"text":"a"}`)}
	}
	agent, _, option := scripted(answers...)
	options := []Option{option}
	if e.change != nil {
		options = append(options, e.change(t, &agent)...)
	}
	reason, texts := textsOf(t, agent, options...)
	if reason != e.reason || !strings.Contains(texts, e.want) {
		t.Errorf("it ended %s, want %s: … %s\n%s", reason, e.reason, e.want, texts)
	}
	texts = strings.ReplaceAll(texts, "SecretKey", "") // the field of task.Tool
	if found := ofClusters.FindAllString(texts, -1); found != nil {
		t.Errorf("it reads %q", found)
	}
}

// A Go program has no Secret, no pod and no manifest: each end names what its caller can change.
func TestAnEmbeddedAgentReadsOfItsOwnFields(t *testing.T) {
	cut := []model.Delta{{Text: "x"}, {Finish: step.FinishLength, Usage: &step.Usage{OutputTokens: 5}}}
	cases := map[string]programEnd{
		"a journal that another Run holds": {holdsJournal, nil, task.ReasonRunnerFailed, "Another Run still uses the directory of Agent.State: wait for its end, or set Agent.State to another directory (another runner is using the state directory"},
		"a damaged journal": {func(t *testing.T, a *Agent) []Option {
			begun(t, a)
			damage(t, a.State)
			return nil
		}, nil, task.ReasonRunnerFailed, "save what you need of the directory of Agent.State, and set Agent.State to another one"},
		"a key that is there only once": {func(_ *testing.T, a *Agent) []Option {
			key, err := "sk-first", error(nil)
			a.Key = func() (given string, cause error) {
				given, cause, key, err = key, err, "", errors.New("the vault is closed")
				return given, cause
			}
			return nil
		}, nil, task.ReasonMisconfigured, "Reading Agent.Key: the vault is closed"},
		"a key that is empty later": {func(_ *testing.T, a *Agent) []Option {
			given := "sk-first"
			a.Key = func() (key string, err error) { key, given = given, ""; return key, nil }
			return nil
		}, nil, task.ReasonMisconfigured, "Agent.Key returned no key for 15s"},
		"a key that is refused": {func(_ *testing.T, a *Agent) []Option {
			a.Key = func() (string, error) { return "sk-wrong", nil }
			return fails(a, &model.UnauthorizedError{Status: 401, Message: "invalid key"})
		}, nil, task.ReasonMisconfigured, "check Agent.Key"},
		"no key": {func(_ *testing.T, a *Agent) []Option {
			return fails(a, &model.UnauthorizedError{Status: 401, Message: "no key"})
		}, nil, task.ReasonMisconfigured, "set Agent.Key"},
		"a request that is refused": {func(_ *testing.T, a *Agent) []Option {
			return fails(a, &model.BadRequestError{Status: 404, Message: "no such model", Refusal: model.Refusal{Cause: model.CauseModel}})
		}, nil, task.ReasonMisconfigured, "Check Agent.Model.Model, and that Agent.Model.Endpoint has the path"},
		"a model that is away": {func(_ *testing.T, a *Agent) []Option {
			return fails(a, &model.UnavailableError{Status: 503, Message: "busy"})
		}, nil, task.ReasonModelUnavailable, "Raise Agent.Limits.ModelOutageSeconds, or check its endpoint"},
		"a model that asks for a long wait": {func(_ *testing.T, a *Agent) []Option {
			a.Limits.WaitSeconds = 60
			return fails(a, &model.RateLimitedError{RetryAfter: time.Hour, Message: "come back later"})
		}, nil, task.ReasonModelUnavailable, "Raise Agent.Limits.WaitSeconds, or raise the limits at the provider"},
		"a model that is silent": {func(_ *testing.T, a *Agent) []Option {
			return fails(a, &model.TimeoutError{Field: "firstByte", After: time.Minute})
		}, nil, task.ReasonModelUnavailable, ""},
		"an endpoint with a key": {func(_ *testing.T, a *Agent) []Option {
			a.Model = task.Model{Provider: "OpenAICompatible", Model: "m", Endpoint: "https://u:hunter2@h/v1"}
			return nil
		}, nil, task.ReasonMisconfigured, "leave it out, and give it as the key of the model"},
		"a provider that does not exist": {func(_ *testing.T, a *Agent) []Option {
			a.Model.Provider = "Nobody"
			return nil
		}, nil, task.ReasonMisconfigured, `this runner has no provider "Nobody"`},
		"a limit of steps": {func(_ *testing.T, a *Agent) []Option {
			a.Limits.Steps = 1
			return []Option{WithTool("Upper", upper)}
		}, nil, task.ReasonStepLimit, "Used 1 of 1 steps; raise Agent.Limits.Steps, or give the Run less to do"},
		"a limit of the cost without prices": {func(_ *testing.T, a *Agent) []Option {
			a.Limits.CostMicroUSD = 1
			return nil
		}, nil, task.ReasonMisconfigured, "Agent.Limits.CostMicroUSD cannot be held; set Agent.Model.Prices"},
		"answers that are cut": {nil, [][]model.Delta{cut}, task.ReasonInvalidOutput, "raise Agent.Model.Params.MaxOutputTokens"},
		"a tool in a sandbox": {func(_ *testing.T, a *Agent) []Option {
			a.Tools = []task.Tool{{Builtin: "Shell"}}
			return nil
		}, nil, task.ReasonMisconfigured, "leave it out, or add a tool with WithTool"},
		"a tool with a key": {func(_ *testing.T, a *Agent) []Option {
			a.Tools = []task.Tool{{Builtin: "WebSearch", SecretKey: task.SecretKey{Secret: "tavily", Key: "k"}}}
			return nil
		}, nil, task.ReasonMisconfigured, "read the key in the function of a WithTool"},
		"an AGENTS.md that is no text": {hasBinaryAgentsMD, [][]model.Delta{saysText("done")}, "", "Correct the file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, tc.check) })
	}
}
