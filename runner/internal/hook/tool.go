package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// maxResult bounds what a hook is told of a result.
const maxResult = 256 << 10

// lastFor is how long hooks may take over a result when everything else has
// ended.
const lastFor = 3 * time.Second

var errNoTime = errors.New("the work ended before it answered")

// What the model reads of a call that a hook forbids.
const (
	callVetoed    = "Not executed: the hook %s does not allow this call: %s"
	callUnasked   = "%v; the call was not executed"
	resultVetoed  = "The call was executed, but the hook %s withholds its result: %s"
	resultUnasked = "The call was executed, but %v, so its result is withheld"
	errorOpens    = "Error: " // a result that reports a failure
)

type beforeTool struct {
	questionHeader
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type afterTool struct {
	beforeTool
	Result result `json:"result"`
}

type result struct {
	Text    string `json:"text"`
	IsError bool   `json:"isError"`
	// Truncated says that Text is only the beginning.
	Truncated bool `json:"truncated,omitempty"`
}

// tool asks the hooks around a tool call.
func (a *asker) tool(next middleware.ToolFunc) middleware.ToolFunc {
	return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		made := *c // who called us keeps his
		before, refusal, err := a.beforeTool(ctx, &made)
		switch {
		case err != nil:
			return tool.Result{Hooks: before}, err
		case refusal != "":
			return withHooks(tool.Fail(refusal), before), nil
		}
		res, err := next(ctx, &made)
		res.Hooks = slices.Concat(before, res.Hooks)
		if err != nil {
			return res, err
		}
		ctx, cancel := lasting(ctx)
		defer cancel()
		return a.afterTool(ctx, &made, res), nil
	}
}

func withHooks(r tool.Result, hooks []step.Hook) tool.Result {
	r.Hooks = hooks
	return r
}

// concerned are the hooks that want to be asked of a tool.
func (a *asker) concerned(point, name string) []task.Hook {
	var all []task.Hook
	for _, h := range a.hooks[point] {
		if len(h.Tools) == 0 || slices.Contains(h.Tools, name) {
			all = append(all, h)
		}
	}
	return all
}

// beforeTool asks whether a call may be made. A refusal is told to the model.
func (a *asker) beforeTool(ctx context.Context, c *tool.Call) (all []step.Hook, refusal string, err error) {
	for _, h := range a.concerned(BeforeTool, c.Name) {
		did, err := a.askHook(ctx, h, a.about(h, c), func(answer []byte) (bool, error) { return a.rewrite(c, answer) })
		all = append(all, did)
		unavailable, ok := errors.AsType[*UnavailableError](err)
		switch {
		case ok:
			return all, fmt.Sprintf(callUnasked, unavailable), nil
		case err != nil:
			return all, "", err
		case did.Did == step.HookVetoed:
			return all, fmt.Sprintf(callVetoed, h.Name, did.Reason), nil
		}
	}
	return all, "", nil
}

func (a *asker) about(h task.Hook, c *tool.Call) beforeTool {
	return beforeTool{a.header(h, c.Scope), c.ID, c.Name, a.args(string(c.Args))}
}

// rewrite changes the arguments of a call as a hook says.
func (a *asker) rewrite(c *tool.Call, answer []byte) (bool, error) {
	var change struct {
		Args json.RawMessage `json:"args"`
	}
	if err := read(answer, &change); err != nil || change.Args == nil || string(change.Args) == "null" {
		return false, err
	}
	if !bytes.HasPrefix(change.Args, []byte("{")) {
		return false, errors.New("it answered arguments that are no JSON object")
	}
	if a.Check != nil {
		if err := a.Check(c.Name, change.Args); err != nil {
			return false, fmt.Errorf("it answered arguments that do not fit the tool: %w", err)
		}
	}
	c.Args = change.Args
	return true, nil
}

// lasting is ctx for who has to finish all the same: it ends a little later. A
// pod that is about to end does not wait for as long as a hook likes.
func lasting(ctx context.Context) (context.Context, func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	off := context.AfterFunc(ctx, func() {
		time.AfterFunc(lastFor, func() { cancel(errNoTime) })
	})
	return longer, func() { off(); cancel(nil) }
}

// afterTool asks what becomes of a result. The call is made, whatever ends in
// the meantime: it is asked to the end, as long as there is time.
func (a *asker) afterTool(ctx context.Context, c *tool.Call, r tool.Result) tool.Result {
	for _, h := range a.concerned(AfterTool, c.Name) {
		text := a.Redact(r.Render())
		question := afterTool{a.about(h, c), result{Text: task.Cut(text, maxResult), IsError: r.Error != nil, Truncated: len(text) > maxResult}}
		did, err := a.askHook(ctx, h, question, func(answer []byte) (bool, error) { return reword(&r, answer) })
		if errors.Is(err, errNoTime) {
			did.Did, did.Reason = step.HookFailed, errNoTime.Error()
		}
		r.Hooks = append(r.Hooks, did)
		switch {
		case errors.Is(err, errNoTime) && h.Ignore:
		case errors.Is(err, errNoTime):
			return withHooks(tool.Fail(fmt.Sprintf(resultUnasked, &UnavailableError{Hook: h.Name, Point: h.Point, Cause: err})), r.Hooks)
		case err != nil:
			return withHooks(tool.Fail(fmt.Sprintf(resultUnasked, err)), r.Hooks)
		case did.Did == step.HookVetoed:
			return withHooks(tool.Fail(fmt.Sprintf(resultVetoed, h.Name, did.Reason)), r.Hooks)
		}
	}
	return r
}

// reword changes a result as a hook says.
func reword(r *tool.Result, answer []byte) (bool, error) {
	var change struct {
		Text    *string `json:"text"`
		IsError *bool   `json:"isError"`
	}
	if err := read(answer, &change); err != nil || change.Text == nil && change.IsError == nil {
		return false, err
	}
	failed := r.Error != nil
	text := r.Render()
	if failed {
		text = strings.TrimPrefix(text, errorOpens)
	}
	if change.Text != nil {
		text = *change.Text
	}
	if change.IsError != nil {
		failed = *change.IsError
	}
	if !failed {
		r.Text, r.Error = text, nil
		return true, nil
	}
	// A call that failed commits nothing. The opening words are added again when
	// the result is rendered.
	*r = tool.Result{Error: &tool.Error{Message: strings.TrimPrefix(text, errorOpens)}, Hooks: r.Hooks}
	return true, nil
}
