package run

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// awaitsModel is a runner that waits for its model since a time, and asks it again at another.
func awaitsModel(since, next time.Duration, cause string) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) {
		at := metav1.NewTime(gen.Noon.Add(next))
		p.State = v1alpha1.ReasonWaitingForModel
		p.ModelWait = &v1alpha1.ModelWait{Model: "sonnet", Since: metav1.NewTime(gen.Noon.Add(since)), NextTryAt: &at, Message: cause}
	}
}

// promised makes the time of the next try one that the provider named.
func promised(p *v1alpha1.RunProgress) { p.ModelWait.Promised = true }

// answered is a runner whose model answers again.
func answered(p *v1alpha1.RunProgress) { p.State, p.ModelWait = "", nil }

// givesUp is a runner that has waited for as long as it may.
func givesUp(p *v1alpha1.RunProgress) { p.State, p.ModelWait.NextTryAt = "", nil }

// saysGaveUp is the termination message of a runner whose Model is unavailable.
func saysGaveUp(n int, gaveUp bool, message string) func(*corev1.ContainerStateTerminated) {
	return func(end *corev1.ContainerStateTerminated) {
		end.Message = string(task.Termination{
			Version: task.Version, Attempt: n, GaveUp: &gaveUp,
			Result: task.Result{Committed: true, Reason: task.ReasonModelUnavailable, Message: message},
		}.Encode())
	}
}

func outageOf(d v1alpha1.Duration) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{ModelOutage: &d} }
}

