package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// canary is a secret that a tool and a model keep telling.
const canary = "sk-canary-0123456789"

// A chaos is a Run of agents whose models say anything at all, with tools that
// do anything at all, killed at any moment and taken up again until it ends.
type chaos struct {
	mu    sync.Mutex
	luck  *rand.Rand
	did   map[string]int // how often a call that must not be repeated was made
	asked []*model.Request
	tapes []*fakeSink
	desks []*fakeReporter
	log   *journal.Memory
	died  bool // the last attempt was killed
	out   Outcome
	// judged are the arguments on which a policy decided last, by call; made is how
	// the calls of the tool Path were made.
	judged map[string]string
	made   []madeCall
	// people are the same in all attempts: the operator repeats what they said.
	people *fakeSignals
	// children are child Runs, which are made once, whatever happens.
	children *fakeOperator
	left     map[task.Reason]int // how often a runner left, to be taken up again
}

// strict are the policies of all agents: that of the Run's own asks about more.
var (
	strict = fakePolicy{
		"Guard": {Answer: toolcall.Ask, Rule: "guard", Reason: "the key is " + canary}, "Banned": {Answer: toolcall.Deny, Rule: "banned", Reason: "no " + canary},
	}
	stricter = fakePolicy{
		"Guard": {Answer: toolcall.Ask, Rule: "top", Approvers: task.Approvers{Groups: []string{"sre"}}}, "Banned": strict["Banned"], "agent": {Answer: toolcall.Ask, Rule: "agents"},
		"Path": {Answer: toolcall.Ask, Rule: "paths"},
	}
)

func (c *chaos) below(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.luck.IntN(n)
}

func (c *chaos) one(of ...string) string { return of[c.below(len(of))] }

// Stream implements [model.Model]: anything.
func (c *chaos) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	kept := *req
	kept.Steps = slices.Clone(req.Steps)
	c.mu.Lock()
	c.asked = append(c.asked, &kept)
	c.mu.Unlock()
	return (&fakeModel{turns: []turn{c.turn(req)}}).Stream(ctx, req)
}

func (c *chaos) turn(req *model.Request) turn {
	switch c.below(25) {
	case 0:
		return fails(&model.ContextTooLongError{Message: "too long", Window: 4000})
	case 1:
		return fails(&model.RateLimitedError{RetryAfter: 2 * time.Minute, Message: "slow down"})
	case 2:
		return turn{during: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	case 3:
		return says(c.one("done", "", "the key is "+canary))
	}
	finishes := []step.Finish{step.FinishCalls, step.FinishCalls, step.FinishCalls, step.FinishStop, step.FinishLength, step.FinishOther}
	t := turn{finish: finishes[c.below(len(finishes))], text: c.one("", "so", "well")}
	for range 1 + c.below(4) {
		t.calls = append(t.calls, calls(c.one(
			`Read {"n":1}`, `Read {"n":2}`, `Bash {"n":1}`, `Bash {"k":"`+canary+`"}`, "Nope {}", "Read {broken", "Crash {}", "Hang {}", "Deaf {}",
			`agent {"agent":"b","prompt":"look"}`, `agent {"agent":"c"}`, `agent {"agent":"nobody"}`, `Ask {"q":"which?"}`, "Forbidden {}",
			`child {"k":"`+canary+`"}`, `child {"n":1,"n":2}`,
			`Path {"p":"a"}`, `Path {"p":"b"}`, `Path {"p":"/1/c"}`,
			`Guard {"n":1}`, `Guard {"n":2}`, `Guard {"k":"`+canary+`"}`, "Banned {}",
			c.one("Finish {}", "Reject {}", "Read {}"),
		)).calls...)
	}
	t.usage = step.Usage{InputTokens: model.EstimateInput(req), OutputTokens: 20, CostMicroUSD: 10, Priced: true}
	return t
}

func (c *chaos) tools() enginetest.Toolbox {
	hang := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	do := func(_ context.Context, call tool.Call) (tool.Result, error) {
		c.mu.Lock()
		c.did[call.ID]++
		c.mu.Unlock()
		return tool.Result{Text: "the key is " + canary}, nil
	}
	return enginetest.Toolbox{
		newTool("Bash", tool.Once, do), newTool("Guard", tool.Once, do), newTool("Banned", tool.Once, do), agentTool(), askTool(), childTool(), ending("Finish"), ending("Reject"), echo("Forbidden", tool.Once),
		newTool("Read", tool.ReadOnly, func(_ context.Context, call tool.Call) (tool.Result, error) {
			return tool.Result{Text: string(call.Args) + strings.Repeat(" word", c.below(1500))}, nil
		}),
		newTool("Path", tool.Idempotent, c.makePath),
		newTool("Crash", tool.Once, func(context.Context, tool.Call) (tool.Result, error) { panic("boom " + canary) }),
		newTool("Hang", tool.ReadOnly, hang),
		newTool("Deaf", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(time.Hour)
			return tool.Result{}, nil
		}),
	}
}

