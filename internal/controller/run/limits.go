package run

import (
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
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

// limitsOf returns the limits of the Agent of a revision.
func limitsOf(v *snapshot.Revision) limits {
	out := limits{task: v.Snapshot.Agent.Limits}
	if d := v.Agent.Pending; d != nil {
		out.pending = d.Duration
	}
	if d := v.Agent.Deadline; d != nil {
		out.deadline = d.Duration
	}
	return out
}

// effective returns, limit by limit, the lower value of Agent and Run. Values that the schema should have refused are
// ignored.
func effective(agent limits, run *v1alpha1.Limits) limits {
	if run == nil {
		run = &v1alpha1.Limits{}
	}
	return limits{
		task:     snapshot.Lower(agent.task, *run),
		pending:  lowerOf(agent.pending, seconds(run.Pending), snapshot.DefaultPending),
		deadline: lowerOf(agent.deadline, seconds(run.Deadline), 0),
	}
}

// lowerOf returns the lower of the Agent's value, or its default, and the Run's value.
func lowerOf(agent, run, standard time.Duration) time.Duration {
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

func seconds(d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	v, err := d.Value()
	if err != nil {
		return 0
	}
	return v.Truncate(time.Second)
}
