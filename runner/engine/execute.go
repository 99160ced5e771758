package engine

import (
	"context"
	"encoding/json"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// defaultTimeout bounds a call of a tool that says nothing else.
const defaultTimeout = 2 * time.Minute

// A job is one call of a turn on its way to a result.
type job struct {
	call step.Call
	seq  int64 // of its result, in call order, whenever it comes
	tool tool.Tool
	spec tool.Spec
	path string // that its arguments name, cleaned; empty: none
	// refusal says why the call is not executed; nil when it is.
	refusal *tool.Error
	done    chan struct{}
}

// execute brings each of the calls to its result. Those that may run side by
// side do; those that end the Run come last, one by one. An error means that
// the session cannot go on; calls that were not begun are then left open.
func (r *run) execute(ctx context.Context, calls []step.Call) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs, endings := r.plan(calls)
	r.executeAll(ctx, jobs, cancel)
	for _, j := range endings {
		r.perform(ctx, j, cancel)
	}
	return failure(ctx)
}

// failure is the error that cancelled the turn from within, or that makes the
// rest of the session pointless. An interruption or a used-up duration is
// neither: next decides about those.
func failure(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if end, ok := asEnd(cause); ok && !fatal(end) {
		return nil
	}
	return cause
}

// plan turns calls into jobs, in their order, those that end the Run apart.
func (r *run) plan(calls []step.Call) (jobs, endings []*job) {
	turn := r.turn()
	for i, c := range turn.Calls {
		if !contains(calls, c.ID) {
			continue
		}
		j := r.prepare(turn, c)
		j.seq = turn.Seq + int64(i) + 1
		if j.refusal == nil && j.spec.Ends {
			endings = append(endings, j)
		} else {
			jobs = append(jobs, j)
		}
	}
	return jobs, endings
}

// turn is the assistant's step whose calls are open.
func (r *run) turn() step.Step {
	steps := r.session.read().Steps
	return steps[len(steps)-1]
}

func contains(calls []step.Call, id string) bool {
	for _, c := range calls {
		if c.ID == id {
			return true
		}
	}
	return false
}

// prepare finds the tool of a call and holds its arguments to the schema.
func (r *run) prepare(turn step.Step, c step.Call) *job {
	j := &job{call: c, done: make(chan struct{})}
	switch turn.Finish {
	case step.FinishLength:
		j.refusal = &tool.Error{Message: resultCut}
		return j
	case step.FinishRefusal:
		j.refusal = &tool.Error{Message: resultRefused}
		return j
	case step.FinishStop, step.FinishCalls, step.FinishOther:
	}
	t, known := r.Tools.Find(c.Name)
	if !known {
		j.refusal = &tool.Error{Message: resultUnknown(c.Name, r.Tools.Specs())}
		return j
	}
	j.tool, j.spec, j.path = t, t.Spec(), pathOf(c.Args)
	j.refusal = r.Tools.Check(c.Name, c.Args)
	return j
}

// executeAll starts jobs in call order, as many at once as the Agent allows,
// each behind the earlier ones that it must not run beside.
func (r *run) executeAll(ctx context.Context, jobs []*job, cancel context.CancelCauseFunc) {
	var all sync.WaitGroup
	slots := make(chan struct{}, max(r.Agent.ParallelTools, 1))
	for i, j := range jobs {
		for _, earlier := range jobs[:i] {
			if conflict(earlier, j) {
				<-earlier.done
			}
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { close(j.done); <-slots }()
			defer caught(cancel)
			r.perform(ctx, j, cancel)
		})
	}
	all.Wait()
}

// conflict says whether two jobs of one turn must not run at once.
func conflict(a, b *job) bool {
	if a.refusal != nil || b.refusal != nil {
		return false
	}
	switch {
	case a.spec.Concurrency == tool.Alone, b.spec.Concurrency == tool.Alone:
		return true
	case a.spec.Concurrency == tool.PerPath, b.spec.Concurrency == tool.PerPath:
		return mayTouch(a, b) && mayTouch(b, a)
	}
	return false
}

// mayTouch says whether a job may touch a path that another one names.
func mayTouch(a, b *job) bool {
	p, q := a.path, b.path
	if p == "" {
		return a.spec.Concurrency == tool.PerPath // it names none, so it may be any
	}
	// Relative and absolute names of one file end alike.
	return q == "" || p == q || strings.HasSuffix(p, "/"+q) || strings.HasSuffix(q, "/"+p)
}

func pathOf(args json.RawMessage) string {
	var named struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(args, &named) != nil || named.Path == "" {
		return ""
	}
	return path.Clean(named.Path)
}

func (j *job) timeout() time.Duration {
	if j.spec.Timeout > 0 {
		return j.spec.Timeout
	}
	return defaultTimeout
}