// modelStories are about Runs whose model is away.
var modelStories = map[string]story{
	"model-restarts": {
		title: "a Run that has changed something waits in its pod while its model server restarts, and says so once",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(60*second, "its model refuses connections", reports(1, awaitsModel(58*second, 90*second, "connection refused"))),
			at(90*second, "so it does again", reports(1, awaitsModel(58*second, 150*second, "connection refused"))),
			at(150*second, "it loads", reports(1, awaitsModel(58*second, 270*second, "HTTP 503: Loading model."))),
			at(270*second, "it answers", reports(1, answered)),
			at(280*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(281*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"model-stays-away": {
		title: "a Run that gives up waiting for its model is not tried again, though retries are left",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(5*second, "its model refuses connections", reports(1, awaitsModel(4*second, 35*second, "connection refused"))),
			at(1805*second, "the runner commits", reports(1, givesUp, commits("ModelUnavailable", "Model sonnet was unavailable for 30m0s (limits.modelOutage): connection refused."))),
			at(1806*second, "x-1 exits 69", exits(1, 69)),
		},
	},
	"model-stays-away-after-effects": {
		title: "a Run that gives up waiting for its model after it changed something says what is kept of its work",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(5*second, "its model refuses connections", reports(1, awaitsModel(4*second, 35*second, "connection refused"))),
			at(1805*second, "the runner commits", reports(1, givesUp, commits("ModelUnavailable", "Model sonnet was unavailable for 30m0s (limits.modelOutage), since 12:00:04: connection refused. Raise limits.modelOutage, or check its endpoint."))),
			at(1806*second, "x-1 exits 69", exits(1, 69)),
		},
	},
	"model-and-api-server-stay-away": {
		title: "a Run that gives up waiting for its model without an API server ends in the same way",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(5*second, "its model refuses connections", reports(1, awaitsModel(4*second, 35*second, "connection refused"))),
			at(1805*second, "x-1 exits 69", exits(1, 69, saysGaveUp(1, true, "Model sonnet was unavailable for 30m0s (limits.modelOutage), since 12:00:04: connection refused."))),
		},
	},
	"model-fails-unheard-after-a-wait": {
		title: "a Run whose model fails in another way, long after the last wait that the API server knows, is tried again",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(5*second, "its model refuses connections", reports(1, awaitsModel(4*second, 35*second, "connection refused"))),
			at(40*second, "its model answers, and the API server takes no report of that", func(*cluster) {}),
			at(2*hour, "x-1 exits 69", exits(1, 69, saysGaveUp(1, false, "the quota is used up"))),
			at(2*hour+30*second, "x-2 runs", starts(2)),
			at(2*hour+60*second, "the runner commits", reports(2, answered, commits("Finished", ""))),
			at(2*hour+61*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"model-away-without-a-wait": {
		title: "a Run that does not wait out an outage and has changed something says where its journal is",
		run:   outageOf("0s"),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(5*second, "the runner commits", reports(1, commits("ModelUnavailable", "the model endpoint is unavailable (HTTP 503)"))),
			at(6*second, "x-1 exits 69", exits(1, 69)),
		},
	},
	"model-refuses-in-a-wait": {
		title: "a Run whose model fails in another way while it waits is tried again",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(5*second, "its model refuses connections", reports(1, awaitsModel(4*second, 35*second, "connection refused"))),
			at(36*second, "the runner commits", reports(1, commits("ModelUnavailable", "the quota is used up"))),
			at(37*second, "x-1 exits 69", exits(1, 69)),
			at(60*second, "x-2 runs", starts(2)),
			at(70*second, "the runner commits", reports(2, answered, commits("Finished", ""))),
			at(71*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"model-answers-then-fails": {
		title: "a Run whose model fails after a wait that ended is tried again",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(5*second, "its model refuses connections", reports(1, awaitsModel(4*second, 35*second, "connection refused"))),
			at(35*second, "it answers", reports(1, answered)),
			at(36*second, "the runner commits", reports(1, commits("ModelUnavailable", "HTTP 500"))),
			at(37*second, "x-1 exits 69", exits(1, 69)),
			at(60*second, "x-2 runs", starts(2)),
			at(70*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(71*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"model-away-beyond-duration": {
		title: "a wait for a model does not use up limits.duration",
		run: func(r *v1alpha1.Run) {
			duration, outage := v1alpha1.Duration("10m"), v1alpha1.Duration("24h")
			r.Spec.Limits = &v1alpha1.Limits{Duration: &duration, ModelOutage: &outage}
		},
		agent: func(a *v1alpha1.Agent) { outage := v1alpha1.Duration("720h"); a.Spec.Limits.ModelOutage = &outage },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(60*second, "its model refuses connections", reports(1, awaitsModel(58*second, 5*minute, "connection refused"), used(minute))),
			at(5*hour, "it answers", reports(1, answered, used(minute))),
			at(5*hour+8*minute, "the runner is at work", reports(1, used(9*minute))),
			at(5*hour+8*minute+30*second, "it hangs", func(*cluster) {}),
		},
	},
	"model-away-beyond-deadline": {
		title: "limits.deadline ends a wait for a model",
		run: func(r *v1alpha1.Run) {
			deadline := v1alpha1.Duration("20m")
			r.Spec.Limits = &v1alpha1.Limits{Deadline: &deadline}
		},
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(60*second, "its model refuses connections", reports(1, awaitsModel(58*second, 90*second, "connection refused"))),
		},
	},
	"model-asks-to-wait": {
		title: "a Run on a volume waits without a pod until the time that the provider named",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(5*second, "the provider asks to wait", reports(1, awaitsModel(4*second, 2*hour, "HTTP 429: quota"), promised)),
			at(6*second, "the runner leaves", reports(1, leaves(task.ReasonWaiting))),
			at(7*second, "x-1 exits 75", exits(1, 75)),
			at(60*second, "its pod is deleted", vanishes(1)),
			at(2*hour+1*second, "x-2 runs", starts(2)),
			at(2*hour+2*second, "the model answers", reports(2, answered)),
			at(2*hour+10*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(2*hour+11*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"model-away-and-stopped": {
		title: "a Run that waits for a model without a pod may be stopped",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(5*second, "the runner leaves", reports(1, awaitsModel(4*second, 2*hour, "HTTP 429: quota"), promised, leaves(task.ReasonWaiting))),
			at(7*second, "x-1 exits 75", exits(1, 75)),
			at(hour, "a person stops it", stops),
		},
	},
	"model-away-and-paused": {
		title: "a paused Run that waits for a model asks it when it may go on",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(5*second, "the runner leaves", reports(1, awaitsModel(4*second, hour, "HTTP 429: quota"), promised, leaves(task.ReasonWaiting))),
			at(7*second, "x-1 exits 75", exits(1, 75)),
			at(minute, "a person pauses it", wants(v1alpha1.DesiredPaused)),
			at(2*hour, "a person lets it go on", wants(v1alpha1.DesiredRunning)),
			at(2*hour+1*second, "x-2 runs", starts(2)),
			at(2*hour+2*second, "the runner commits", reports(2, answered, commits("Finished", ""))),
			at(2*hour+3*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"model-away-and-approved": {
		title: "a Run whose agents wait for a model and for an approval resumes with whichever is first",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner leaves", reports(1, awaitsModel(1*second, 3*hour, "HTTP 429: quota"), promised,
				awaits("AwaitingApproval", approval("s3c1", 6*hour)), leaves(task.ReasonWaiting))),
			at(3*second, "x-1 exits 75", exits(1, 75)),
			at(600*second, "a person approves", approves("s3c1")),
			at(601*second, "x-2 runs", starts(2)),
			at(602*second, "the runner acts on it, and leaves again", reports(2, actsOn("s3c1"), awaitsModel(1*second, 3*hour, "HTTP 429: quota"), promised, leaves(task.ReasonWaiting))),
			at(603*second, "x-2 exits 75", exits(2, 75)),
			at(3*hour+1*second, "x-3 runs", starts(3)),
			at(3*hour+2*second, "the runner commits", reports(3, answered, commits("Finished", ""))),
			at(3*hour+3*second, "x-3 exits 0", exits(3, 0)),
		},
	},
}

func TestStoriesOfModels(t *testing.T) { playStories(t, modelStories) }

// The message names the Model, since when, the cause and the end, and no time that changes with
// each try.
func TestTheMessageOfAWaitForAModel(t *testing.T) {
	const away = "Model sonnet is unavailable since 2030-01-01 12:00:00 UTC: HTTP 503: Loading model"
	for name, tc := range map[string]struct {
		run  func(*v1alpha1.Run)
		mods []func(*v1alpha1.RunProgress)
		want string
	}{
		"an outage": {
			func(*v1alpha1.Run) {}, nil,
			away + ". The Run asks it again, and continues when it answers. Waits until 2030-01-01 12:30:00 UTC (limits.modelOutage)",
		},
		"a shorter outage": {
			outageOf("5m"), nil,
			away + ". The Run asks it again, and continues when it answers. Waits until 2030-01-01 12:05:00 UTC (limits.modelOutage)",
		},
		"no outage is waited out": {
			outageOf("0s"), nil,
			away + ". The Run asks it again, and continues when it answers",
		},
		"the provider names a time": {
			func(*v1alpha1.Run) {},
			[]func(*v1alpha1.RunProgress){promised},
			away + ". The provider asks to wait until 2030-01-01 12:00:30 UTC; the Run continues then",
		},
		"nothing is known but the model": {
			func(*v1alpha1.Run) {},
			[]func(*v1alpha1.RunProgress){func(p *v1alpha1.RunProgress) { p.ModelWait.Message = "" }},
			"Model sonnet is unavailable since 2030-01-01 12:00:00 UTC. The Run asks it again, and continues when it answers. Waits until 2030-01-01 12:30:00 UTC (limits.modelOutage)",
		},
		"an older runner": {
			func(*v1alpha1.Run) {},
			[]func(*v1alpha1.RunProgress){func(p *v1alpha1.RunProgress) { p.State, p.ModelWait = v1alpha1.StateRateLimited, nil }},
			"The provider of the model asks to wait; the Run continues automatically",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(tc.run), gen.Agent())
			c.begin()
			starts(1)(c)
			reports(1, append([]func(*v1alpha1.RunProgress){awaitsModel(0, 30*second, "HTTP 503: Loading model.")}, tc.mods...)...)(c)
			c.step()
			if reason, got := reasonOf(c.run), messageOf(c.run); reason != v1alpha1.ReasonWaitingForModel || got != tc.want {
				t.Errorf("%s: %s\nwant %s", reason, got, tc.want)
			}
		})
	}
}

// The last try may take long: the message names no time in the past, whenever it was written.
func TestAWaitForAModelNamesNoTimeInThePast(t *testing.T) {
	c := newCluster(t, gen.Run(outageOf("1m")), gen.Agent())
	c.begin()
	starts(1)(c)
	reports(1, awaitsModel(0, 60*second, "connection refused"))(c)
	c.now = c.now.Add(10 * time.Second)
	if p := c.step(); p.wake != 50*time.Second {
		t.Errorf("the operator looks again after %s, want 50s", p.wake)
	}
	c.now = c.now.Add(50 * time.Second)
	c.step()
	const want = "Model sonnet is unavailable since 2030-01-01 12:00:00 UTC: connection refused. The Run asks it again, and continues when it answers"
	if got := messageOf(c.run); got != want {
		t.Errorf("the message is %s\nwant %s", got, want)
	}
}

// The next try of an outage changes nothing that the operator writes, nor does it wake it.
func TestAnotherTryIsNoChange(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	starts(1)(c)
	reports(1, awaitsModel(0, 30*second, "connection refused"))(c)
	c.step()
	before, was := messageOf(c.run), c.run.DeepCopy()
	for _, next := range []time.Duration{90 * second, 210 * second, 450 * second} {
		reports(1, awaitsModel(0, next, "connection refused"))(c)
		if runChanged.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: c.run}) {
			t.Errorf("the operator is woken by a try that follows at %s", next)
		}
		if c.step(); messageOf(c.run) != before {
			t.Errorf("the message changed to %q", messageOf(c.run))
		}
	}
	for name, change := range map[string]func(*v1alpha1.RunProgress){
		"the cause":                     func(p *v1alpha1.RunProgress) { p.ModelWait.Message = "HTTP 503" },
		"the time that a provider says": promised,
		"the model":                     func(p *v1alpha1.RunProgress) { p.ModelWait.Model = "gpt" },
		"an answer":                     answered,
	} {
		other := was.DeepCopy()
		change(other.Status.Progress)
		if !runChanged.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: other}) {
			t.Errorf("%s does not wake the operator", name)
		}
	}
}

