package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A meter counts what the Run uses, on top of what it used before. It never
// falls.
type meter struct {
	now    func() time.Time
	start  time.Time
	limits task.Limits

	mu   sync.Mutex
	used step.Meter // its duration is that of the time before start
}

func newMeter(before step.Meter, c Config) *meter {
	m := &meter{now: c.Now, start: c.Began, limits: c.Task.Limits, used: before}
	if m.start.IsZero() {
		m.start = c.Now()
	}
	return m
}

func (m *meter) add(change func(*step.Meter)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.used)
}

func (m *meter) read() step.Meter {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.used
	// A clock that was set back must not lower the meter.
	used.DurationSeconds += int64(max(m.now().Sub(m.start), 0) / time.Second)
	return used
}

// deadline ends a context when the Run's duration is used up.
func (m *meter) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if m.limits.DurationSeconds == 0 {
		return context.WithCancel(ctx)
	}
	used := m.read()
	left := time.Duration(m.limits.DurationSeconds-used.DurationSeconds) * time.Second
	used.DurationSeconds = m.limits.DurationSeconds
	return context.WithTimeoutCause(ctx, left, reached(used, task.Limits{DurationSeconds: m.limits.DurationSeconds}))
}

// A gauge is one limit and how much of it is used.
type gauge struct {
	name      string
	reason    task.Reason
	used, max int64
	show      func(int64) string
}

func gauges(used step.Meter, l task.Limits) []gauge {
	count := func(n int64) string { return fmt.Sprint(n) }
	return []gauge{
		{"steps", task.ReasonStepLimit, used.Steps, l.Steps, count},
		{"tokens", task.ReasonTokenLimit, used.Usage.Total(), l.Tokens, count},
		{"cost", task.ReasonCostLimit, used.Usage.CostMicroUSD, l.CostMicroUSD, task.Money},
		{"duration", task.ReasonDurationLimit, used.DurationSeconds, l.DurationSeconds, func(n int64) string {
			return (time.Duration(n) * time.Second).String()
		}},
	}
}

// reached is the first limit that is used up; nil when there is none.
func reached(used step.Meter, l task.Limits) *task.EndError {
	for _, g := range gauges(used, l) {
		if g.max > 0 && g.used >= g.max {
			return task.End(g.reason, "Used %s of %s %s; raise limits.%s of the Agent, which a Run can only lower, or give the Run less to do",
				g.show(g.used), g.show(g.max), g.name, g.name)
		}
	}
	return nil
}

// near are the limits of which most is used: four fifths.
func near(used step.Meter, l task.Limits) []gauge {
	var most []gauge
	for _, g := range gauges(used, l) {
		if g.max > 0 && g.used >= g.max-g.max/5 && g.used < g.max {
			most = append(most, g)
		}
	}
	return most
}
