package run

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// lackedSecret is the last word of a runner that waited for a Secret.
func lackedSecret(n int, seconds int64) func(*corev1.ContainerStateTerminated) {
	return func(end *corev1.ContainerStateTerminated) {
		end.Message = string(task.Termination{
			Version: task.Version, Attempt: n, Usage: task.Usage{DurationSeconds: seconds},
			Result: task.Result{Reason: task.ReasonSecretMissing, Message: "Secret sonnet has no key api-key in namespace team-a"},
		}.Encode())
	}
}

// pendingOf gives a Run its limits.pending.
func pendingOf(d v1alpha1.Duration) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Pending: &d} }
}

// lackedRules is what the operator says of the first ConfigMap of an Agent, which does not exist.
var lackedRules = configMapMissing("team-a", runnerpod.RequiredConfigMap{Name: "rules", Field: "spec.workspace.files of the Agent"})

func withRules(a *v1alpha1.Agent) {
	a.Spec.Workspace.Files = []v1alpha1.WorkspaceFiles{{ConfigMapRef: v1alpha1.ConfigMapRef{Name: "rules"}, Path: "docs/rules"}}
}

var forbidden = func(text string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x-1", fmt.Errorf("%s", text)) //nolint:err113 // the API server's words
}

// startStories are those of a Run whose pod is refused, or does not start.
var startStories = map[string]story{
	"webhook-denies": {
		title: "a webhook that denies without a code is a denial",
		beats: []beat{
			at(0, "a webhook denies pods", refuses(apierrors.NewBadRequest(`admission webhook "guard.example" denied the request: no`))),
		},
	},
	"policy-denies": {
		title: "a policy that denies as invalid is a denial",
		beats: []beat{
			at(0, "a policy denies pods", refuses(apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x-1", field.ErrorList{field.Invalid(nil, "x", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no")}))),
		},
	},
	"refused-forever": {
		title: "a refusal that nobody knows is told, and ends with limits.pending",
		beats: []beat{
			at(0, "the server does not take pods", refuses(apierrors.NewBadRequest("bad luck"))),
		},
	},
	"configmap-missing": {
		title: "a ConfigMap that the pod mounts is waited for, and named",
		agent: withRules,
		beats: []beat{
			at(3*second, "the ConfigMap rules does not exist", func(c *cluster) { c.lacks = lackedRules }),
			at(100*second, "it is created, and x-1 runs", func(c *cluster) { c.lacks = ""; starts(1)(c) }),
			at(101*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(102*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"configmap-never": {
		title: "a ConfigMap that nobody creates ends the Run after limits.pending",
		agent: withRules,
		beats: []beat{
			at(3*second, "the ConfigMap rules does not exist", func(c *cluster) { c.lacks = lackedRules }),
		},
	},
	"secret-missing": {
		title: "a missing Secret is waited for and charged to nobody",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(61*second, "x-1 exits 78", exits(1, 78, says(1, task.Result{Reason: task.ReasonSecretMissing, Message: "Secret sonnet has no key api-key in namespace team-a"}))),
			at(130*second, "x-2 runs", starts(2)),
			at(131*second, "the runner commits", reports(2, commits("Finished", ""))),
		},
	},
	"secret-missing-twice": {
		title: "attempts that only waited are charged to nothing and leave one pod at most",
		run: func(r *v1alpha1.Run) {
			limit := v1alpha1.Duration("20s")
			r.Spec.Limits = &v1alpha1.Limits{Duration: &limit}
		},
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(16*second, "x-1 exits 78, and says that it lived for 15 s", exits(1, 78, lackedSecret(1, 15))),
			at(40*second, "x-2 runs", starts(2)),
			at(55*second, "x-2 exits 78, and says that it lived for 30 s", exits(2, 78, lackedSecret(2, 30))),
			at(120*second, "x-3 runs", starts(3)),
			at(122*second, "the runner commits", reports(3, commits("Finished", ""))),
			at(123*second, "x-3 exits 0", exits(3, 0)),
		},
	},
	"secret-deleted-late": {
		title: "an attempt that worked before its Secret went is charged for its work, and waits from then on",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(1800*second, "x-1 exits 78 after 7 steps", exits(1, 78, func(end *corev1.ContainerStateTerminated) {
				end.Message = string(task.Termination{
					Version: task.Version, Attempt: 1, Counts: task.Counts{Steps: 7, ModelCalls: 7}, Usage: task.Usage{DurationSeconds: 1799},
					Result: task.Result{Reason: task.ReasonSecretMissing, Message: "Secret sonnet has no key api-key in namespace team-a"},
				}.Encode())
			})),
			at(1850*second, "x-2 runs", starts(2)),
			at(1860*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(1861*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"secret-never": {
		title: "a Secret that never comes ends the Run after limits.pending",
		run:   pendingOf("3m"),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(61*second, "x-1 exits 78", exits(1, 78, says(1, task.Result{Reason: task.ReasonSecretMissing, Message: "Secret sonnet has no key api-key in namespace team-a"}))),
			at(170*second, "x-2 runs", starts(2)),
			at(185*second, "x-2 exits 78", exits(2, 78, lackedSecret(2, 15))),
		},
	},
	"secret-added-and-silent": {
		title: "a runner that has its Secret and whose reports do not arrive works beyond limits.pending",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(16*second, "x-1 exits 78", exits(1, 78, lackedSecret(1, 15))),
			at(2*minute, "the Secret exists, and x-2 runs", starts(2)),
			at(11*minute, "limits.pending has passed", func(*cluster) {}),
			at(12*minute, "the API server takes its report", reports(2)),
			at(12*minute+1*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(12*minute+2*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"secret-added-just-in-time": {
		title: "a runner that starts right before limits.pending ends may find its Secret",
		run:   pendingOf("3m"),
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(61*second, "x-1 exits 78", exits(1, 78, lackedSecret(1, 15))),
			at(178*second, "the Secret exists, and x-2 runs", starts(2)),
			at(182*second, "the runner reports", reports(2)),
			at(190*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(191*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"secret-never-while-pulling": {
		title: "a pull during a wait for a Secret does not make limits.pending longer",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(16*second, "x-1 exits 78", exits(1, 78, says(1, task.Result{Reason: task.ReasonSecretMissing, Message: "Secret sonnet has no key api-key in namespace team-a"}))),
			at(6*minute, "x-2 is placed", isPlaced(2)),
			at(7*minute, "x-2 cannot pull its image", waits(2, "ImagePullBackOff", "Back-off pulling image")),
		},
	},
	"start-never": {
		title: "a pod that a cluster node does not start ends the Run after limits.pending, with what the pod shows",
		beats: []beat{
			at(1*second, "x-1 is placed", isPlaced(1)),
			at(2*second, "its container is being created", waits(1, "ContainerCreating", "")),
		},
	},
	"agent-late": {
		title: "a Run applied before its Agent waits for it",
		alone: true,
		beats: []beat{
			at(30*second, "the Agent is applied", nil),
			at(31*second, "x-1 runs", starts(1)),
			at(32*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"agent-never": {
		title: "an Agent that never comes ends the Run after limits.pending",
		alone: true,
	},
	"quota": {
		title: "a full quota is waited for, and no attempt is burnt",
		beats: []beat{
			at(0, "the quota is full", refuses(forbidden("exceeded quota: pods, requested: pods=1, used: pods=5, limited: pods=5"))),
			at(10*second, "there is room", refuses(nil)),
			at(16*second, "x-1 runs", starts(1)),
			at(17*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"quota-requires-limits": {
		title: "a quota that requires limits says which and where, and a LimitRange lets the Run go on",
		beats: []beat{
			at(0, "a quota requires limits", refuses(forbidden("failed quota: q: must specify limits.cpu for: fetch,runner,sandbox; requests.memory for: sandbox"))),
			at(10*second, "there is a LimitRange", refuses(nil)),
			at(16*second, "x-1 runs", starts(1)),
			at(17*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"admission-denied": {
		title: "a pod that admission refuses ends the Run with the refusal",
		beats: []beat{
			at(0, "a policy refuses pods", refuses(forbidden(`violates PodSecurity "restricted:latest"`))),
		},
	},
	"server-down": {
		title: "a server that is down says nothing about the Run",
		beats: []beat{
			at(0, "the API server is down", refuses(errDown)),
			at(5*second, "it is back", refuses(nil)),
			at(7*second, "x-1 runs", starts(1)),
			at(8*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"squatted": {
		title: "a name that somebody else's pod holds is skipped",
		beats: []beat{
			at(0, "a foreign pod is called x-1", isSquatted(1)),
			at(2*second, "x-2 runs", starts(2)),
			at(3*second, "the runner commits", reports(2, commits("Finished", ""))),
		},
	},
	"unschedulable": {
		title: "a pod that fits no node waits for room, limits.pending at most",
		beats: []beat{
			at(1*second, "no node takes x-1", isUnschedulable(1)),
		},
	},
	"image-typo": {
		title: "an image that cannot be pulled ends the Run after five minutes",
		beats: []beat{
			at(1*second, "x-1 cannot pull its image", waits(1, "ErrImagePull", "not found")),
			at(20*second, "x-1 still cannot", waits(1, "ImagePullBackOff", "Back-off pulling image")),
		},
	},
	"slow-node-and-registry": {
		title: "a Run whose node came late and whose image was not pulled by limits.pending ends with both",
		beats: []beat{
			at(1*second, "no node takes x-1", isUnschedulable(1)),
			at(9*minute+50*second, "a new node takes it", isPlaced(1)),
			at(9*minute+55*second, "x-1 cannot pull its image", waits(1, "ErrImagePull", "i/o timeout")),
		},
	},
	"image-typo-and-short-pending": {
		title: "an image that cannot be pulled ends a Run with a short limits.pending at that time",
		run:   pendingOf("3m"),
		beats: []beat{
			at(1*second, "x-1 cannot pull its image", waits(1, "ErrImagePull", "not found")),
		},
	},
	"image-name": {
		title: "an image that is no name ends the Run at once",
		beats: []beat{
			at(1*second, "x-1 has no image name", waits(1, "InvalidImageName", "couldn't parse image name")),
		},
	},
}

func TestStoriesOfStarts(t *testing.T) { playStories(t, startStories) }
