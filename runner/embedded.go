package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/attempt"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Agent configures an agent for New. Model is required. It is unstable: any version may change it, also after v1.
type Agent struct {
	// Name is the name of the agent in events and sessions; empty: agent.
	Name string
	// Instructions are the system prompt. Expressions in ${{ }} are not evaluated in them, nor in the prompt of a Run:
	// a program can insert values itself.
	Instructions string
	// Model has the fields of a Model object. Provider is a built-in provider, such as OpenAI, or Custom, with Driver
	// the name of a WithModel. Name is the name in messages, by default Model.
	Model task.Model
	// Key returns the key of the model. It is called before each request, and the value is redacted in texts. Nil: the
	// model needs none.
	Key func() (string, error)
	// Tools are the entries of spec.tools of an Agent object: Builtin, such as Files, or Custom,
	// the name of a WithTool. Nil: each WithTool.
	Tools []task.Tool
	// OutputSchema is the JSON Schema of the output; empty: the agent ends with a text.
	OutputSchema json.RawMessage
	// Limits bound one Run. Steps is 30 and Depth is 3 if they are 0; tokens and time have no
	// bound then. WaitSeconds bounds a wait that a provider asks for: seven days if it is 0.
	Limits task.Limits
	// Workspace is the directory that file tools know as /workspace; it is created. Empty: the
	// directory files of State, or without State a temporary directory, which is removed when
	// the Run ends.
	Workspace string
	// State is the directory of the journal; it is created. A Run of the same Agent with the same
	// prompt and directory continues after a crash or the end of its context, and repeats the result of
	// a Run that ended. One Run at a time can use it. Empty: a temporary directory, which is
	// removed when the Run ends.
	State string
	// Log gets the runner's log; nil: nothing is logged.
	Log *slog.Logger
}

// An Embedded is an agent within a Go program. Its files and its state are on this machine, and it needs no cluster.
//
// It is unstable: any version may change it, also after v1.
type Embedded struct {
	agent   Agent
	options []Option
}

// New returns an agent that works within this program. The options are those of Main. An invalid option or Agent is an
// error of each Run.
//
// It is unstable: any version may change it, also after v1.
func New(a Agent, options ...Option) *Embedded { return &Embedded{agent: a, options: options} }

// Run starts work on a prompt. The work begins with the first call of Events or Result, and is interrupted when ctx
// ends. Several Runs may be active at the same time.
func (e *Embedded) Run(ctx context.Context, prompt string) *Run {
	return &Run{embedded: e, ctx: ctx, prompt: prompt, ready: make(chan struct{}), done: make(chan struct{})}
}

// A Run is one piece of work of an Embedded.
type Run struct {
	embedded *Embedded
	ctx      context.Context //nolint:containedctx // it is used later than in the call that gets it
	prompt   string

	begin sync.Once
	ready chan struct{} // closed when events can be read, or never will be
	// queue has the events; nil: no caller reads them.
	queue  *pubsub.Subscription[events.Event]
	done   chan struct{}
	result Result
	err    error
}

// A Result is the result of a Run.
type Result struct {
	// Text is the complete last text of the agent, Output a value that matches OutputSchema.
	Text   string
	Output json.RawMessage
	// Files are the files that the agent wrote and that still exist, with paths below /workspace.
	Files []task.File
	// Counts and Usage are the usage of the Run.
	Counts task.Counts
	Usage  task.Usage
	// Warning describes for users which part of the work may be incomplete although the Run succeeded; empty: no part.
	Warning string
}

// maxUnread is how many events may wait for the reader.
const maxUnread = 10_000

// Events yields the events until the Run ends. Leaving the loop does not end the Run. Secrets are not redacted. If
// 10,000 events wait for the loop, further events are dropped; the Result is complete nevertheless. Events can be read
// once, and not after Result was called.
func (r *Run) Events() iter.Seq[events.Event] {
	return func(yield func(events.Event) bool) {
		r.begin.Do(func() {
			go r.work(func(feed *eventlog.Feed) {
				r.queue = feed.Subscribe(maxUnread, nil)
				close(r.ready)
			})
		})
		<-r.ready
		if r.queue == nil {
			return
		}
		defer r.queue.Close()
		for e := range r.queue.C() {
			if !yield(e) {
				return
			}
		}
	}
}

