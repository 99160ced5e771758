package run

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// mayAskPeople makes an Agent one that may ask people.
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
	"input-unread": {
		title: "and input beside a prompt for an Agent that declares none",
		run: func(r *v1alpha1.Run) {
			givenOnly(`{"prompt":"Say it.","city":"Oslo"}`)(r)
			r.Spec.Prompt = "Say it."
		},
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

func TestStoriesOfPeople(t *testing.T) { playStories(t, peopleStories) }
