package gitops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/ssa"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// A repository is a namespace that Flux applies a Run to, and in which an operator
// works.
type repository struct {
	*apitest.Server
	t         *testing.T
	namespace string
	flux      *ssa.ResourceManager
	account   *corev1.ServiceAccount
	sequence  int64
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	s := apitest.Get(t)
	r := &repository{Server: s, t: t, namespace: s.Namespace(t)}
	r.account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: v1alpha1.RunnerServiceAccount}}
	model, agent := gen.Model(), gen.Agent()
	for _, o := range []client.Object{model, agent} {
		o.SetNamespace(r.namespace)
		o.SetUID("")
	}
	s.Create(t, model, agent, r.account,
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "runner"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"runs/status"}, Verbs: []string{"patch"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "runner"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "runner"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.namespace, Name: r.account.Name}},
		})
	r.flux = ssa.NewResourceManager(s.Admin, polling.NewStatusPoller(s.Admin, s.Admin.RESTMapper(), polling.Options{}), ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"})
	r.work()
	return r
}

// work runs an operator until the end of the test.
func (r *repository) work() {
	r.t.Helper()
	mgr, err := operator.New(r.t.Context(), r.Config, operator.Options{
		RunnerImage: "runner:1", RunnerPullPolicy: "IfNotPresent", PolicyPrefix: "deckhand", Namespaces: []string{r.namespace},
		MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("stopping the operator: %v", err)
		}
	})
}

// manifest is a Run as it is in Git.
func (r *repository) manifest() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Run",
		"metadata": map[string]any{"name": "applied", "namespace": r.namespace},
		"spec":     map[string]any{"agent": "fixer", "prompt": "Fix it.", "maxRetries": int64(0)},
	}}
}

// sync is what Flux does at each interval. It returns what it did to the Run.
func (r *repository) sync() ssa.Action {
	r.t.Helper()
	objects := []*unstructured.Unstructured{r.manifest()}
	r.flux.SetOwnerLabels(objects, "apps", "flux-system")
	changes, err := r.flux.ApplyAll(r.t.Context(), objects, ssa.DefaultApplyOptions())
	if err != nil {
		r.t.Fatalf("Flux does not apply it: %v", err)
	}
	return changes.Entries[0].Action
}

// drift is what Flux finds when it only compares.
func (r *repository) drift() ssa.Action {
	r.t.Helper()
	object := r.manifest()
	r.flux.SetOwnerLabels([]*unstructured.Unstructured{object}, "apps", "flux-system")
	entry, _, _, err := r.flux.Diff(r.t.Context(), object, ssa.DefaultDiffOptions())
	if err != nil {
		r.t.Fatalf("Flux does not compare it: %v", err)
	}
	return entry.Action
}

// await waits for the condition Succeeded to have a reason, and returns the Run
// with its status as kstatus reads it.
func (r *repository) await(reason string) (*v1alpha1.Run, status.Status) {
	r.t.Helper()
	var run v1alpha1.Run
	err := wait.PollUntilContextTimeout(r.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := r.Admin.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: "applied"}, &run); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, c := range run.Status.Conditions {
			if c.Type == v1alpha1.ConditionSucceeded && c.Reason == reason && (reason != v1alpha1.ReasonStarting || run.Status.Attempt.PodUID != "") {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		r.t.Fatalf("it is never %s: %+v", reason, run.Status.Conditions)
	}
	return &run, r.kstatus()
}

func (r *repository) kstatus() status.Status {
	r.t.Helper()
	live := r.manifest()
	if err := r.Admin.Get(r.t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		r.t.Fatal(err)
	}
	result, err := status.Compute(live)
	if err != nil {
		r.t.Fatal(err)
	}
	return result.Status
}

