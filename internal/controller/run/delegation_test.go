package run

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func tokens(n v1alpha1.Tokens) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Tokens: &n} }
}

// delegationStories are about Runs that give work to others.
var delegationStories = map[string]story{
	"delegates": {
		title: "a Run without a volume waits in its pod for the Run that it asked for",
		agent: delegatesTo(),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(5*second, "x-s2c1 runs", isDoing("x-s2c1", v1alpha1.ReasonRunning)),
			at(2*hour, "x-s2c1 is done", does("x-s2c1", "Finished", "LGTM", 100)),
			at(2*hour+2*second, "the runner goes on", reports(1, acts(), used(9*second))),
			at(2*hour+9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(2*hour+10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"delegates-without-pod": {
		title: "a Run on a volume has no pod while it waits for another",
		agent: delegatesTo(onDisk),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(5*second, "x-s2c1 runs", isDoing("x-s2c1", v1alpha1.ReasonRunning)),
			at(122*second, "the runner leaves", reports(1, asksFor(review("s2c1")), leaves(task.ReasonWaiting))),
			at(123*second, "x-1 exits 75", exits(1, 75)),
			at(24*hour, "x-s2c1 is done", does("x-s2c1", "Finished", "LGTM", 100)),
			at(24*hour+1*second, "x-2 runs", starts(2)),
			at(24*hour+2*second, "the runner asks again", reports(2, asksFor(review("s2c1")))),
			at(24*hour+4*second, "the runner goes on", reports(2, acts())),
			at(24*hour+9*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(24*hour+10*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"delegates-to-several": {
		title: "what several Runs found is told as they end, and again to who does not hear",
		agent: delegatesTo(),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for two Runs", reports(1, asksFor(review("s2c1"), review("s2c2")))),
			at(60*second, "x-s2c2 is done", does("x-s2c2", "Finished", "LGTM", 100)),
			at(90*second, "the runner hears of it", reports(1, asksFor(review("s2c1")), spends(100))),
			at(120*second, "x-s2c1 fails", does("x-s2c1", "StepLimit", "Half of it is fine.", 100)),
			at(122*second, "the runner goes on", reports(1, acts(), spends(200))),
			at(130*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(131*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"delegates-to-nobody": {
		title: "a Run of an Agent that is not listed is refused",
		agent: delegatesTo(),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run of somebody else", reports(1, asksFor(review("s2c1", func(p *v1alpha1.PendingRequest) { p.Agent = "admin" })))),
			at(5*second, "the runner goes on", reports(1, acts())),
			at(9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"child-deleted": {
		title: "a Run that somebody deleted is not made again",
		agent: delegatesTo(onDisk),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run, and leaves", reports(1, asksFor(review("s2c1")))),
			at(3*second, "and leaves", reports(1, asksFor(review("s2c1")), leaves(task.ReasonWaiting))),
			at(4*second, "x-1 exits 75", exits(1, 75)),
			at(600*second, "somebody deletes x-s2c1", loses("x-s2c1")),
			at(601*second, "x-2 runs", starts(2)),
			at(602*second, "the runner asks again", reports(2, asksFor(review("s2c1")))),
			at(604*second, "the runner goes on", reports(2, acts())),
			at(609*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(610*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"delegates-and-cancelled": {
		title: "a Run whose call was cancelled is stopped, and one that is not there is not made",
		run:   tokens("1000"),
		agent: delegatesTo(),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(60*second, "the call is cancelled, and one that was not seen before", reports(1, asksFor(review("s2c1", cancelled), review("s2c2", cancelled)))),
			at(70*second, "x-s2c1 ends", does("x-s2c1", "Stopped", "Half of it is fine.", 100)),
			at(72*second, "the runner goes on", reports(1, acts(), spends(100), chargesChildren(100))),
			at(80*second, "the runner commits", reports(1, commits("Finished", ""), spends(100), chargesChildren(100))),
			at(81*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"delegates-and-stopped": {
		title: "a Run that is stopped stops those that it asked for",
		agent: delegatesTo(onDisk),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(3*second, "and leaves", reports(1, asksFor(review("s2c1")), leaves(task.ReasonWaiting))),
			at(4*second, "x-1 exits 75", exits(1, 75)),
			at(600*second, "a person stops the Run", stops),
		},
	},
	"delegates-and-ends": {
		title: "a Run that ends leaves nobody at work for it",
		agent: delegatesTo(),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(9*second, "the runner commits", reports(1, commits("TokenLimit", ""))),
			at(10*second, "x-1 exits 76", exits(1, 76)),
		},
	},
	"delegates-and-paused": {
		title: "a pause reaches those that a Run asked for, but for the one that a person paused",
		agent: delegatesTo(onDisk),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for two Runs", reports(1, asksFor(review("s2c1"), review("s2c2")))),
			at(5*second, "a person pauses x-s2c2", func(c *cluster) { c.child("x-s2c2").Spec.DesiredState = v1alpha1.DesiredPaused }),
			at(9*second, "a person pauses the Run", wants(v1alpha1.DesiredPaused)),
			at(10*second, "the runner asks for a third, and leaves", reports(1, asksFor(review("s2c1"), review("s2c2"), review("s2c3")), leaves(task.ReasonPaused))),
			at(11*second, "x-1 exits 75", exits(1, 75)),
			at(2*hour, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(2*hour+1*second, "x-2 runs", starts(2)),
			at(2*hour+2*second, "the runner asks again", reports(2, asksFor(review("s2c1"), review("s2c2"), review("s2c3")))),
			at(2*hour+60*second, "a person stops the Run", stops),
			at(2*hour+70*second, "the runner commits", reports(2, commits("Stopped", ""))),
			at(2*hour+71*second, "x-2 exits 65", exits(2, 65)),
		},
	},
	"delegates-within-limits": {
		title: "a Run for which too little is left waits until another gives its part back",
		run:   tokens("1000"),
		agent: delegatesTo(func(a *v1alpha1.Agent) { a.Spec.ParallelTools = 10 }),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for four Runs", reports(1, asksFor(review("s2c1"), review("s2c2"), review("s2c3"), review("s2c4")), spends(100))),
			at(60*second, "x-s2c1 is done", does("x-s2c1", "Finished", "LGTM", 10)),
			at(62*second, "the runner hears of it", reports(1, asksFor(review("s2c2"), review("s2c3"), review("s2c4")), spends(110))),
			at(70*second, "the others are done", func(c *cluster) {
				does("x-s2c2", "Finished", "LGTM", 290)(c)
				does("x-s2c3", "Finished", "LGTM", 300)(c)
				does("x-s2c4", "Finished", "LGTM", 300)(c)
			}),
			at(72*second, "the runner asks for one more", reports(1, asksFor(review("s3c1")), spends(1000))),
			at(75*second, "the runner commits", reports(1, commits("TokenLimit", ""))),
			at(76*second, "x-1 exits 76", exits(1, 76)),
		},
	},
	"delegates-over-quota": {
		title: "a quota of Runs is waited for; who is asked to answer is not kept from it",
		agent: delegatesTo(),
		beats: []beat{
			at(0, "the namespace has no room for Runs", func(c *cluster) { c.declines = forbidden("exceeded quota: runs") }),
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(20*second, "a person pauses the Run", wants(v1alpha1.DesiredPaused)),
			at(40*second, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(60*second, "there is room", func(c *cluster) { c.declines = nil }),
			at(90*second, "x-s2c1 is done", does("x-s2c1", "Finished", "LGTM", 10)),
			at(92*second, "the runner goes on", reports(1, acts())),
			at(95*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(96*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"quota-forever-for-a-child": {
		title: "a quota of Runs that stays is told to the agent after limits.pending",
		agent: delegatesTo(),
		beats: refusedForEver("the namespace has no room for Runs", forbidden("exceeded quota: runs")),
	},
	"no-right-to-make-a-child": {
		title: "a right that the operator lacks is waited for, and told to the agent after limits.pending",
		agent: delegatesTo(),
		beats: refusedForEver("the operator may create no Runs",
			forbidden(`User "system:serviceaccount:d:d" cannot create resource "runs" in API group "deckhand.dev"`)),
	},
	"name-of-a-child-taken": {
		title: "another Run with the name of a child is waited for, and told to the agent after limits.pending",
		agent: delegatesTo(),
		beats: refusedForEver("the names are taken", &children.NamesTakenError{Names: []string{"x-s2c1", "x-1f"}}),
	},
	"delegates-and-denied": {
		title: "a Run that admission refuses is told to the agent, once and for all",
		agent: delegatesTo(),
		beats: []beat{
			at(0, "a policy refuses Runs", func(c *cluster) { c.declines = forbidden("denied: no Runs on Sundays") }),
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(10*second, "the policy is gone", func(c *cluster) { c.declines = nil }),
			at(30*second, "the runner goes on", reports(1, acts())),
			at(35*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(36*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"denied-without-pod": {
		title: "a Run on a volume goes on to hear of it, when another is refused while it has no pod",
		agent: delegatesTo(onDisk),
		beats: []beat{
			at(0, "the namespace has no room for Runs", func(c *cluster) { c.declines = forbidden("exceeded quota: runs") }),
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(122*second, "the runner leaves", reports(1, asksFor(review("s2c1")), leaves(task.ReasonWaiting))),
			at(123*second, "x-1 exits 75", exits(1, 75)),
			at(150*second, "there is room, and a policy refuses Runs", func(c *cluster) { c.declines = forbidden("denied: no Runs on Sundays") }),
			at(240*second, "x-2 runs", starts(2)),
			at(242*second, "the runner asks again", reports(2, asksFor(review("s2c1")))),
			at(245*second, "the runner goes on", reports(2, acts())),
			at(249*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(250*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"denied-for-a-moment": {
		title: "a Run without a pod stays so, when another is refused once",
		agent: delegatesTo(onDisk),
		beats: []beat{
			at(0, "the namespace has no room for Runs", func(c *cluster) { c.declines = forbidden("exceeded quota: runs") }),
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1")))),
			at(122*second, "the runner leaves", reports(1, asksFor(review("s2c1")), leaves(task.ReasonWaiting))),
			at(123*second, "x-1 exits 75", exits(1, 75)),
			at(150*second, "there is room, and a policy refuses Runs", func(c *cluster) { c.declines = forbidden("denied: no Runs on Sundays") }),
			at(170*second, "the policy is gone", func(c *cluster) { c.declines = nil }),
			at(600*second, "a person stops the Run", stops),
		},
	},
	"waits-for-its-turn": {
		title: "a Run waits in the queue of its Agent as long as it takes, and only then for its Agent",
		run: func(r *v1alpha1.Run) {
			d := v1alpha1.Duration("1m")
			r.Spec.Limits = &v1alpha1.Limits{Pending: &d}
		},
		beats: []beat{
			at(0, "another is active, and one waits", func(c *cluster) {
				c.limit = 1
				c.others = []queue.Entry{{UID: "a", State: queue.Started}, {UID: "b", State: queue.Waiting}}
			}),
			at(120*second, "that ends", func(c *cluster) {
				c.others = []queue.Entry{{UID: "b", State: queue.Started}}
			}),
			at(300*second, "and that, but the Agent is gone", func(c *cluster) {
				c.others = nil
				c.revision, c.missing = nil, `Agent "fixer" not found in namespace team-a`
			}),
			at(330*second, "it is back", nil),
			at(331*second, "x-1 runs", starts(1)),
			at(340*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(341*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"child-outlives-its-ttl": {
		title: "a finished Run stays while the one that it is a part of is active",
		run: func(r *v1alpha1.Run) {
			ttl := int32(60)
			r.Spec.TTLSecondsAfterFinished = &ttl
		},
		beats: []beat{
			at(0, "it is a part of another", func(c *cluster) { c.above = []children.Ancestor{{UID: "p", Run: gen.Run()}} }),
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(3*second, "x-1 exits 0", exits(1, 0)),
			at(2*hour, "the other ends", func(c *cluster) {
				now := metav1.NewTime(c.now)
				c.above[0].Run.Status.CompletionTime = &now
			}),
		},
	},
}

func TestStoriesOfDelegation(t *testing.T) { playStories(t, delegationStories) }

// refusedForEver is a Run whose child Run is never created, until its agent learns that.
func refusedForEver(why string, err error) []beat {
	return []beat{
		at(0, why, func(c *cluster) { c.declines = err }),
		at(1*second, "x-1 runs", starts(1)),
		at(2*second, "the runner asks for a Run", reports(1, asksFor(review("s2c1", askedAfter(2*second))))),
		at(660*second, "the runner goes on", reports(1, acts())),
		at(720*second, "the runner commits", reports(1, commits("Finished", ""))),
		at(721*second, "x-1 exits 0", exits(1, 0)),
	}
}
