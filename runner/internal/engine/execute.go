package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// defaultTimeout bounds a call of a tool that says nothing else.
const defaultTimeout = 2 * time.Minute

// execute brings each of the calls to its result. Those that may run side by
// side do; those that end the session come last, one by one. An error means that
// the session cannot go on; calls that were not begun are then left open.
func (s *session) execute(ctx context.Context, calls []step.Call) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The first failure counts, though the context may have ended before it.
	var failed atomic.Pointer[error]
	fail := func(err error) {
		failed.CompareAndSwap(nil, &err)
		cancel(err)
	}
	jobs, endings := s.plan(calls)
	s.activity.Leave() // the calls are what works now
	defer s.activity.Enter()
	s.executeAll(ctx, jobs, fail)
	for _, j := range endings {
		j.bring(ctx, fail)
	}
	if err := failed.Load(); err != nil {
		return *err
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

// plan turns calls into jobs, in their order, those that end the session apart.
func (s *session) plan(calls []step.Call) (jobs, endings []*job) {
	st := s.read()
	last := st.Steps[len(st.Steps)-1]
	s.jobs = s.jobs[:0]
	for i, c := range last.Calls {
		if !contains(calls, c.ID) {
			continue
		}
		j := s.prepare(last, c)
		j.seq = last.Seq + int64(i) + 1
		s.jobs = append(s.jobs, j)
		if j.refusal == nil && j.spec.Ends {
			endings = append(endings, j)
			continue
		}
		if intent, begun := st.Intents[c.ID]; begun { // it goes on
			j.intent, j.begun = &intent, intent.Effect != string(tool.ReadOnly)
		} else {
			s.reserve(j)
		}
		jobs = append(jobs, j)
	}
	return jobs, endings
}

// reserve makes sure that no more calls are made than may be.
func (s *session) reserve(j *job) {
	if j.refusal != nil {
		return
	}
	if j.taken = s.account.Reserve(); !j.taken {
		j.refusal, j.surplus = &tool.Error{Message: resultTooMany}, true
	}
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
func (s *session) prepare(turn step.Step, c step.Call) *job {
	j := &job{session: s, call: c}
	switch turn.Finish {
	case step.FinishLength:
		j.refusal = &tool.Error{Message: resultCut}
		return j
	case step.FinishRefusal:
		j.refusal = &tool.Error{Message: resultRefused}
		return j
	case step.FinishStop, step.FinishCalls, step.FinishOther:
	}
	t, known := s.Tools.Find(c.Name)
	if !known {
		j.refusal = &tool.Error{Message: resultUnknown(c.Name, s.tools)}
		return j
	}
	j.tool, j.spec = t, t.Spec()
	j.spec.Concurrency = cmp.Or(j.spec.Concurrency, tool.Sequential)
	j.refusal = s.Tools.Check(c.Name, c.Args)
	return j
}

// executeAll starts jobs in call order, as many at once as the Agent allows,
// each behind the earlier ones that it must not run beside.
func (s *session) executeAll(ctx context.Context, jobs []*job, fail func(error)) {
	if len(jobs) == 1 {
		jobs[0].execute(ctx, fail)
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, max(s.Agent.ParallelTools, 1))
	for i, j := range jobs {
		j.done = make(chan struct{})
		await(jobs[:i], j, alone)
		j.canonicalize(ctx) // behind the commands before it, which may have made links
		j.path = pathOf(j.args)
		await(jobs[:i], j, conflict)
		slots <- struct{}{}
		all.Go(func() {
			defer func() { close(j.done); <-slots }()
			j.execute(ctx, fail)
		})
	}
	all.Wait()
}

// await waits for the earlier jobs that a job must not run beside.
func await(earlier []*job, j *job, apart func(a, b *job) bool) {
	for _, e := range earlier {
		if apart(e, j) {
			<-e.done
		}
	}
}

func (j *job) execute(ctx context.Context, fail func(error)) {
	defer caught(fail)
	j.bring(ctx, fail)
}

// alone says whether one of two jobs of one turn runs beside no other.
func alone(a, b *job) bool {
	return a.refusal == nil && b.refusal == nil && (a.spec.Concurrency == tool.Sequential || b.spec.Concurrency == tool.Sequential)
}

// conflict says whether two jobs of one turn must not run at once.
func conflict(a, b *job) bool {
	if a.refusal != nil || b.refusal != nil {
		return false
	}
	switch {
	case alone(a, b):
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
