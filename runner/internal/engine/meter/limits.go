package meter

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Limit is one limit and how much of it is used.
type Limit struct {
	Name      string
	Used, Max int64
	reason    task.Reason
	show      func(int64) string
	ofRun     bool // it is the Run's own
}

// String says how much is used.
func (l Limit) String() string {
	return fmt.Sprintf("Used %s of %s %s", l.show(l.Used), l.show(l.Max), l.Name)
}

func count(n int64) string { return fmt.Sprint(n) }

func duration(n int64) string { return (time.Duration(n) * time.Second).String() }

// The limits, in the order in which they are looked at. A cost that is not
// known counts as nothing, so that a cost limit is reached by what is known.
func limitsOf(used step.Meter, l task.Limits) [6]Limit {
	return [...]Limit{
		{Name: "steps", reason: task.ReasonStepLimit, Used: used.Steps, Max: l.Steps, show: count},
		{Name: "modelCalls", reason: task.ReasonStepLimit, Used: used.ModelCalls - used.OutageCalls, Max: l.ModelCalls, show: count},
		{Name: "toolCalls", reason: task.ReasonStepLimit, Used: used.ToolCalls, Max: l.ToolCalls, show: count},
		{Name: "tokens", reason: task.ReasonTokenLimit, Used: used.Usage.Total(), Max: l.Tokens, show: count},
		{Name: "cost", reason: task.ReasonCostLimit, Used: used.Usage.CostMicroUSD, Max: l.CostMicroUSD, show: task.Money},
		{Name: "duration", reason: task.ReasonDurationLimit, Used: used.DurationSeconds, Max: l.DurationSeconds, show: duration},
	}
}

// Reached is the first limit that is used up; nil when there is none.
func Reached(used step.Meter, l task.Limits) *Limit {
	all := limitsOf(used, l)
	for i := range all {
		if g := &all[i]; g.Max > 0 && g.Used >= g.Max {
			found := *g
			return &found
		}
	}
	return nil
}

// End is the end that a limit brings to an agent that works in a place.
func (l Limit) End(at place.Place) *task.EndError {
	of := " of the Run if it sets one, otherwise of the Agent"
	if at == place.Program {
		of = ""
	}
	return task.End(l.reason, "%s; raise %s%s, or give the Run less to do", l, at.Limit(l.Name), of)
}

// Extensible says whether a person may grant more of it.
func (l Limit) Extensible() bool {
	return l.ofRun && (l.Name == "steps" || l.Name == "tokens" || l.Name == "cost")
}

// Granted is how much of it a decision grants.
func (l Limit) Granted(d task.Decision) int64 {
	switch l.Name {
	case "steps":
		return d.Steps
	case "tokens":
		return d.Tokens
	case "cost":
		return d.CostMicroUSD
	}
	return 0
}

// near are the limits of which most is used: four fifths.
func near(used step.Meter, l task.Limits) []Limit {
	var most []Limit
	for _, g := range limitsOf(used, l) {
		if g.Max > 0 && g.Used >= g.Max-g.Max/5 && g.Used < g.Max {
			most = append(most, g)
		}
	}
	return most
}

// Request is what it is called by who decides. The next time that the same
// limit is reached it is another request: one is decided once.
func (l Limit) Request() string { return fmt.Sprintf("limit-%s-%d", l.Name, l.Max) }
