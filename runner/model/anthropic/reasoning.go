package anthropic

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// minBudget is the smallest budget of thinking that the wire knows.
const minBudget = 1024

// budgets are how many tokens a level of reasoning may think for, where the
// limit of the answer leaves room for that.
var budgets = map[model.Reasoning]int64{
	model.ReasoningLow:    4_096,
	model.ReasoningMedium: 12_288,
	model.ReasoningHigh:   24_576,
}

// efforts are the levels of reasoning in the wire's words.
var efforts = map[model.Reasoning]string{
	model.ReasoningLow:    "low",
	model.ReasoningMedium: "medium",
	model.ReasoningHigh:   "high",
}

// think asks for thinking, or for none, and reports whether it asked for some.
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
		b["output_config"] = map[string]any{"effort": efforts[level]}
	}
	if c.family.thinking == thinksAdaptive {
		// Said, because the later models keep to themselves what they think and
		// what they say between two calls.
		b["thinking"] = map[string]any{"type": "adaptive", "display": "summarized"}
		return true, nil
	}
	budget := budget(level, limit)
	if budget == 0 || c.dialect.echo == echoSigned && c.unthought(req) {
		return false, nil
	}
	b["thinking"] = map[string]any{"type": "enabled", "budget_tokens": budget}
	return true, nil
}

// budget is how many tokens of the limit are for thinking: never more than three
// quarters, and 0 where that is too few.
func budget(level model.Reasoning, limit int64) int64 {
	n := min(budgets[level], limit-limit/4)
	if n < minBudget {
		return 0
	}
	return n
}

// unthought reports whether the model is in the middle of calls that it did not
// begin by thinking: another began them, or thinking was off. Thinking cannot be
// asked for then; it can from the next thing that a user says.
func (c *client) unthought(req *model.Request) bool {
	var first *step.Step
	for i := range req.Steps {
		switch s := &req.Steps[i]; {
		case s.Role == step.RoleUser:
			first = nil
		case s.Role == step.RoleAssistant && first == nil:
			first = s
		}
	}
	return first != nil && len(c.write(req).thoughts(*first)) == 0
}
