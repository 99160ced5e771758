package run

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var aDigest = strings.Repeat("d", 64)

// onVolume makes an Agent one whose journal outlives its pods.
func onVolume(a *v1alpha1.Agent) {
	a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume
	mayAskPeople(a)
}

// requestFor is the id of the request to approve a call, whose digest is aDigest.
func requestFor(call string) string { return call + "-" + digest.Short(aDigest) }

// approval is a call that waits for an approval, until a while after a time.
func approval(call string, until time.Duration) v1alpha1.PendingRequest {
	expires := metav1.NewTime(gen.Noon.Add(until))
	return v1alpha1.PendingRequest{
		ID: requestFor(call), Kind: task.PendingApproval, Tool: "Shell", Args: `{"command":"rm -r build"}`, Digest: aDigest, ExpiresAt: &expires,
	}
}

// leaves is a runner that leaves, for a reason of its own.
func leaves(reason task.Reason) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.Result = &v1alpha1.Result{Reason: string(reason)} }
}

// approves and denies are decisions of a user on a call.
func approves(call string) func(*cluster) {
	return func(c *cluster) {
		answers(requestFor(call), "")(c)
		c.decided[len(c.decided)-1].Spec.Type = v1alpha1.DecisionApprove
	}
}

func denies(call string) func(*cluster) {
	return func(c *cluster) {
		answers(requestFor(call), "")(c)
		c.decided[len(c.decided)-1].Spec.Type = v1alpha1.DecisionDeny
	}
}

// actsOn is a runner that made the call that was approved.
func actsOn(call string) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) {
		acts()(p)
		p.Decided = append(p.Decided, v1alpha1.DecidedRequest{Name: "x." + requestFor(call), Request: requestFor(call), Digest: aDigest})
	}
}

func wants(s v1alpha1.DesiredState) func(*cluster) {
	return func(c *cluster) { c.run.Spec.DesiredState = s }
}