// Result waits for the end of the Run. The error is a [task.EndError] unless the agent finished its work: its Reason is
// for programs, its Message has the cause. If the context of the Run ended, the error wraps the context's cause. A
// failed Run may have a Result, too, with its last text and its usage.
func (r *Run) Result() (Result, error) {
	r.begin.Do(func() { go r.work(nil) })
	<-r.done
	return r.result, r.err
}

// work makes the attempt.
func (r *Run) work(subscribe func(*eventlog.Feed)) {
	defer func() {
		if r.queue == nil {
			close(r.ready)
		} else {
			r.queue.Close()
		}
		close(r.done)
	}()
	if r.ctx.Err() != nil {
		r.err = r.interrupted()
		return
	}
	env, remove, err := r.embedded.agent.environment(r.prompt, r.embedded.options)
	defer remove()
	if err != nil {
		r.err = err
		return
	}
	env.Subscribe = subscribe
	r.end(attempt.Run(r.ctx, env, registryOf(r.embedded.options)))
}

// end sets result and error of the Run from the end of the attempt.
func (r *Run) end(e attempt.Ending) {
	out := e.Outcome
	r.result = Result{
		Text: out.Text, Output: out.Output, Files: e.Result.Files,
		Counts: out.Progress.Counts, Usage: out.Progress.Usage, Warning: out.Warning,
	}
	switch {
	case out.Reason == task.ReasonFinished:
	case out.Reason == task.ReasonInterrupted && r.ctx.Err() != nil:
		r.err = r.interrupted()
	default:
		r.err = &task.EndError{Reason: out.Reason, Message: cmp.Or(out.Message, "the agent did not finish its work")}
	}
}

// interrupted returns the error of a Run whose context ended.
func (r *Run) interrupted() error {
	next := "Set Agent.State to continue such a Run later"
	if r.embedded.agent.State != "" {
		next = "A Run with the same prompt and the same Agent.State continues it"
	}
	cause := context.Cause(r.ctx)
	return &task.EndError{Reason: task.ReasonInterrupted, Message: fmt.Sprintf("the context of the Run ended: %v. %s", cause, next), Cause: cause}
}

// agentKey names the key of the model of an Agent in messages.
var agentKey = task.SecretKey{Secret: "runner.Agent", Key: "Key"}

// environment returns the environment of an attempt, and a function that removes its temporary directories.
func (a Agent) environment(prompt string, options []Option) (env attempt.Environment, remove func(), err error) {
	var temporary []string
	remove = func() {
		for _, dir := range temporary {
			_ = os.RemoveAll(dir)
		}
	}
	dirs := []string{a.workspace(), a.State}
	for i, dir := range dirs {
		if dir == "" {
			dirs[i], err = os.MkdirTemp("", "deckhand-")
			temporary = append(temporary, dirs[i])
		} else if err = os.MkdirAll(dir, 0o700); err == nil {
			dirs[i], err = filepath.Abs(dir)
		}
		if err != nil {
			return env, remove, task.End(task.ReasonMisconfigured, "making the directories of the agent: %w", err)
		}
	}
	registry, err := registryOf(options)()
	if err != nil {
		return env, remove, task.End(task.ReasonMisconfigured, "%w", err)
	}
	t, err := a.task(prompt, registry)
	if err != nil {
		return env, remove, err
	}
	log := a.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return attempt.Environment{
		ByHand: true, Place: place.Program, Task: t.encode, Key: a.key,
		Workspace: dirs[0], CommandDir: dirs[0], State: dirs[1],
		Stdout: io.Discard, Log: log, Now: clock.Now,
	}, remove, nil
}

// workspace returns the directory of the files; empty: a temporary one. A Run that continues finds the files
// that its journal names.
func (a Agent) workspace() string {
	if a.Workspace == "" && a.State != "" {
		return filepath.Join(a.State, "files")
	}
	return a.Workspace
}

