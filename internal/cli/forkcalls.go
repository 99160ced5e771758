package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cli/transcript"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxListedCalls is how many calls fork lists.
const maxListedCalls = 20

// readingTools are the tools of built-ins whose calls change nothing.
var readingTools = []string{"Read", "Ls", "Glob", "Grep", "Think", "WebSearch", "Browse", "Recall", "Ask", "ShellOutput", task.ToolFinish, task.ToolReject}

// A forkAsker shows which calls a fork may make again, and asks the user.
type forkAsker struct {
	f      *Factory
	client client.Client
	source *v1alpha1.Run
	// run is the fork, which does not exist yet.
	run *v1alpha1.Run
	// isTrial is whether it is not created, so that the user is not asked.
	isTrial bool
}

// ask reports whether the user wants the fork.
func (a forkAsker) ask(ctx context.Context) (bool, error) {
	after := newCallsAfter(*a.run.Spec.ContinueFrom.Step, a.source)
	err := a.read(ctx, after)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err == nil {
		err = a.check(after)
		if err != nil {
			return false, err
		}
		a.show(after)
	} else {
		fmt.Fprintf(a.f.Err, "The calls after step %d cannot be listed, because the conversation of Run %s was not read: %s\n", after.step, a.source.Name, untrusted.Line(explain(err), 1024))
	}
	if a.isTrial {
		return true, nil
	}
	if !a.f.Interactive() {
		return false, exit.Usagef("fork asks before calls are made again, and there is no terminal: add --yes")
	}
	agreed, err := a.f.Confirm(ctx, "Create the fork?", func() error { return nil })
	if err == nil && !agreed {
		fmt.Fprintln(a.f.Err, "No Run was created")
	}
	return agreed, err
}

// read reads the conversation of the source as logs does, from its pods or its volume.
func (a forkAsker) read(ctx context.Context, into *callsAfter) error {
	_, open, err := a.f.logClients()
	if err != nil {
		return err
	}
	r := &logReader{
		f: a.f, client: a.client, key: client.ObjectKeyFromObject(a.source), out: io.Discard, err: a.f.Err, last: a.source, known: map[int]bool{},
		printer: conversation.New(conversation.Options{JSON: true, Out: transcript.NewReader(transcript.Options{Lines: into.add})}),
	}
	r.pods = newPodReader(a.client, open, r.say)
	if _, err = r.readOnce(ctx); err == nil && !r.opened {
		err = r.readVolume(ctx, a.source)
	}
	err = errors.Join(err, r.printer.Close())
	if err == nil && into.last == 0 {
		err = errors.New("the log has no numbered steps: its Agent has log: None, or its beginning was lost")
	}
	return err
}

// check returns an error if the source has no such step, or if the fork has nothing to do.
func (a forkAsker) check(after *callsAfter) error {
	switch {
	case after.isWhole && after.step > after.last:
		return exit.Usagef("run %s has no step %d: its last is %d", a.source.Name, after.step, after.last)
	case after.isAnswer && a.run.Spec.Prompt == "":
		return exit.Usagef("step %d of Run %s is an answer without calls, so there is nothing left to do: say with -p what to do next", after.step, a.source.Name)
	}
	return nil
}

// show lists the calls that may be made again.
func (a forkAsker) show(after *callsAfter) {
	calls := after.list()
	if after.missing() {
		fmt.Fprintf(a.f.Err, "The log does not have all steps after step %d, so calls may be missing here.\n", after.step)
	}
	if len(calls) == 0 {
		fmt.Fprintf(a.f.Err, "Run %s made no calls after step %d that may have changed something.\n", a.source.Name, after.step)
		return
	}
	fmt.Fprintf(a.f.Err, "After step %d, Run %s made %s that may have changed something:\n", after.step, a.source.Name, terminal.Plural(len(calls), "call"))
	t := newTable(a.f.Err, "CALL", "TOOL", "ARGUMENTS")
	const width = 100
	for _, call := range calls[:min(len(calls), maxListedCalls)] {
		t.row(call.ID, call.Name, untrusted.Line(string(call.Args), width))
	}
	_ = t.print()
	if more := len(calls) - maxListedCalls; more > 0 {
		fmt.Fprintf(a.f.Err, "and %d more\n", more)
	}
	fmt.Fprintf(a.f.Err, "The fork may make them again. Files are as Run %s left them at its end.\n", a.source.Name)
}

