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

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// maxResult bounds the text of a result in a request to a hook, in bytes.
const maxResult = 256 << 10

// gracePeriod is how long hooks may handle a result after the context has ended.
const gracePeriod = 3 * time.Second

var errGracePeriodOver = errors.New("the work ended before it answered")

// Results for the model when a hook denies a call or fails.
const (
	callVetoed        = "Not executed: the hook %s does not allow this call: %s"
	callUnavailable   = "%v; the call was not executed"
	resultVetoed      = "The call was executed, but the hook %s withholds its result: %s"
	resultUnavailable = "The call was executed, but %v, so its result is withheld"
	errorPrefix       = "Error: " // a result that reports a failure
)

type beforeTool struct {
	requestHeader
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
	// Truncated reports that Text is only the beginning.
	Truncated bool `json:"truncated,omitempty"`
}

// tool returns a layer that calls the hooks before and after a tool call.
func (c *caller) tool(next middleware.ToolFunc) middleware.ToolFunc {
	return func(ctx context.Context, toolCall *tool.Call) (tool.Result, error) {
		made := *toolCall // the original stays unchanged
		refusal, err := c.beforeTool(ctx, &made)
		switch {
		case err != nil:
			return tool.Result{}, err
		case refusal != "":
			return tool.Fail(refusal), nil
		}
		res, err := next(ctx, &made)
		if err != nil {
			return res, err
		}
		ctx, cancel := withGracePeriod(ctx)
		defer cancel()
		return c.afterTool(ctx, &made, res), nil
	}
}

// hooksFor returns the hooks of a point for a tool.
func (c *caller) hooksFor(point, name string) []task.Hook {
	var all []task.Hook
	for _, h := range c.hooks[point] {
		if len(h.Tools) == 0 || slices.Contains(h.Tools, name) {
			all = append(all, h)
		}
	}
	return all
}

// beforeTool calls the hooks before a tool call. The refusal is for the model.
func (c *caller) beforeTool(ctx context.Context, toolCall *tool.Call) (refusal string, err error) {
	for _, h := range c.hooksFor(BeforeTool, toolCall.Name) {
		did, err := c.callHook(ctx, h, c.toolRequest(h, toolCall), func(answer []byte) (bool, error) { return c.editArgs(toolCall, answer) })
		callreport.AddHook(ctx, did)
		unavailable, ok := errors.AsType[*UnavailableError](err)
		switch {
		case ok:
			return fmt.Sprintf(callUnavailable, unavailable), nil
		case err != nil:
			return "", err
		case did.Did == step.HookVetoed:
			return fmt.Sprintf(callVetoed, h.Name, did.Reason), nil
		}
	}
	return "", nil
}

func (c *caller) toolRequest(h task.Hook, toolCall *tool.Call) beforeTool {
	return beforeTool{c.header(h, toolCall.Scope), toolCall.ID, toolCall.Name, c.args(string(toolCall.Args))}
}

// editArgs replaces the arguments of a call by the arguments in an answer.
func (c *caller) editArgs(toolCall *tool.Call, answer []byte) (bool, error) {
	var change struct {
		Args json.RawMessage `json:"args"`
	}
	if err := read(answer, &change); err != nil || change.Args == nil || string(change.Args) == "null" {
		return false, err
	}
	if !bytes.HasPrefix(change.Args, []byte("{")) {
		return false, errors.New("it answered arguments that are no JSON object")
	}
	if c.Check != nil {
		if err := c.Check(toolCall.Name, change.Args); err != nil {
			return false, fmt.Errorf("it answered arguments that do not fit the tool: %w", err)
		}
	}
	toolCall.Args = change.Args
	return true, nil
}

// withGracePeriod returns a context that ends gracePeriod after ctx: the pod is about to
// end, and does not wait for the timeout of a hook.
func withGracePeriod(ctx context.Context) (context.Context, func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	off := context.AfterFunc(ctx, func() {
		time.AfterFunc(gracePeriod, func() { cancel(errGracePeriodOver) })
	})
	return longer, func() { off(); cancel(nil) }
}

// afterTool calls the hooks after a tool call. The call has happened, so all hooks are
// called even if the context ends, within the grace period.
func (c *caller) afterTool(ctx context.Context, toolCall *tool.Call, r tool.Result) tool.Result {
	for _, h := range c.hooksFor(AfterTool, toolCall.Name) {
		text := c.Redact(r.Render())
		question := afterTool{c.toolRequest(h, toolCall), result{Text: task.Cut(text, maxResult), IsError: r.Error != nil, Truncated: len(text) > maxResult}}
		did, err := c.callHook(ctx, h, question, func(answer []byte) (bool, error) { return editResult(&r, answer) })
		if errors.Is(err, errGracePeriodOver) {
			did.Did, did.Reason = step.HookFailed, errGracePeriodOver.Error()
		}
		callreport.AddHook(ctx, did)
		switch {
		case errors.Is(err, errGracePeriodOver) && h.Ignore:
		case errors.Is(err, errGracePeriodOver):
			return tool.Fail(fmt.Sprintf(resultUnavailable, &UnavailableError{Hook: h.Name, Point: h.Point, Cause: err}))
		case err != nil:
			return tool.Fail(fmt.Sprintf(resultUnavailable, err))
		case did.Did == step.HookVetoed:
			return tool.Fail(fmt.Sprintf(resultVetoed, h.Name, did.Reason))
		}
	}
	return r
}

// editResult applies an answer to a result.
func editResult(r *tool.Result, answer []byte) (bool, error) {
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
		text = strings.TrimPrefix(text, errorPrefix)
	}
	if change.Text != nil {
		text = *change.Text
	}
	if change.IsError != nil {
		failed = *change.IsError
	}
	if !failed {
		r.Text, r.Error = text, nil
		if change.Text != nil {
			r.Files = nil // the hook does not see them, and what it takes away may be in them
		}
		r.Failed = r.Failed && change.IsError == nil
		return true, nil
	}
	// A call that failed commits nothing. The opening words are added again when
	// the result is rendered.
	*r = tool.Result{Error: &tool.Error{Message: strings.TrimPrefix(text, errorPrefix)}}
	return true, nil
}
