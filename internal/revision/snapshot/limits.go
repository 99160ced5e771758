package snapshot

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Defaults of Limits, as its godoc promises.
const (
	defaultSteps    = 30
	defaultTokens   = 2_000_000
	defaultDuration = time.Hour
	defaultDepth    = 3
	defaultWait     = 7 * 24 * time.Hour
)

// LimitsOf returns the limits of an Agent, as integers, with defaults.
func LimitsOf(l v1alpha1.AgentLimits) task.Limits {
	out := task.Limits{
		Steps:           defaultSteps,
		Tokens:          defaultTokens,
		DurationSeconds: int64(defaultDuration.Seconds()),
		Depth:           defaultDepth,
		WaitSeconds:     int64(defaultWait.Seconds()),
		Ask:             l.WhenReached == v1alpha1.WhenReachedAsk,
	}
	each(&out, l.Limits, func(_, said int64) int64 { return said })
	if l.Depth != nil {
		out.Depth = int64(*l.Depth)
	}
	out.ModelOutageSeconds = outage(l.ModelOutage)
	return out
}

// Lower returns limits lowered by those of a Run. A higher limit of the Run has no effect.
func Lower(limits task.Limits, l v1alpha1.Limits) task.Limits {
	each(&limits, l, func(had, said int64) int64 {
		if had == 0 {
			return said // there was none
		}
		return min(had, said)
	})
	if l.Depth != nil { // 0 is a limit too
		limits.Depth = min(limits.Depth, int64(*l.Depth))
	}
	if said := outage(l.ModelOutage); said != nil { // and so here
		lower := min(int64(ModelOutage(limits).Seconds()), *said)
		limits.ModelOutageSeconds = &lower
	}
	return limits
}

// ModelOutage returns how long a Run waits for a model whose provider names no time.
func ModelOutage(l task.Limits) time.Duration {
	if l.ModelOutageSeconds == nil {
		return task.DefaultModelOutage
	}
	return time.Duration(*l.ModelOutageSeconds) * time.Second
}

// each changes limits that are set and for which 0 means none.
func each(to *task.Limits, l v1alpha1.Limits, change func(had, said int64) int64) {
	for _, f := range []struct {
		to   *int64
		said int64
	}{
		{&to.Steps, number(l.Steps)},
		{&to.ModelCalls, number(l.ModelCalls)},
		{&to.ToolCalls, number(l.ToolCalls)},
		{&to.Tokens, tokens(l.Tokens)},
		{&to.CostMicroUSD, microUSD(l.Cost)},
		{&to.DurationSeconds, seconds(l.Duration)},
		{&to.WaitSeconds, seconds(l.Wait)},
	} {
		if f.said != 0 {
			*f.to = change(*f.to, f.said)
		}
	}
}

// Values that the schema should have refused count as not said.

func number(n *int32) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

func tokens(t *v1alpha1.Tokens) int64 {
	if t == nil {
		return 0
	}
	n, err := t.Count()
	if err != nil {
		return 0
	}
	return n
}

func microUSD(m *v1alpha1.Money) int64 {
	if m == nil {
		return 0
	}
	n, err := m.MicroUSD()
	if err != nil {
		return 0
	}
	return n
}

// outage returns a duration in seconds, which may be 0; nil: it is not set.
func outage(d *v1alpha1.Duration) *int64 {
	if d == nil {
		return nil
	}
	v, err := d.Value()
	if err != nil || v < 0 {
		return nil
	}
	n := int64(v.Seconds())
	return &n
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

func params(p *v1alpha1.Inference) (step.Params, error) {
	var out step.Params
	if p == nil {
		return out, nil
	}
	out.Reasoning = step.Reasoning(p.Reasoning)
	out.MaxOutputTokens = tokens(p.MaxOutputTokens)
	for _, f := range []struct {
		from *v1alpha1.Decimal
		to   **float64
	}{{p.Temperature, &out.Temperature}, {p.TopP, &out.TopP}} {
		if f.from == nil {
			continue
		}
		v, err := json.Number(*f.from).Float64()
		if err != nil {
			return out, fmt.Errorf("reading %q as a number: %w", *f.from, err)
		}
		*f.to = &v
	}
	if p.Extra != nil {
		out.Extra = p.Extra.Raw
	}
	return out, nil
}