// waitingStories are about Runs that wait without a pod.
var waitingStories = map[string]story{
	"approved": {
		title: "a Run that waits for an approval has no pod, and goes on with it",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "a call waits", reports(1, begun, awaits("AwaitingApproval", approval("s3c1", hour)))),
			at(122*second, "the runner leaves", reports(1, awaits("AwaitingApproval", approval("s3c1", hour)), leaves(task.ReasonWaiting))),
			at(123*second, "x-1 exits 75", exits(1, 75)),
			at(130*second, "its pod is deleted", vanishes(1)),
			at(600*second, "a person approves", approves("s3c1")),
			at(601*second, "x-2 runs", starts(2)),
			at(602*second, "the runner reports, and has not asked again yet", reports(2, acts())),
			at(603*second, "the runner acts on it", reports(2, actsOn("s3c1"))),
			at(610*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(611*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"denied-by-person": {
		title: "a denial goes to the next attempt as well",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "a call waits, and the runner leaves", reports(1, awaits("AwaitingApproval", approval("s3c1", hour)), leaves(task.ReasonWaiting))),
			at(3*second, "x-1 exits 75", exits(1, 75)),
			at(600*second, "a person denies", denies("s3c1")),
			at(601*second, "x-2 runs", starts(2)),
			at(603*second, "the runner acts on it", reports(2, acts("x."+requestFor("s3c1")))),
			at(610*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(611*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"nobody-decides": {
		title: "when nobody decides in time the agent is told so",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "a call waits, and the runner leaves", reports(1, awaits("AwaitingApproval", approval("s3c1", hour)), leaves(task.ReasonWaiting))),
			at(3*second, "x-1 exits 75", exits(1, 75)),
			at(hour+1*second, "x-2 runs", starts(2)),
			at(hour+5*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(hour+6*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"leaves-and-lingers": {
		title: "a runner that says that it leaves, and stays, is removed",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "a call waits, and the runner leaves", reports(1, awaits("AwaitingApproval", approval("s3c1", hour)), leaves(task.ReasonWaiting))),
			at(300*second, "a person stops the Run", stops),
		},
	},
	"decided-as-it-leaves": {
		title: "what is decided while the runner leaves is not lost",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "a call waits", reports(1, awaits("AwaitingApproval", approval("s3c1", hour)))),
			at(120*second, "a person approves", approves("s3c1")),
			at(120*second, "and the runner leaves", reports(1, awaits("AwaitingApproval", approval("s3c1", hour)), leaves(task.ReasonWaiting))),
			at(121*second, "x-1 exits 75", exits(1, 75)),
			at(122*second, "x-2 runs", starts(2)),
			at(124*second, "the runner acts on it", reports(2, actsOn("s3c1"))),
			at(130*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(131*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"durable-pod-lost": {
		title: "a Run on a volume goes on though it had begun to change things",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(5*second, "x-1 is evicted", isEvicted(1)),
			at(6*second, "x-2 runs", starts(2)),
			at(9*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(10*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"revision-deleted": {
		title: "a Run on a volume whose revision is gone says so when its pod is lost",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(4*second, "its Agent and its revision are deleted", func(c *cluster) {
				c.revision, c.missing = nil, "The revision of Agent fixer that this Run started with was deleted (ConfigMap fixer-0). Create a new Run"
			}),
			at(5*second, "x-1 is evicted", isEvicted(1)),
		},
	},
	"operator-downgraded": {
		title: "a Run whose revision a newer operator stored waits for that, and loses nothing",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(4*second, "the operator is downgraded", storedIn(3)),
			at(5*second, "the runner reports", reports(1, begun)),
			at(9*second, "x-1 is evicted", isEvicted(1)),
			at(3600*second, "the operator is upgraded", upgraded),
			at(3602*second, "x-2 runs", starts(2)),
			at(3603*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(3604*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"revision-too-old": {
		title: "a Run whose revision no operator of today reads ends when its pod is lost",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(4*second, "the operator is upgraded by too many releases", storedIn(0)),
			at(9*second, "x-1 is evicted", isEvicted(1)),
		},
	},
	"forged-decision": {
		title: "a Run whose runner acted on what nobody decided is not believed",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "a call waits", reports(1, awaits("AwaitingApproval", approval("s3c1", hour)))),
			at(9*second, "the runner acts on something", reports(1, actsOn("s3c1"))),
			at(10*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"paused-before": {
		title: "a Run that is paused before it began waits as long as it takes",
		run:   func(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredPaused },
		beats: []beat{
			at(2*hour, "a person lets it go", wants(v1alpha1.DesiredRunning)),
			at(2*hour+1*second, "x-1 runs", starts(1)),
			at(2*hour+9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(2*hour+10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"paused-and-resumed-before-it-runs": {
		title: "a Run that was paused only while its pod started does not hold",
		beats: []beat{
			at(1*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(3*second, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(4*second, "x-1 runs", starts(1)),
			at(9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"paused-while-it-starts": {
		title: "a Run on a volume that is paused while its pod starts leaves before its first step",
		agent: onVolume,
		beats: []beat{
			at(1*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(2*second, "x-1 runs", starts(1)),
			at(3*second, "the runner leaves", reports(1, leaves(task.ReasonPaused))),
			at(4*second, "x-1 exits 75", exits(1, 75)),
			at(2*hour, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(2*hour+1*second, "x-2 runs", starts(2)),
			at(2*hour+9*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(2*hour+10*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"paused-while-it-runs-unreported": {
		title: "a runner that works and has not reported is not paused yet",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(3*second, "the runner reports its first step", reports(1)),
			at(4*second, "the runner holds", reports(1, awaits("Paused"))),
			at(5*second, "a person stops it", stops),
			at(6*second, "x-1 exits 143", exits(1, 143)),
		},
	},
	"paused-while-its-image-is-pulled": {
		title: "a paused Run waits for an image for as long as it takes, and then anew",
		beats: []beat{
			at(1*second, "x-1 cannot be pulled", waits(1, "ImagePullBackOff", "Back-off pulling image")),
			at(60*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(2*hour, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
		},
	},
	"paused-without-room": {
		title: "a Run that is paused while a quota refuses its pod gets none until it goes on",
		agent: onVolume,
		beats: []beat{
			at(0, "the quota is full", refuses(forbidden("exceeded quota"))),
			at(5*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(10*second, "there is room", refuses(nil)),
			at(2*hour, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(2*hour+1*second, "x-1 runs", starts(1)),
			at(2*hour+2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(2*hour+3*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"paused-and-silent": {
		title: "a paused runner whose reports are refused",
		beats: []beat{
			at(1*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(2*second, "x-1 runs", starts(1)),
			at(62*second, "a minute has passed", func(*cluster) {}),
			at(90*second, "the API server takes its report", reports(1, awaits("Paused"))),
			at(95*second, "a person stops it", stops),
		},
	},
	"paused-in-its-pod": {
		title: "a Run without a volume is paused in its pod",
		run:   short,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(9*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(11*second, "the runner holds", reports(1, awaits("Paused"), used(11*second))),
			at(2*hour, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(2*hour+1*second, "the runner goes on", reports(1, awaits(""), used(12*second))),
			at(2*hour+9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(2*hour+10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"paused-and-hears-late": {
		title: "a runner that has not heard that it is paused is told again",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(9*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(60*second, "the runner holds", reports(1, awaits("Paused"))),
			at(300*second, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(330*second, "the runner goes on", reports(1, awaits(""))),
			at(340*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(341*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"paused-without-pod": {
		title: "a Run on a volume is paused without a pod",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(9*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(11*second, "the runner leaves", reports(1, leaves(task.ReasonPaused))),
			at(12*second, "x-1 exits 75", exits(1, 75)),
			at(2*hour, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(2*hour+1*second, "x-2 runs", starts(2)),
			at(2*hour+9*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(2*hour+10*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"paused-and-stopped": {
		title: "a paused Run may be stopped",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(9*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(10*second, "the runner reports", reports(1)),
			at(12*second, "the runner leaves", reports(1, leaves(task.ReasonPaused))),
			at(13*second, "x-1 exits 75", exits(1, 75)),
			at(2*hour, "a person stops it", stops),
		},
	},
	"paused-between-attempts": {
		title: "a failure while paused is tried again once it may go on",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(3*second, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(4*second, "x-1 exits 1", exits(1, 1)),
			at(hour, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(hour+1*second, "x-2 runs", starts(2)),
			at(hour+9*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(hour+10*second, "x-2 exits 0", exits(2, 0)),
		},
	},
}

func TestStoriesOfWaiting(t *testing.T) { playStories(t, waitingStories) }