// A madeCall is how a call was made, and on which arguments a policy had decided
// last.
type madeCall struct{ id, args, judged string }

// makePath makes a call of the tool Path.
func (c *chaos) makePath(ctx context.Context, call tool.Call) (tool.Result, error) {
	c.mu.Lock()
	c.made = append(c.made, madeCall{call.ID, string(call.Args), c.judged[call.ID]})
	c.mu.Unlock()
	select {
	case <-time.After(time.Duration(c.below(3)) * time.Minute):
		return tool.Result{Text: string(call.Args)}, nil
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
}

// resolve makes the arguments of the tool Path canonical. A path that is not leads
// somewhere else at any time, or cannot be resolved.
func (c *chaos) resolve(args json.RawMessage) (json.RawMessage, *tool.Error) {
	var in struct {
		P string `json:"p"`
	}
	switch err := json.Unmarshal(args, &in); {
	case err != nil:
		return nil, &tool.Error{Message: err.Error()}
	case strings.HasPrefix(in.P, "/"):
		return args, nil
	case c.below(20) == 0:
		return nil, &tool.Error{Message: "it leads outside"}
	case c.below(40) == 0:
		panic("it cannot be resolved")
	}
	return json.RawMessage(fmt.Sprintf(`{"p":"/%d/%s"}`, c.below(1000), in.P)), nil
}

// A judging policy writes down on which arguments it decides.
type judging struct {
	fakePolicy
	chaos *chaos
}

func (j judging) Decide(ctx context.Context, call step.Call, by step.Scope) toolcall.PolicyResult {
	j.chaos.mu.Lock()
	j.chaos.judged[call.ID] = string(call.Args)
	j.chaos.mu.Unlock()
	return j.fakePolicy.Decide(ctx, call, by)
}

// forbids vetoes what it must not be called.
func forbids() *middleware.Stack {
	stack, _ := middleware.Build(middleware.Layer{Name: "guard", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, call *tool.Call) (tool.Result, error) {
			if call.Name == "Forbidden" {
				return tool.Result{}, veto
			}
			return next(ctx, call)
		}
	}})
	return stack
}

// actor is any of the agents.
func (c *chaos) actor(name string) *Actor {
	a := &Actor{
		Agent: task.Agent{Name: name, ParallelTools: 1 + c.below(4), Limits: task.Limits{Steps: 6, DurationSeconds: 1200, Depth: 3}},
		Model: Model{Model: c, Name: "m", Window: 8000, MaxOutput: 500}, Tools: caselessBox{c.tools(), "Path", c.resolve}, Stack: forbids(), Policy: judging{strict, c},
	}
	if c.below(3) == 0 {
		a.Agent.OutputSchema = []byte("{}")
	}
	return a
}

// attempt makes one attempt, which dies after so many records.
func (c *chaos) attempt(ctx context.Context, number, records int) Outcome {
	s := newTestRun(nil)
	s.Actor = *c.actor("a")
	if c.below(2) == 0 {
		s.Actor.Policy = judging{stricter, c}
	}
	s.Durable = c.below(3) > 0
	s.Captured = func(string) string { return "the key is " + canary }
	s.Actors = func(d Delegation) (*Actor, error) {
		if d.Agent == "nobody" {
			return nil, fmt.Errorf("there is no agent %q", d.Agent)
		}
		return c.actor(d.Agent), nil
	}
	s.Redact = redacting()
	c.died = false
	s.Journal = crashingLog{Memory: c.log, left: &records, died: &c.died}
	s.Task.Attempt = number
	s.Task.Limits = task.Limits{Steps: 15, ToolCalls: 60, DurationSeconds: 3600, WaitSeconds: 600, Depth: 2, Ask: c.below(4) > 0}
	s.withOperator(c.children)
	s.CanAsk = true
	c.tapes, c.desks = append(c.tapes, s.sink), append(c.desks, s.reporter)
	end := make(chan struct{})
	defer close(end)
	go c.decide(s.reporter, number, end)
	go c.pause(s.signals, end)
	return Run(ctx, s.Config)
}