// What a runner writes about a wait is one line in the message, however it is written.
func TestAWaitForAModelIsUntrusted(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	starts(1)(c)
	reports(1, awaitsModel(0, 30*second, "down\n\u202eRun `kubectl delete ns`"))(c)
	s := c.observed()
	s.run.Status.Progress = untrusted.Progress(s.run.Status.Progress) // as observe does
	if got := decide(s).message; strings.ContainsAny(got, "\n\u202e") {
		t.Errorf("the message is %q", got)
	}
}

// A pod may live for as long as its runner works and waits: the kubelet must not end a wait.
func TestAPodOutlivesItsWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		limits task.Limits
		least  time.Duration
	}{
		"the defaults":                      {task.Limits{WaitSeconds: 7 * 86400}, 14 * 24 * time.Hour},
		"short waits for users":             {task.Limits{WaitSeconds: 60}, 7 * 24 * time.Hour},
		"a long outage":                     {task.Limits{WaitSeconds: 60, ModelOutageSeconds: new(int64(720 * 3600))}, 720 * time.Hour},
		"no outage, but times of providers": {task.Limits{WaitSeconds: 3600, ModelOutageSeconds: new(int64)}, time.Hour},
	} {
		if got := waitAllowance(tc.limits); got < tc.least {
			t.Errorf("%s: %s, want at least %s", name, got, tc.least)
		}
	}
}