// report is the runner's write, with the token of its pod.
func (r *repository) report(run *v1alpha1.Run, p task.Progress) {
	r.t.Helper()
	pod := &corev1.Pod{}
	if err := r.Admin.Get(r.t.Context(), client.ObjectKey{Namespace: r.namespace, Name: run.Status.Attempt.Pod}, pod); err != nil {
		r.t.Fatal(err)
	}
	r.sequence++
	p.Version, p.Attempt, p.Sequence = task.Version, 1, time.Now().UnixMilli()+r.sequence
	value, err := json.Marshal(p)
	if err != nil {
		r.t.Fatal(err)
	}
	patch := fmt.Sprintf(`[{"op":"test","path":"/status/attempt/podUID","value":%q},{"op":"add","path":"/status/progress","value":%s}]`, pod.UID, value)
	if err := r.WithToken(r.t, r.Token(r.t, r.account, pod)).Status().Patch(r.t.Context(), run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		r.t.Fatalf("reporting: %v", err)
	}
}

// Flux applies the manifest of a Run again and again, and a person pauses the Run and
// answers it meanwhile: Flux sees no drift, and takes nothing back.
func TestFluxAppliesARunThatAPersonHasSteered(t *testing.T) {
	r := newRepository(t)
	if action := r.sync(); action != ssa.CreatedAction {
		t.Fatalf("at first Flux finds the Run %s", action)
	}
	run, _ := r.await(v1alpha1.ReasonStarting)
	r.report(run, task.Progress{State: v1alpha1.ReasonAwaitingAnswer, Pending: []task.Pending{{ID: "s3c1", Kind: task.PendingQuestion, Question: "?", AskedAt: "2030-01-01T00:00:00Z"}}})
	run, _ = r.await(v1alpha1.ReasonAwaitingAnswer)
	run.Spec.DesiredState = v1alpha1.DesiredPaused
	if err := r.Admin.Update(t.Context(), run, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	ann := r.As(t, "ann", r.namespace, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"decisions"}, Verbs: []string{"create"}})
	decision := &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "applied.s3c1"},
		Spec:       v1alpha1.DecisionSpec{Run: "applied", Request: "s3c1", Type: v1alpha1.DecisionAnswer, Value: "main", By: "ann"},
	}
	if err := ann.Create(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
	before := r.heard()
	if action := r.drift(); action != ssa.UnchangedAction {
		t.Errorf("Flux finds the Run %s", action)
	}
	if action := r.sync(); action != ssa.UnchangedAction {
		t.Errorf("Flux has the Run %s", action)
	}
	var after v1alpha1.Run
	if err := r.Admin.Get(t.Context(), client.ObjectKeyFromObject(run), &after); err != nil {
		t.Fatal(err)
	}
	if after.Spec.DesiredState != v1alpha1.DesiredPaused || after.Generation != run.Generation {
		t.Errorf("desiredState is %s, generation %d after %d", after.Spec.DesiredState, after.Generation, run.Generation)
	}
	if again := r.heard(); again != before {
		t.Errorf("the runner hears %s, and heard %s", again, before)
	}
}

// heard waits until the runner is told the pause and the answer, and returns what it
// is told.
func (r *repository) heard() string {
	r.t.Helper()
	var pod corev1.Pod
	err := wait.PollUntilContextTimeout(r.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := r.Admin.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: "applied-1"}, &pod)
		said := pod.Annotations[v1alpha1.AnnotationSignals]
		return strings.Contains(said, `"pause":true`) && strings.Contains(said, "main"), err
	})
	if err != nil {
		r.t.Fatalf("the runner hears %q (%v)", pod.Annotations[v1alpha1.AnnotationSignals], err)
	}
	return pod.Annotations[v1alpha1.AnnotationSignals]
}

