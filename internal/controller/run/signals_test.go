package run

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/inputs"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// asking makes an Agent one that may ask people.
func mayAskPeople(a *v1alpha1.Agent) {
	a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Builtin: v1alpha1.BuiltinAsk})
}

func short(r *v1alpha1.Run) {
	d := v1alpha1.Duration("10m")
	r.Spec.Limits = &v1alpha1.Limits{Duration: &d}
}

func takes(schema string) func(*v1alpha1.Agent) {
	return func(a *v1alpha1.Agent) {
		a.Spec.Input = &v1alpha1.Input{Schema: &runtime.RawExtension{Raw: []byte(schema)}}
	}
}

func givenOnly(values string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.Spec.Prompt, r.Spec.Input = "", &runtime.RawExtension{Raw: []byte(values)}
	}
}

const aFile = `{"type":"object","required":["file"],"properties":{"file":{"type":"string"},"lines":{"type":"integer"}}}`

const (
	minute = 60 * second
	hour   = 60 * minute
)

// peopleStories are about Runs and people.
var peopleStories = map[string]story{
	"asks": {
		title: "a question is told, answered, and does not use up limits.duration",
		agent: mayAskPeople,
		run:   short,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(60*second, "the agent asks", reports(1, awaits("AwaitingAnswer", question("s3c1", "Which branch?\nmain, or next?")), used(minute))),
			at(5*hour, "a person answers", answers("s3c1", "main")),
			at(5*hour+2*second, "the runner acts on it", reports(1, acts("x.s3c1"), used(minute))),
			at(5*hour+8*minute, "the runner is at work", reports(1, used(9*minute))),
			at(5*hour+9*minute, "the runner commits", reports(1, commits("Finished", ""))),
			at(5*hour+9*minute, "x-1 exits 0", exits(1, 0)),
		},
	},
	"asks-and-hears-late": {
		title: "a runner that has not heard an answer is told again",
		agent: mayAskPeople,
		run:   short,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(60*second, "the agent asks", reports(1, awaits("AwaitingAnswer", question("s3c1", "Which branch?")), used(minute))),
			at(120*second, "a person answers", answers("s3c1", "main")),
			at(170*second, "the runner acts on it", reports(1, acts("x.s3c1"), used(minute))),
			at(180*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(180*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"asks-and-hangs": {
		title: "after an answer limits.duration goes on where it was",
		agent: mayAskPeople,
		run:   short,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(60*second, "the agent asks", reports(1, awaits("AwaitingAnswer", question("s3c1", "Which branch?")), used(minute))),
			at(5*hour, "a person answers", answers("s3c1", "main")),
			at(5*hour+2*second, "the runner acts on it, and hangs", reports(1, acts("x.s3c1"), used(minute))),
		},
	},
	"asks-and-pod-lost": {
		title: "an answer to a question of a lost attempt is not given to the next",
		agent: mayAskPeople,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(60*second, "the agent asks", reports(1, awaits("AwaitingAnswer", question("s3c1", "Which branch?")))),
			at(61*second, "x-1 is deleted", vanishes(1)),
			at(62*second, "a person answers", answers("s3c1", "main")),
			at(63*second, "x-2 runs", starts(2)),
			at(64*second, "the runner reports", reports(2, acts())),
			at(70*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(71*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"asks-again": {
		title: "what a lost attempt was answered the next may ask again",
		agent: mayAskPeople,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(60*second, "the agent asks", reports(1, awaits("AwaitingAnswer", question("s3c1", "Which branch?")))),
			at(61*second, "a person answers", answers("s3c1", "main")),
			at(62*second, "the runner acts on it", reports(1, acts("x.s3c1"))),
			at(63*second, "x-1 is deleted", func(c *cluster) {
				vanishes(1)(c)
				c.decided[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue}}
			}),
			at(65*second, "x-2 runs", starts(2)),
			at(70*second, "the agent asks", reports(2, acts(), awaits("AwaitingAnswer", question("s3c1", "Which of the two?")))),
			at(75*second, "a person answers under another name", func(c *cluster) {
				answers("s3c1", "the second")(c)
				c.decided[1].Name, c.decided[1].Spec.Request = "again", ""
			}),
			at(76*second, "the runner acts on it", reports(2, acts("again"))),
			at(80*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(81*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"asks-for-more": {
		title: "a limit that asks is granted more",
		agent: func(a *v1alpha1.Agent) { a.Spec.Limits.WhenReached = v1alpha1.WhenReachedAsk },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(60*second, "a limit is reached", reports(1, awaits("AwaitingAnswer",
				v1alpha1.PendingRequest{ID: "limit-steps-1", Kind: task.PendingLimit, Question: "30 steps are used up. How many more?"}, question("s3c1", "And which branch?")))),
			at(90*second, "a person grants 10", grants("limit-steps-1", 10)),
			at(91*second, "the runner acts on it", reports(1, acts("x.limit-steps-1"))),
			at(95*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(96*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"told": {
		title: "a message reaches a running agent once it reports",
		beats: []beat{
			at(0, "a person says something", answers("", "Leave the tests alone.")),
			at(1*second, "x-1 runs", starts(1)),
			at(3*second, "the runner reports", reports(1)),
			at(6*second, "the runner acts on it", reports(1, acts("said"))),
			at(9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"told-and-stopped": {
		title: "a stop does not take back what was said",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "a person says something", answers("", "Hurry up.")),
			at(9*second, "a person stops the Run", stops),
			at(10*second, "the runner commits", reports(1, commits("Stopped", "Stopped at step 3"))),
			at(11*second, "x-1 exits 65", exits(1, 65)),
		},
	},
	"rate-limited": {
		title: "a provider that asks to wait is waited for",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(5*second, "the provider asks to wait", reports(1, awaits("RateLimited"))),
			at(300*second, "the runner goes on", reports(1, awaits(""))),
			at(310*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(311*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"stuck": {
		title: "an agent that goes round in circles is not tried again",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(9*second, "the runner commits", reports(1, commits("Stuck", "The agent called Read with the same arguments 5 times"))),
			at(10*second, "x-1 exits 65", exits(1, 65)),
		},
	},
	"denied": {
		title: "what a hook does not allow is not tried again",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(9*second, "the runner commits", reports(1, commits("Denied", "Hook guard does not allow it: not on Fridays"))),
			at(10*second, "x-1 exits 65", exits(1, 65)),
		},
	},
	"tool-unavailable": {
		title: "a tool that cannot be reached is tried again",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(9*second, "the runner commits", reports(1, commits("ToolUnavailable", "HTTP 503"))),
			at(10*second, "x-1 exits 69", exits(1, 69)),
			at(30*second, "x-2 runs", starts(2)),
			at(39*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(40*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"input": {
		title: "a Run may have input instead of a prompt",
		agent: takes(aFile),
		run:   givenOnly(`{"file":"a.go"}`),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"input-wrong": {
		title: "input that the Agent does not take end the Run before there is a pod",
		agent: takes(aFile),
		run:   givenOnly(`{"file":"a.go","lines":"many"}`),
	},
	"input-missing": {
		title: "and so do those that are not there",
		agent: takes(aFile),
	},
	"input-large": {
		title: "and those that are too large",
		agent: takes(aFile),
		run:   givenOnly(`{"file":"` + strings.Repeat("a", 17<<10) + `"}`),
	},
	"input-undeclared": {
		title: "and input for an Agent that declares none",
		run:   givenOnly(`{"city":"Oslo"}`),
	},
	"prompt-undeclared": {
		title: "and a prompt with an input that the Agent does not declare",
		run: func(r *v1alpha1.Run) {
			r.Spec.Prompt = "Say ${{ input.city }}."
		},
	},
	"prompt-wrong": {
		title: "and a prompt with an input that the Agent does not have",
		agent: takes(aFile),
		run: func(r *v1alpha1.Run) {
			givenOnly(`{"file":"a.go"}`)(r)
			r.Spec.Prompt = "Fix line ${{ input.line }}."
		},
	},
}

// A Run need not give what has a default, however its Agent declares that.
func TestInputHasTheDefaultsOfItsAgent(t *testing.T) {
	fields := &v1alpha1.Input{Fields: []v1alpha1.Field{{Name: "file"}, {Name: "lines", Type: v1alpha1.FieldInteger, Default: &runtime.RawExtension{Raw: []byte("3")}}}}
	for name, in := range map[string]*v1alpha1.Input{
		"fields": fields,
		"schema": {Schema: &runtime.RawExtension{Raw: inputs.Schema(fields)}},
	} {
		s := state{run: gen.Run(givenOnly(`{"file":"a.go"}`)), revision: &snapshot.Revision{}}
		s.revision.Snapshot.Agent.InputSchema = inputs.Schema(in)
		if got := string(wholeInput(s.run.Spec, s.revision.Snapshot.Agent)); got != `{"file":"a.go","lines":3}` {
			t.Errorf("%s: given() = %s", name, got)
		}
		if p, misfit := inputInvalid(s); misfit {
			t.Errorf("%s: the Run is refused: %s", name, p.message)
		}
	}
}

func TestStoriesOfPeople(t *testing.T) { tellAll(t, peopleStories) }

// A Run of an Agent without a schema may say its prompt either way.
func TestAPromptIsAnInput(t *testing.T) {
	cases := map[string]struct {
		prompt, input string
		want          string
	}{
		"a prompt":                 {"Do it.", "", `{"prompt":"Do it."}`},
		"a prompt as a parameter":  {"", `{"prompt":"Do it."}`, `{"prompt":"Do it."}`},
		"both":                     {"Do it.", `{"prompt":"Do that."}`, `{"prompt":"Do that."}`},
		"a prompt and other input": {"Do it.", `{"a":1}`, `{"a":1,"prompt":"Do it."}`},
		"no object":                {"Do it.", `[1]`, `[1]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.RunSpec{Prompt: tc.prompt}
			if tc.input != "" {
				spec.Input = &runtime.RawExtension{Raw: []byte(tc.input)}
			}
			if got := string(wholeInput(spec, task.Agent{})); got != tc.want {
				t.Errorf("given() = %s, want %s", got, tc.want)
			}
		})
	}
}

// What does not fit the signals waits, and what is first goes first.
func TestSignalsAreBounded(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.step()
	c.step()
	starts(1)(c)
	reports(1)(c)
	for i := range 5 {
		answers("", strings.Repeat("\"", 1000))(c)
		c.decided[i].Name = fmt.Sprintf("m%d", i)
		c.decided[i].CreationTimestamp = metav1.NewTime(c.now.Add(time.Duration(i) * second))
	}
	heard := func() []string {
		t.Helper()
		for range 3 {
			c.step()
		}
		var names []string
		text := c.pod(1).Annotations[v1alpha1.AnnotationSignals]
		if len(text) > maxSignals {
			t.Errorf("the signals have %d bytes", len(text))
		}
		for _, d := range runnerpod.SignalsIn(c.pod(1)).Decisions {
			names = append(names, d.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"m0", "m1", "m2"}, heard()); diff != "" {
		t.Errorf("at first -want +got:\n%s", diff)
	}
	reports(1, acts("m0", "m1"))(c)
	if diff := cmp.Diff([]string{"m2", "m3", "m4"}, heard()); diff != "" {
		t.Errorf("after two -want +got:\n%s", diff)
	}
	c.decided = c.decided[:1]
	c.decided[0].Name, c.decided[0].Spec.Value = "large", strings.Repeat("\"", 4096)
	if got := pendingDecisions(c.observed(), task.Signals{}); len(got) != 1 {
		t.Errorf("the largest Decision never fits: %d are said", len(got))
	}
}

// A Decision could be deleted before the operator made the Run its owner. Acting on it
// only then, the record of what was decided stays.
func TestADecisionIsDeliveredOnceItBelongsToTheRun(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.step()
	c.step()
	starts(1)(c)
	reports(1, awaits("AwaitingAnswer", question("s3c1", "Which?")))(c)
	answers("s3c1", "main")(c)
	owner := c.decided[0].OwnerReferences
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   int
	}{
		"of no Run":           {nil, 0},
		"of an earlier Run":   {[]metav1.OwnerReference{{APIVersion: owner[0].APIVersion, Kind: "Run", Name: "x", UID: "earlier"}}, 0},
		"of a Run of another": {[]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Run", Name: "x", UID: owner[0].UID}}, 0},
		"of this Run":         {owner, 1},
	} {
		c.decided[0].OwnerReferences = tc.owners
		if got := pendingDecisions(c.observed(), task.Signals{}); len(got) != tc.want {
			t.Errorf("%s: delivered %+v", name, got)
		}
	}
}

// What was granted holds for the attempts that follow; what was refused, or is
// still on its way, or was granted to an earlier Run of that name, does not count.
func TestGrantsOutliveAnAttempt(t *testing.T) {
	cost := v1alpha1.Money("1USD")
	c := newCluster(t, gen.Run(), gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Limits.Cost = &cost }))
	two, tokens := v1alpha1.Money("2USD"), v1alpha1.Tokens("1M")
	for i, applied := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown, metav1.ConditionTrue} {
		grants("limit-steps-1", int32(10+i))(c)
		d := &c.decided[i]
		d.Spec.Grant.Tokens, d.Spec.Grant.Cost = &tokens, &two
		d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: applied}}
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: c.run.Name, UID: c.run.UID}}
	}
	c.decided[4].OwnerReferences[0].UID = "another"
	got := runnerpod.TaskOf(podInputOf(c.observed(), 1)).Limits
	want := task.Limits{Steps: 30 + 21, Tokens: 4_000_000, CostMicroUSD: 5_000_000, DurationSeconds: 3600, Depth: 3, WaitSeconds: 604800}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if none := withGrants(task.Limits{Steps: 1}, task.Limits{Steps: 1, Tokens: 5, CostMicroUSD: 5}); none != (task.Limits{Steps: 2}) {
		t.Errorf("a grant where there is no limit makes one: %+v", none)
	}
}

// Only a runner that may ask people is believed about how long it waited, and no
// clock of its own holds the operator back.
func TestWhenARunnerIsGivenUp(t *testing.T) {
	asks := gen.Agent(mayAskPeople)
	cases := map[string]struct {
		agent *v1alpha1.Agent
		heard time.Duration // since the runner began: when it reported last
		used  time.Duration // and what it said that it used
		want  time.Duration // since it began, seen after five hours
	}{
		"one that may not ask says that it used nothing": {gen.Agent(), 5 * hour, 0, hour + minute},
		"one that waited for four hours":                 {asks, 5 * hour, hour, 5*hour + minute},
		"one that has half an hour left":                 {asks, 5 * hour, 30 * minute, 5*hour + 31*minute},
		"one that says it used more than there is":       {asks, 5 * hour, 9 * hour, 5*hour + minute},
		"one that hangs since its third hour":            {asks, 3 * hour, 30 * minute, 3*hour + 31*minute},
		"one that never waited":                          {asks, 10 * minute, 10 * minute, hour + minute},
		"one whose clock is ahead":                       {asks, 9 * hour, 30 * minute, 5*hour + 31*minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), tc.agent)
			c.step()
			c.step()
			starts(1)(c)
			reports(1, used(tc.used))(c)
			c.run.Status.Progress.Sequence = c.now.Add(tc.heard).UnixMilli()
			c.now = c.now.Add(5 * hour)
			if got := overrunAt(c.observed()).Sub(gen.Noon); got != tc.want {
				t.Errorf("given up after %s, want %s", got, tc.want)
			}
		})
	}
}