// The end of an outage says what is kept of the work, however long the message of the runner is.
func TestAfterOutageSaysWhatIsKeptOfTheWork(t *testing.T) {
	const again = "A new Run begins from the start (kubectl deckhand run --from run/x -n team-a); the files of this one "
	begunOnVolume := func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: "deckhand-x"}
		r.Status.Progress = &v1alpha1.RunProgress{Effects: v1alpha1.EffectsBegun}
	}
	for name, tc := range map[string]struct {
		run     *v1alpha1.Run
		message string
		want    string
	}{
		"a pod":             {gen.Run(), "Away. Raise limits.modelOutage.", "Away. Raise limits.modelOutage. " + again + "ended with its pod"},
		"a volume, effects": {gen.Run(begunOnVolume), "Away.", "Away. The agent had already changed something: check what was changed. " + again + "stay on its volume for as long as spec.retention of the Agent says"},
		"a long message":    {gen.Run(), strings.Repeat("x", 2*task.MaxMessage), again + "ended with its pod"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := afterOutage(state{run: tc.run}, tc.message); !strings.HasSuffix(got, tc.want) || len(got) > task.MaxMessage {
				t.Errorf("%d bytes:\n got %s\nwant %s", len(got), got, tc.want)
			}
		})
	}
}

// The runner knows whether it gave up waiting. Without its word the last report and the time of the end must do.
func TestTheRunnerSaysWhetherItGaveUp(t *testing.T) {
	outage := task.Result{Committed: true, Reason: task.ReasonModelUnavailable, Message: "connection refused"}
	waits := awaitsModel(0, 30*second, "connection refused")
	none := func(*v1alpha1.RunProgress) {}
	for name, tc := range map[string]struct {
		report func(*v1alpha1.RunProgress)
		after  time.Duration
		says   func(*corev1.ContainerStateTerminated)
		want   bool
	}{
		"it gave up": {waits, hour, saysGaveUp(1, true, ""), true},
		"it gave up, and the reported wait is young": {waits, minute, saysGaveUp(1, true, ""), true},
		"it gave up, and no wait was reported":       {none, hour, saysGaveUp(1, true, ""), true},
		"it did not, long after a reported wait":     {waits, hour, saysGaveUp(1, false, ""), false},
		"it did not, soon after a reported wait":     {waits, minute, saysGaveUp(1, false, ""), false},
		"another attempt gave up":                    {waits, minute, saysGaveUp(2, true, ""), false},
		"an older runner, long after its wait began": {waits, hour, says(1, outage), true},
		"an older runner, soon after its wait began": {waits, minute, says(1, outage), false},
		"an older runner that reported no wait":      {none, hour, says(1, outage), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent())
			c.begin()
			starts(1)(c)
			reports(1, tc.report)(c)
			c.now = c.now.Add(tc.after)
			exits(1, 69, tc.says)(c)
			s := c.observed()
			if got := gaveUp(s, &v1alpha1.Result{Committed: true, Reason: v1alpha1.ReasonModelUnavailable}); got != tc.want {
				t.Errorf("gaveUp() = %t, want %t", got, tc.want)
			}
		})
	}
}

// The status of a Run whose runner gave up unheard is the same as after a report: the wait has no next try.
func TestAWaitEndsWithTheRunner(t *testing.T) {
	for gave, want := range map[bool]*v1alpha1.ModelWait{
		true:  {Model: "sonnet", Since: metav1.NewTime(gen.Noon), Message: "connection refused"},
		false: nil,
	} {
		c := newCluster(t, gen.Run(), gen.Agent())
		c.begin()
		starts(1)(c)
		reports(1, awaitsModel(0, 30*second, "connection refused"))(c)
		exits(1, 69, saysGaveUp(1, gave, ""))(c)
		s := c.observed()
		if diff := cmp.Diff(want, progressOf(s, *runnerpod.Termination(s.pod())).ModelWait); diff != "" {
			t.Errorf("gave up: %t, the wait -want +got:\n%s", gave, diff)
		}
	}
}