// key reads the key of the model. No other key can be named.
func (a Agent) key(k task.SecretKey) func() (string, error) {
	if k == agentKey {
		return a.Key
	}
	return func() (string, error) {
		return "", errors.New("an Agent of a Go program has only the key of its model; read other keys in the function of WithTool")
	}
}

// check refuses settings that an agent of a Go program cannot have, with what to write instead. Settings that are
// invalid for any agent are refused when the attempt begins.
func (a Agent) check(registry *config.Registry) error {
	if a.Model.Provider == providerCustom && !slices.Contains(registry.Models(), a.Model.Driver) {
		return task.End(task.ReasonMisconfigured, "Agent.Model names the Driver %q, but New has no WithModel of that name", a.Model.Driver)
	}
	for i, t := range a.Tools {
		switch {
		case t.Custom != "" && !slices.Contains(registry.Tools(), t.Custom):
			return task.End(task.ReasonMisconfigured, "Agent.Tools[%d] names the custom tool %q, but New has no WithTool of that name", i, t.Custom)
		case task.Builtins[t.Builtin].Sandbox:
			return task.End(task.ReasonMisconfigured, "Agent.Tools[%d]: %s needs a sandbox, which an agent of a Go program does not have; leave it out, or add a tool with WithTool", i, t.Builtin)
		case t.SecretKey != (task.SecretKey{}):
			return task.End(task.ReasonMisconfigured, "Agent.Tools[%d] has a SecretKey, which an agent of a Go program cannot read; read the key in the function of a WithTool", i)
		case t.Toolset != "" || t.Agent != "":
			return task.End(task.ReasonMisconfigured, "Agent.Tools[%d] has a Toolset or an Agent, which an agent of a Go program cannot use; set Builtin or Custom", i)
		}
	}
	return nil
}

// providerCustom is the provider of models that WithModel adds.
const providerCustom = "Custom"

// task returns the Task of a prompt and the Snapshot of the agent.
func (a Agent) task(prompt string, registry *config.Registry) (*localTask, error) {
	switch {
	case prompt == "":
		return nil, task.End(task.ReasonMisconfigured, "the prompt is empty: say what the agent should do")
	case a.Model.Provider == "":
		return nil, task.End(task.ReasonMisconfigured, "Agent.Model has no Provider: set it, for example, to OpenAI with Model gpt-5-mini, or to Custom with the Driver of a WithModel")
	case a.Model.Model == "" && a.Model.Provider != providerCustom:
		return nil, task.End(task.ReasonMisconfigured, "Agent.Model has no Model: set the name by which the provider knows it, for example gpt-5-mini")
	}
	if err := a.check(registry); err != nil {
		return nil, err
	}
	model := a.Model
	model.Name, model.SecretKey = cmp.Or(model.Name, model.Model, "model"), task.SecretKey{}
	if a.Key != nil {
		model.SecretKey = agentKey
		if key, err := a.Key(); err != nil || key == "" {
			return nil, task.End(task.ReasonMisconfigured, "reading the key of the model with Agent.Key: %w", cmp.Or(err, errors.New("it is empty")))
		}
	}
	tools := a.Tools
	if tools == nil {
		for _, name := range registry.Tools() {
			tools = append(tools, task.Tool{Custom: name})
		}
	}
	name := cmp.Or(a.Name, "agent")
	t := &localTask{
		Task: task.Task{
			Prompt: template.Literal(prompt), Limits: a.Limits,
		},
		Snapshot: task.Snapshot{
			Agent:  task.Agent{Name: name, Instructions: template.Literal(a.Instructions), Tools: tools, OutputSchema: a.OutputSchema},
			Models: []task.Model{model},
		},
	}
	work, err := json.Marshal(t.Snapshot)
	if err != nil {
		return nil, task.End(task.ReasonMisconfigured, "writing the Agent as JSON: %w", err)
	}
	// A journal is continued only by the same Agent with the same prompt.
	t.Task.Run = task.Run{UID: uniqueUID(task.Hash([]byte(prompt+"\x00"+string(work))), a.State)}
	t.fillIn()
	return t, nil
}