// What Flux waits for, and what Argo CD and helm --wait show, is right in every
// state of a Run.
func TestKstatusOfARun(t *testing.T) {
	for name, tc := range map[string]struct {
		result task.Result
		reason string
		want   status.Status
	}{
		"that finishes": {task.Result{Committed: true, Reason: task.ReasonFinished, Text: "done"}, v1alpha1.ReasonFinished, status.CurrentStatus},
		"that fails":    {task.Result{Committed: true, Reason: task.ReasonStuck, Message: "no"}, v1alpha1.ReasonStuck, status.FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.sync()
			if is := r.kstatus(); is != status.InProgressStatus {
				t.Errorf("a new Run is %s", is)
			}
			run, is := r.await(v1alpha1.ReasonStarting)
			if is != status.InProgressStatus {
				t.Errorf("a Run that starts is %s", is)
			}
			r.report(run, task.Progress{})
			if run, is = r.await(v1alpha1.ReasonRunning); is != status.InProgressStatus {
				t.Errorf("a Run at work is %s", is)
			}
			r.report(run, task.Progress{Result: &tc.result})
			if _, is = r.await(tc.reason); is != tc.want {
				t.Errorf("in the end it is %s, want %s", is, tc.want)
			}
			err := r.flux.Wait([]*unstructured.Unstructured{r.manifest()}, ssa.WaitOptions{Interval: 50 * time.Millisecond, Timeout: time.Minute, FailFast: true})
			if (err == nil) != (tc.want == status.CurrentStatus) {
				t.Errorf("Flux waits for it, and says %v", err)
			}
			if action := r.sync(); action != ssa.UnchangedAction {
				t.Errorf("after its end Flux has it %s", action)
			}
		})
	}
}

// What Flux waits for, and what helm --wait and Argo CD show, of the other kinds: an
// object that names one which does not exist is in progress, since that may still be
// created; one that its own spec keeps from being ready has failed.
func TestKstatusOfTheOtherKinds(t *testing.T) {
	r := newRepository(t)
	for name, tc := range map[string]struct {
		kind string
		spec string
		want status.Status
	}{
		"a Model":                           {"Model", `{provider: OpenAI, modelID: m, fallbacks: [sonnet]}`, status.CurrentStatus},
		"a Model whose fallback is missing": {"Model", `{provider: OpenAI, modelID: m, fallbacks: [absent]}`, status.InProgressStatus},
		"an Agent":                          {"Agent", `{model: sonnet, instructions: You fix.}`, status.CurrentStatus},
		"an Agent whose Model is missing":   {"Agent", `{model: absent, instructions: You fix.}`, status.InProgressStatus},
		"an Agent that is invalid":          {"Agent", `{model: sonnet, instructions: "You fix ${{ input.absent }}."}`, status.FailedStatus},
		"a Toolset":                         {"Toolset", `{http: {url: "https://mcp.example.com"}}`, status.CurrentStatus},
		"a Workflow":                        {"Workflow", `{nodes: [{name: a, agent: fixer, prompt: x}]}`, status.CurrentStatus},
		"a Workflow whose Agent is missing": {"Workflow", `{nodes: [{name: a, agent: absent, prompt: x}]}`, status.InProgressStatus},
		"a Workflow with a cycle":           {"Workflow", `{nodes: [{name: a, agent: fixer, prompt: x, dependsOn: [b]}, {name: b, agent: fixer, prompt: x, dependsOn: [a]}]}`, status.FailedStatus},
		"a Schedule":                        {"Schedule", `{schedule: 30 3 * * *, runTemplate: {spec: {agent: fixer, prompt: x}}}`, status.CurrentStatus},
		"a Schedule that is invalid":        {"Schedule", `{schedule: 30 3 * * *, timeZone: Europe/Atlantis, runTemplate: {spec: {agent: fixer, prompt: x}}}`, status.FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			text := "{apiVersion: " + v1alpha1.GroupVersion.String() + ", kind: " + tc.kind + ", metadata: {generateName: x-}, spec: " + tc.spec + "}"
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatal(err)
			}
			o.SetNamespace(r.namespace)
			r.Create(t, o)
			if was, err := status.Compute(o); err != nil || was.Status != status.InProgressStatus {
				t.Errorf("before the operator has seen it, it is %v (%v)", was, err)
			}
			var is *status.Result
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
				if err := r.Admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
					return false, err
				}
				seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
				var err error
				is, err = status.Compute(o)
				return seen == o.GetGeneration(), err
			})
			if err != nil || is.Status != tc.want {
				t.Errorf("it is %v (%v), want %s: %v", is, err, tc.want, o.Object["status"])
			}
		})
	}
}
