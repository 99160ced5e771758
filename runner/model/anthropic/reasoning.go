package anthropic

import (
	"cmp"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// minBudget is the smallest thinking budget that the API accepts.
const minBudget = 1024

// budgets are the thinking budgets of the levels of reasoning, in tokens. The limit of the
// answer may lower them.
var budgets = map[model.Reasoning]int64{
	model.ReasoningLow:    4_096,
	model.ReasoningMedium: 12_288,
	model.ReasoningHigh:   24_576,
}

// efforts are the names of the levels of reasoning in the API.
var efforts = map[model.Reasoning]string{
	model.ReasoningLow:    "low",
	model.ReasoningMedium: "medium",
	model.ReasoningHigh:   "high",
}

// think turns thinking on or off, and reports whether it is on.
func (c *client) think(b map[string]any, req *model.Request, limit int64) (bool, error) {
	level := req.Params.Reasoning
	switch {
	case level == "":
		return false, nil
	case level == model.ReasoningOff:
		return false, httpapi.Merge(b, c.family.off)
	case efforts[level] == "":
		return false, fmt.Errorf("reasoning %q is not known", level)
	}
	if c.family.thinking != thinksBudget {
		b["output_config"] = map[string]any{"effort": cmp.Or(c.family.efforts[level], efforts[level])}
	}
	switch c.family.thinking {
	case thinksAlways:
		return true, nil
	case thinksAdaptive:
		// The default of later models is to omit thinking, and texts between calls.
		b["thinking"] = map[string]any{"type": "adaptive", "display": "summarized"}
		return true, nil
	default:
		return c.thinkWithBudget(b, req, limit), nil
	}
}

// thinkWithBudget turns thinking on with a budget if there is room for it.
func (c *client) thinkWithBudget(b map[string]any, req *model.Request, limit int64) bool {
	level := req.Params.Reasoning
	budget := budget(level, limit)
	if budget == 0 || c.dialect.echo == echoSigned && c.startedWithoutThinking(req) {
		return false
	}
	b["thinking"] = map[string]any{"type": "enabled", "budget_tokens": budget}
	return true
}

// budget returns the thinking budget: at most three quarters of the limit, and 0 if that is
// below minBudget.
func budget(level model.Reasoning, limit int64) int64 {
	n := min(budgets[level], limit-limit/4)
	if n < minBudget {
		return 0
	}
	return n
}

// startedWithoutThinking reports whether the open turn began without thinking: by another
// model, or with thinking off. The API refuses thinking until the next message of the user.
func (c *client) startedWithoutThinking(req *model.Request) bool {
	var first *step.Step
	for i := range req.Steps {
		switch s := &req.Steps[i]; {
		case s.Role == step.RoleUser:
			first = nil
		case s.Role == step.RoleAssistant && first == nil:
			first = s
		}
	}
	return first != nil && !c.write(req).sendsThinking(first.ForModel(c.name))
}
