package snapshot

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Most are the limits that a Run may lower. 0 means that there is no limit.
type Most struct {
	task.Limits
	Pending, Deadline time.Duration
}

// DefaultPending is the default of limits.pending.
const DefaultPending = 10 * time.Minute

// MostOf returns the limits of an Agent, its defaults included.
func MostOf(l v1alpha1.AgentLimits) Most {
	return Most{LimitsOf(l), cmp.Or(inDuration(l.Pending), DefaultPending), inDuration(l.Deadline)}
}

// MostOfWorkflow returns the limits of a Workflow.
func MostOfWorkflow(l *v1alpha1.WorkflowLimits) Most {
	if l == nil {
		l = &v1alpha1.WorkflowLimits{}
	}
	return Most{
		task.Limits{Steps: number(l.Steps), Tokens: tokens(l.Tokens), CostMicroUSD: microUSD(l.Cost), DurationSeconds: seconds(l.Duration)},
		cmp.Or(inDuration(l.Pending), DefaultPending), inDuration(l.Deadline),
	}
}

func inDuration(d *v1alpha1.Duration) time.Duration { return time.Duration(seconds(d)) * time.Second }

// MostOfRevision returns the limits of the Agent of a revision.
func MostOfRevision(v *Revision) Most {
	out := Most{Limits: v.Snapshot.Agent.Limits, Pending: DefaultPending}
	if d := v.Agent.Pending; d != nil {
		out.Pending = d.Duration
	}
	if d := v.Agent.Deadline; d != nil {
		out.Deadline = d.Duration
	}
	return out
}

// CheckLimits returns an error with both values if limits of a Run are above the limits of its Agent or
// Workflow, otherwise nil. The name of the Agent or Workflow is of, for example "Agent fixer".
func CheckLimits(l *v1alpha1.Limits, most Most, of string) *NotReadyError {
	if l == nil {
		return nil
	}
	inSeconds := func(n int64) string { return (time.Duration(n) * time.Second).String() }
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	var above []string
	for _, f := range []struct {
		name      string
		run, most int64
		shown     string
		show      func(int64) string
	}{
		{"steps", number(l.Steps), most.Steps, shown(l.Steps), count},
		{"modelCalls", number(l.ModelCalls), most.ModelCalls, shown(l.ModelCalls), count},
		{"toolCalls", number(l.ToolCalls), most.ToolCalls, shown(l.ToolCalls), count},
		{"tokens", tokens(l.Tokens), most.Tokens, shown(l.Tokens), count},
		{"cost", microUSD(l.Cost), most.CostMicroUSD, shown(l.Cost), task.Money},
		{"duration", seconds(l.Duration), most.DurationSeconds, shown(l.Duration), inSeconds},
		{"wait", seconds(l.Wait), most.WaitSeconds, shown(l.Wait), inSeconds},
		{"pending", seconds(l.Pending), int64(most.Pending.Seconds()), shown(l.Pending), inSeconds},
		{"deadline", seconds(l.Deadline), int64(most.Deadline.Seconds()), shown(l.Deadline), inSeconds},
	} {
		if f.most > 0 && f.run > f.most {
			above = append(above, fmt.Sprintf("spec.limits.%s is %s, and %s allows %s", f.name, f.shown, of, f.show(f.most)))
		}
	}
	if l.Depth != nil && int64(*l.Depth) > most.Depth {
		above = append(above, fmt.Sprintf("spec.limits.depth is %d, and %s allows %d", *l.Depth, of, most.Depth))
	}
	if own := outage(l.ModelOutage); own != nil && *own > int64(ModelOutage(most.Limits).Seconds()) {
		above = append(above, fmt.Sprintf("spec.limits.modelOutage is %s, and %s allows %s", *l.ModelOutage, of, ModelOutage(most.Limits)))
	}
	if len(above) == 0 {
		return nil
	}
	kind, _, _ := strings.Cut(of, " ")
	return &NotReadyError{v1alpha1.ReasonMisconfigured, fmt.Sprintf("%s. A Run only lowers limits: write at most that, or raise the limits of the %s", strings.Join(above, "; "), kind)}
}

// CheckCost returns an error if a Run limits its cost and one of its Models has no prices, otherwise nil: a
// limit that cannot be counted is none.
func CheckCost(l *v1alpha1.Limits, models []task.Model) *NotReadyError {
	if l == nil || microUSD(l.Cost) == 0 {
		return nil
	}
	for _, m := range models {
		if m.Prices == nil {
			return &NotReadyError{v1alpha1.ReasonMisconfigured, fmt.Sprintf("spec.limits.cost needs to know what Model %q costs. Set spec.prices of the Model, or remove limits.cost", m.Name)}
		}
	}
	return nil
}