// pause has the work hold now and then, for a while.
func (c *chaos) pause(l *fakeSignals, end <-chan struct{}) {
	for on := true; ; on = !on {
		select {
		case <-end:
			return
		case <-time.After(time.Duration(1+c.below(40)) * time.Minute):
			l.pause(on)
		}
	}
}

// decide has people answer some of what they are asked, and say this and that.
func (c *chaos) decide(d *fakeReporter, attempt int, end <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-end:
			return
		case <-time.After(time.Minute):
		}
		c.children.see(d.last().Pending, c.endOfChild)
		name := fmt.Sprintf("d-%d-%d", attempt, n)
		if c.below(4) == 0 {
			c.people.say(message(name, "hello"))
			continue
		}
		for _, q := range d.last().Pending {
			c.people.say(c.decision(name, q))
			break
		}
	}
}

// endOfChild is how a child Run ends: anyhow.
func (c *chaos) endOfChild(q task.Pending) task.Child {
	end := finished(q.ID, "the key is "+canary)
	switch c.below(5) {
	case 0:
		return task.Child{Request: q.ID, Message: "no, the key is " + canary}
	case 1:
		end.Reason, end.Message = task.ReasonStepLimit, "the key is "+canary
	case 2:
		end.Output = c.one(`{"k":"`+canary+`"}`, canary, strings.Repeat("x", 100_000))
	case 3:
		c.children.say(finished(c.one("s1c1", "", q.ID+"-2"), "of nobody"))
	}
	return end
}

// decision is what somebody says to a request, which may be anything.
func (c *chaos) decision(name string, q task.Pending) task.Decision {
	switch {
	case c.below(5) == 0:
		return answers(name, q.ID, "that one")
	case q.Kind == task.PendingLimit:
		return task.Decision{Name: name, Request: q.ID, Type: task.DecisionGrant, Steps: 2, Tokens: 1}
	case q.Kind != task.PendingApproval:
		return answers(name, q.ID, "that one")
	case c.below(4) == 0:
		return deny(name, q.ID, "the key is "+canary)
	case c.below(4) == 0:
		return approve(name, q.ID, "the digest of something else")
	case c.below(8) == 0:
		return approve(name, approval.CallOf(q.ID)+"-"+digest.Short(digest.Call("Guard", json.RawMessage(`{"other":1}`))), "")
	}
	d := approve(name, q.ID, "")
	if c.below(6) == 0 {
		d.Scope = task.ScopeRun
	}
	return d
}

// play makes attempts until the Run ends by itself.
func (c *chaos) play(t *testing.T) {
	c.log, c.did, c.judged, c.left = &journal.Memory{}, map[string]int{}, map[string]string{}, map[task.Reason]int{}
	c.children = newOperator()
	c.people = c.children.fakeSignals
	for number := 1; ; number++ {
		c.out = c.attempt(t.Context(), number, c.below(80))
		if !c.out.Reason.Commits() {
			c.left[c.out.Reason]++
			time.Sleep(time.Minute)
			c.children.see(c.out.Progress.Pending, c.endOfChild)
			for _, q := range c.out.Progress.Pending { // somebody decides while no runner is there
				c.people.say(c.decision(fmt.Sprintf("away-%d-%s", number, q.ID), q))
			}
			continue
		}
		// A used-up duration hides that it was killed.
		if killed := c.died && c.out.Reason == task.ReasonDurationLimit; !killed && !strings.Contains(c.out.Message, errKilled.Error()) {
			time.Sleep(2 * time.Hour) // what was left behind comes back, and changes nothing
			return
		}
	}
}

// shown is all that leaves the runner.
func (c *chaos) shown(t *testing.T) string {
	t.Helper()
	all := []any{c.out, c.asked}
	for i := range c.tapes {
		all = append(all, c.tapes[i].all, c.tapes[i].messages, c.desks[i].committed, c.desks[i].reported)
	}
	for r := range c.log.Read() {
		all = append(all, r)
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
