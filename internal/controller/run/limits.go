package run

import (
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Defaults of Limits, as its godoc promises.
const (
	defaultSteps    = 30
	defaultTokens   = 2_000_000
	defaultDuration = time.Hour
	defaultPending  = 10 * time.Minute
)

// limits are the effective limits of a Run, in units to compute with. Zero
// means no limit.
type limits struct {
	task     task.Limits
	pending  time.Duration
	deadline time.Duration
}

// duration is the longest time that runners may be alive.
func (l limits) duration() time.Duration {
	return time.Duration(l.task.DurationSeconds) * time.Second
}

// effective is the lower of what Agent and Run say, limit by limit. Values that
// the schema should have refused count as not said.
func effective(agent v1alpha1.Limits, run *v1alpha1.Limits) limits {
	if run == nil {
		run = &v1alpha1.Limits{}
	}
	return limits{
		task: task.Limits{
			Steps:           lower(steps(agent), steps(*run), defaultSteps),
			Tokens:          lower(tokens(agent), tokens(*run), defaultTokens),
			CostMicroUSD:    lower(cost(agent), cost(*run), 0),
			DurationSeconds: lower(seconds(agent.Duration), seconds(run.Duration), int64(defaultDuration.Seconds())),
		},
		pending:  time.Duration(lower(seconds(agent.Pending), seconds(run.Pending), int64(defaultPending.Seconds()))) * time.Second,
		deadline: time.Duration(lower(seconds(agent.Deadline), seconds(run.Deadline), 0)) * time.Second,
	}
}

// lower is the agent's value, or the default where it has none, and the run's
// where that is lower still.
func lower(agent, run, standard int64) int64 {
	if agent == 0 {
		agent = standard
	}
	if run == 0 {
		return agent
	}
	if agent == 0 {
		return run
	}
	return min(agent, run)
}

func steps(l v1alpha1.Limits) int64 {
	if l.Steps == nil {
		return 0
	}
	return int64(*l.Steps)
}

func tokens(l v1alpha1.Limits) int64 {
	if l.Tokens == nil {
		return 0
	}
	n, err := l.Tokens.Count()
	if err != nil {
		return 0
	}
	return n
}

func cost(l v1alpha1.Limits) int64 {
	if l.Cost == nil {
		return 0
	}
	n, err := l.Cost.MicroUSD()
	if err != nil {
		return 0
	}
	return n
}

func seconds(d *v1alpha1.Duration) int64 {
	if d == nil {
		return 0
	}
	v, err := d.Value()
	if err != nil {
		return 0
	}
	return int64(v.Seconds())
}
