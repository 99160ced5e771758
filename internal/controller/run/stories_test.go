package run

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var update = flag.Bool("update", false, "rewrite the golden stories")

// A beat is something that happens at a time.
type beat struct {
	at   time.Duration
	what string
	do   func(*cluster)
}

func at(d time.Duration, what string, do func(*cluster)) beat { return beat{d, what, do} }

type story struct {
	title string
	run   func(*v1alpha1.Run)
	agent func(*v1alpha1.Agent)
	alone bool // there is no Agent
	beats []beat
}

const second = time.Second

// stories are what users live through. Each is played to rest; what was seen
// and done is its golden file.
var stories = map[string]story{
	"finished": {
		title: "a Run does its work",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(1*second, "the runner reports", reports(1)),
			at(9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"finished-without-its-tools": {
		title: "a Run ends well, though no call reached its Toolset",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(9*second, "the runner commits with a warning", reports(1, commits("Finished", ""), warns("Every call of toolset weather failed (12 of 12): lookup wether.example: no such host. Check spec.requests.baseURL of Toolset weather."))),
			at(10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"crash": {
		title: "a crash is tried once more, then the Run gives up",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "x-1 exits 1", exits(1, 1)),
			at(20*second, "x-2 runs", starts(2)),
			at(21*second, "x-2 is OOM-killed", exits(2, 137, oomKilled)),
		},
	},
	"silent": {
		title: "a runner whose reports are refused",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(62*second, "a minute has passed", func(*cluster) {}),
			at(90*second, "the API server takes its report", reports(1)),
			at(91*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(92*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"hangs": {
		title: "a runner that hangs is ended by its liveness probe and tried once more",
		run:   func(r *v1alpha1.Run) { *r.Spec.MaxDisruptions = 0 },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(150*second, "x-1 is ended by the kubelet", exits(1, 137, says(0, task.Result{Reason: task.ReasonRunnerFailed, Message: "the runner did not respond"}))),
			at(170*second, "x-2 runs", starts(2)),
			at(171*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(172*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"no-retries": {
		title: "without retries the failure itself is the reason",
		run:   func(r *v1alpha1.Run) { *r.Spec.MaxRetries = 0 },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("ModelUnavailable", "the model endpoint is unavailable (HTTP 503)"))),
			at(3*second, "x-1 exits 69", exits(1, 69)),
		},
	},
	"pod-lost-early": {
		title: "a pod lost before it changed anything is replaced at once",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "x-1 is deleted", vanishes(1)),
			at(7*second, "x-2 runs", starts(2)),
			at(8*second, "the runner commits", reports(2, commits("Finished", ""))),
		},
	},
	"disrupted-too-often": {
		title: "the Run gives up when more pods are lost than spec.maxDisruptions allows",
		run:   func(r *v1alpha1.Run) { *r.Spec.MaxDisruptions = 1 },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "x-1 is evicted", isEvicted(1)),
			at(5*second, "x-2 runs", starts(2)),
			at(6*second, "x-2 is evicted", isEvicted(2)),
		},
	},
	"drained": {
		title: "a drained pod may finish in its grace, or be replaced after it",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "x-1 is told to go", isDeleted(1)),
			at(25*second, "x-1 exits 143", exits(1, 143)),
			at(26*second, "x-1 is gone", vanishes(1)),
			at(27*second, "x-2 runs", starts(2)),
			at(28*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(29*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"pod-lost-late": {
		title: "a pod lost after it began to change things ends the Run",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(5*second, "x-1 is evicted", isEvicted(1)),
		},
	},
	"report-before-kubelet": {
		title: "a runner that reports before the kubelet does is at work",
		beats: []beat{
			at(1*second, "the runner reports", reports(1)),
			at(4*second, "x-1 runs", starts(1)),
			at(700*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(701*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"kubelet-silent": {
		title: "a runner is not taken for pending because its kubelet is silent",
		beats: []beat{
			at(1*second, "the runner reports", reports(1)),
			at(900*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"clock-ahead": {
		title: "a runner whose clock is ahead is at work all the same",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports, an hour ahead", reports(1, func(p *v1alpha1.RunProgress) { p.Sequence += 3_600_000 })),
			at(5*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"queued": {
		title: "a pod with scheduling gates is queued, for as long as it takes",
		beats: []beat{
			at(0, "Kueue holds pods back", func(c *cluster) { c.gates = true }),
			at(7200*second, "Kueue lets x-1 go, and it runs", func(c *cluster) { c.pod(1).Status.Conditions = nil; starts(1)(c) }),
			at(7201*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(7202*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"commits-and-stays": {
		title: "a runner that commits a failure and does not leave is removed before the next",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("ModelUnavailable", "HTTP 503"))),
			at(90*second, "x-2 runs", starts(2)),
			at(91*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(92*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"deadline-between-attempts": {
		title: "limits.deadline beats another attempt",
		run: func(r *v1alpha1.Run) {
			d := v1alpha1.Duration("30s")
			r.Spec.Limits = &v1alpha1.Limits{Deadline: &d}
		},
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(25*second, "the runner commits", reports(1, commits("ModelUnavailable", "HTTP 503"))),
			at(26*second, "x-1 exits 69", exits(1, 69)),
		},
	},
	"second-attempt-hangs": {
		title: "limits.duration is one for all attempts",
		run: func(r *v1alpha1.Run) {
			d := v1alpha1.Duration("10m")
			r.Spec.Limits = &v1alpha1.Limits{Duration: &d}
		},
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(541*second, "the runner commits", reports(1, commits("ModelUnavailable", "HTTP 503"), func(p *v1alpha1.RunProgress) { p.Usage.DurationSeconds = 540 })),
			at(542*second, "x-1 exits 69", exits(1, 69)),
			at(560*second, "x-2 runs", starts(2)),
			at(561*second, "x-2 reports, and hangs", reports(2)),
		},
	},
	"slow-node": {
		title: "one failed pull after a long wait for a node is no typing error",
		beats: []beat{
			at(1*second, "no node takes x-1", isUnschedulable(1)),
			at(360*second, "a new node takes it", isPlaced(1)),
			at(361*second, "x-1 cannot pull its image", waits(1, "ErrImagePull", "i/o timeout")),
			at(380*second, "x-1 runs", starts(1)),
			at(381*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(382*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"forged": {
		title: "a pod with a forged owner and a result is not the Run's",
		beats: []beat{
			at(0, "somebody makes a pod x-1 that says it is done", isForged(1)),
			at(2*second, "x-2 runs", starts(2)),
			at(3*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(4*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"exit-zero-without-result": {
		title: "exit code 0 without a committed result is no success",
		run:   func(r *v1alpha1.Run) { *r.Spec.MaxDisruptions = 0 },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"second-channel": {
		title: "a result that could not be reported comes by the termination message",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(9*second, "x-1 exits 0 with a result", exits(1, 0, says(1, task.Result{Committed: true, Reason: task.ReasonFinished, Text: "done"}))),
		},
	},
	"zombie-word": {
		title: "the last word of another attempt is no result",
		run:   func(r *v1alpha1.Run) { *r.Spec.MaxDisruptions = 0 },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "x-1 exits 0 with a result of attempt 7", exits(1, 0, says(7, task.Result{Committed: true, Reason: task.ReasonFinished}))),
		},
	},
	"disowned": {
		title: "a pod whose owner and labels are taken away stays the attempt's, and gets them back",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "its owner and labels are taken away", isDisowned(1)),
			at(7*second, "another Run is made its owner", isTakenOver(1)),
			at(9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(10*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"stopped-before": {
		title: "a Run stopped before its pod starts just ends",
		beats: []beat{
			at(1*second, "a person stops the Run", stops),
		},
	},
	"stopped-running": {
		title: "a running Run is stopped at a safe point",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "a person stops the Run", stops),
			at(8*second, "the runner commits", reports(1, commits("Stopped", "Stopped at step 3"))),
			at(9*second, "x-1 exits 65", exits(1, 65)),
		},
	},
	"stopped-deaf": {
		title: "a runner that reaches no safe point is not waited for",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "a person stops the Run", stops),
		},
	},
	"stop-taken-back": {
		title: "a person takes a stop back, which the runner has heard: the Run ends all the same",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "a person stops the Run", stops),
			at(6*second, "a person wants it to run again, too late", wants(v1alpha1.DesiredRunning)),
			at(8*second, "the runner commits", reports(1, commits("Stopped", "Stopped at step 3"))),
			at(9*second, "x-1 exits 65", exits(1, 65)),
		},
	},
	"stop-taken-back-deaf": {
		title: "a person takes a stop back, and the runner finishes first: its result counts",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "a person stops the Run", stops),
			at(6*second, "a person wants it to run again", wants(v1alpha1.DesiredRunning)),
			at(60*second, "the runner reports", reports(1)),
			at(70*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(71*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"stop-races-with-success": {
		title: "what is committed first wins over a stop",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "a person stops the Run", stops),
			at(6*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"deadline": {
		title: "limits.deadline beats everything, waiting too",
		alone: true,
		run: func(r *v1alpha1.Run) {
			d := v1alpha1.Duration("1m")
			r.Spec.Limits = &v1alpha1.Limits{Deadline: &d}
		},
	},
	"ttl": {
		title: "a finished Run with a TTL goes, its pod before it",
		run: func(r *v1alpha1.Run) {
			ttl := int32(7200)
			r.Spec.TTLSecondsAfterFinished = &ttl
		},
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(3*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"ttl-in-git": {
		title: "a finished Run that Git tracks stays in spite of its TTL",
		run: func(r *v1alpha1.Run) {
			ttl := int32(60)
			r.Spec.TTLSecondsAfterFinished = &ttl
			r.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}
		},
		agent: func(a *v1alpha1.Agent) { a.Spec.Retention.Pod = "0s" },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(3*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"restored": {
		title: "a Run restored without its status is not done twice",
		run:   func(r *v1alpha1.Run) { r.Labels = map[string]string{"velero.io/restore-name": "nightly"} },
	},
	"migrated": {
		title: "a Run that Stork migrated without its status is not done twice",
		run:   func(r *v1alpha1.Run) { r.Annotations = map[string]string{"stork.libopenstorage.org/migrated": "true"} },
	},
	"too-large": {
		title: "a task that fits no pod is refused before there is one",
		run:   func(r *v1alpha1.Run) { r.Spec.Prompt = strings.Repeat("\"quoted\"\n", 7000) },
	},
}

func TestStories(t *testing.T) { playStories(t, stories) }

// playStories plays stories, each against its golden file.
func playStories(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			got := play(t, s)
			file := filepath.Join("testdata", "stories", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the story goes differently (-want +got):\n%s", diff)
			}
		})
	}
}