// callsAfter collects from a log the calls that are not in a session that is kept up to a step.
type callsAfter struct {
	step int64
	// attempt is the last one.
	attempt int
	// last is the last step of the Run's own session in the log, and seen are those after step.
	last int64
	seen map[int64]bool
	// isAnswer is whether step is an answer without calls. isWhole is whether the log has the end of the Run.
	isAnswer, isWhole bool
	calls             []step.Call
	// left are the calls of which the result is kept, and the calls that were denied.
	left map[string]bool
}

// newCallsAfter returns the calls after a step of a Run that has ended.
func newCallsAfter(last int64, run *v1alpha1.Run) *callsAfter {
	return &callsAfter{step: last, attempt: int(run.Status.Attempt.Number), seen: map[int64]bool{}, left: map[string]bool{}}
}

// add reads a line of the log.
func (c *callsAfter) add(line []byte) {
	var e events.Line
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Type { //nolint:exhaustive // the others are not about calls
	case step.EventCallStarted:
		var started events.CallStarted
		if json.Unmarshal(e.Data, &started) == nil {
			c.addCall(step.Call(started))
		}
	case step.EventCallDenied:
		var denied events.CallDenied
		if json.Unmarshal(e.Data, &denied) == nil {
			c.left[denied.ID] = true
		}
	case step.EventStepFinished:
		var finished events.StepFinished
		if json.Unmarshal(e.Data, &finished) == nil && e.Scope.Parent == "" {
			c.addStep(finished.Step)
		}
	case step.EventRunFinished:
		c.isWhole = c.isWhole || e.Attempt == c.attempt
	}
}

// addCall adds a call, unless an earlier attempt made it.
func (c *callsAfter) addCall(call step.Call) {
	isKnown := slices.ContainsFunc(c.calls, func(known step.Call) bool { return known.ID == call.ID })
	if !isKnown && !isReading(call) {
		c.calls = append(c.calls, call)
	}
}

// addStep adds a step of the Run's own session.
func (c *callsAfter) addStep(s step.Step) {
	c.last = max(c.last, s.Seq)
	switch {
	case s.Seq > c.step:
		c.seen[s.Seq] = true
	case s.Role == step.RoleTool:
		c.left[s.CallID] = true
	}
	if s.Seq == c.step {
		c.isAnswer = s.Role == step.RoleAssistant && len(s.Calls) == 0
	}
}

// list returns the calls without a kept result. Those in the session of another agent are made for a call of the Run's
// own.
func (c *callsAfter) list() []step.Call {
	var calls []step.Call
	for _, call := range c.calls {
		outermost, _, _ := strings.Cut(call.ID, ".")
		if !c.left[outermost] && !c.left[call.ID] {
			calls = append(calls, call)
		}
	}
	return calls
}

// missing reports whether the log does not have all steps after the last that is kept.
func (c *callsAfter) missing() bool { return !c.isWhole || int64(len(c.seen)) < c.last-c.step }

// isReading reports whether a call of the runner's own tools changes nothing.
func isReading(call step.Call) bool {
	name := call.Name
	if current, was := task.Renamed(name); was {
		name = current
	}
	if name != task.BuiltinHTTPRequest {
		return slices.Contains(readingTools, name)
	}
	var request struct {
		Method string `json:"method"`
	}
	_ = json.Unmarshal(call.Args, &request) // other arguments have no method
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}
