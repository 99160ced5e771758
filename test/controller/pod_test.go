package controller_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// onVolume has the Agent keep its files on a volume.
func onVolume(a *v1alpha1.Agent) { a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume }

// withShell has it run commands.
func withShell(a *v1alpha1.Agent) {
	a.Spec.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinShell}}
	a.Spec.Sandbox = &v1alpha1.Sandbox{Image: "debian:stable-slim", Env: []v1alpha1.Variable{{Name: "A", Value: "1"}}}
}

func (b *fixture) claims() []corev1.PersistentVolumeClaim {
	b.t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := b.Admin.List(b.t.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(c corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })
}

// restrict has the namespace enforce restricted Pod Security.
func (b *fixture) restrict() {
	b.t.Helper()
	var ns corev1.Namespace
	if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Name: b.namespace}, &ns); err != nil {
		b.t.Fatal(err)
	}
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := b.Admin.Update(b.t.Context(), &ns); err != nil {
		b.t.Fatal(err)
	}
}

// A volume is made before the pod, is the same for all attempts, and goes when the
// work is done.
func TestVolumeIsTheRunsOwn(t *testing.T) {
	b := newFixture(t)
	b.update(onVolume)
	b.restrict()
	b.reconcileUntilStable()
	first, claims := b.get(), b.claims()
	if len(claims) != 1 || claims[0].Name != first.Status.Attempt.VolumeClaim || !metav1.IsControlledBy(&claims[0], first) {
		t.Fatalf("the claims are %+v, want %s of the Run", claims, first.Status.Attempt.VolumeClaim)
	}
	pod := b.onlyPod()
	now := int64(0)
	if err := b.Admin.Delete(t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	second := b.onlyPod()
	if len(b.claims()) != 1 || mounted(second) != claims[0].Name || b.get().Status.Attempt.VolumeClaim != claims[0].Name {
		t.Errorf("attempt 2 mounts %q", mounted(second))
	}
	b.startRunner(second)
	if err := b.report(second, task.Progress{Attempt: 2, Result: &task.Result{Committed: true, Reason: task.ReasonFinished}}); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	if len(b.claims()) != 1 {
		t.Error("the volume goes while a runner is alive")
	}
	b.endRunner(b.onlyPod(), 0, "")
	b.reconcileUntilStable()
	if claims := b.claims(); len(claims) != 1 || claims[0].DeletionTimestamp != nil {
		t.Errorf("the volume is deleted before the pod that has it: %+v", claims)
	}
	b.now = b.now.Add(25 * time.Hour) // longer than the pod and the volume stay
	for range 2 {
		if err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if pods, claims := b.pods(), b.claims(); len(pods)+len(claims) != 0 {
		t.Errorf("%d pods and %d volumes stay", len(pods), len(claims))
	}
}

func mounted(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// What lies on a claim is believed, so a stranger's is not mounted.
func TestForeignVolumeIsNeverMounted(t *testing.T) {
	b := newFixture(t)
	b.update(onVolume)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	foreign := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.get().Status.Attempt.VolumeClaim, Labels: map[string]string{v1alpha1.LabelRun: "x"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	b.Create(t, foreign)
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	if len(b.pods()) > 0 || !strings.Contains(message(b.get()), foreign.Name+" exists, but this Run did not create it. Delete it") {
		t.Errorf("%d pods; message is %q", len(b.pods()), message(b.get()))
	}
	foreign.Finalizers = nil
	if err := b.Admin.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if err := b.Admin.Patch(t.Context(), foreign, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.onlyPod()
}

// A claim that is deleted stays, with a deletion timestamp, until no pod uses it. No
// pod is created on it.
func TestDeletedVolumeIsNotMountedAgain(t *testing.T) {
	for name, tc := range map[string]struct{ effects, while, after string }{
		"after effects":  {task.EffectsBegun, "False PodLost", "False PodLost"},
		"before effects": {"", "Unknown Pending", "Unknown Starting"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			claim := b.loseVolume(tc.effects)
			b.expect(tc.while)
			if text := message(b.get()); len(b.pods()) > 0 || !strings.HasPrefix(text, "PersistentVolumeClaim "+claim.Name) {
				t.Errorf("%d pods; message is %q", len(b.pods()), text)
			}
			if err := b.Admin.Patch(t.Context(), claim, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				t.Fatal(err)
			}
			b.reconcileUntilStable()
			b.expect(tc.after)
			if slices.ContainsFunc(b.claims(), func(next corev1.PersistentVolumeClaim) bool { return next.UID == claim.UID }) {
				t.Error("the deleted claim is used again")
			}
		})
	}
}

// loseVolume starts a durable Run and deletes its claim and its pod.
func (b *fixture) loseVolume(effects string) *corev1.PersistentVolumeClaim {
	b.t.Helper()
	b.update(onVolume)
	b.reconcileUntilStable()
	pod, claim := b.onlyPod(), b.claims()[0]
	b.startRunner(pod)
	if err := b.report(pod, task.Progress{Attempt: 1, Effects: effects}); err != nil {
		b.t.Fatal(err)
	}
	b.reconcileUntilStable()
	now := int64(0)
	if err := errors.Join(b.Admin.Delete(b.t.Context(), &claim), b.Admin.Delete(b.t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &now})); err != nil {
		b.t.Fatal(err)
	}
	b.reconcileUntilStable()
	return &claim
}

func TestFullStorageQuotaIsWaitedFor(t *testing.T) {
	b := newFixture(t)
	b.update(onVolume)
	none := corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	b.Create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // no quota controller runs here
	if err := b.Admin.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown QuotaExceeded")
	if !strings.Contains(message(b.get()), "no room for the volume of the Run") || len(b.pods()) > 0 {
		t.Errorf("message is %q", message(b.get()))
	}
	b.now = b.now.Add(9 * time.Minute) // less than limits.pending
	b.reconcileUntilStable()
	b.expect("Unknown QuotaExceeded")
	quota.Status.Hard = corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("1")}
	if err := b.Admin.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	is := b.get().Status
	if pod := b.onlyPod(); pod.Name != "x-1" || is.Attempt.Number != 1 || is.Failures != 0 || is.Disruptions != 0 || len(b.claims()) != 1 {
		t.Errorf("pod %s of attempt %d, after %d failures and %d disruptions, with %d claims", pod.Name, is.Attempt.Number, is.Failures, is.Disruptions, len(b.claims()))
	}
}

// A ResourceQuota that counts limits requires them of every container. The chart's values give them,
// and the Run that waits continues.
func TestQuotaOnLimitsIsMetByTheChart(t *testing.T) {
	b := newFixture(t)
	b.update(withShell)
	hard, none := corev1.ResourceList{}, corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"} {
		hard[name], none[name] = resource.MustParse("100Gi"), resource.Quantity{}
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	b.Create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: none} // no quota controller runs here
	if err := b.Admin.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown QuotaExceeded")
	for _, want := range []string{"limits.cpu of containers install, runner and sandbox", "containerResources of the chart"} {
		if !strings.Contains(message(b.get()), want) {
			t.Errorf("the message does not say %q: %s", want, message(b.get()))
		}
	}
	b.supply.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
	b.now = b.now.Add(time.Minute)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.onlyPod()
}

// What a kubelet says of a pod that does not start stands in events alone.
func TestRunSaysWhyItsPodDoesNotStart(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	pod := b.onlyPod()
	for i, text := range []string{"an older thing", `MountVolume.SetUp failed for volume "ca": configmap "company-ca" not found`} {
		at := metav1.NewTime(b.now.Add(time.Duration(i) * time.Second))
		b.Create(t, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: b.namespace, GenerateName: "e-"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: b.namespace, Name: pod.Name, UID: pod.UID},
			Type:           corev1.EventTypeWarning, Reason: "FailedMount", Message: text, FirstTimestamp: at, LastTimestamp: at,
		})
	}
	b.now = b.now.Add(30 * time.Second)
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	if want := `FailedMount: MountVolume.SetUp failed for volume "ca": configmap "company-ca" not found`; !strings.Contains(message(b.get()), want) {
		t.Errorf("message is %q, want %q in it", message(b.get()), want)
	}
}

// A policy of somebody else's that adds a token to every container, as webhooks of
// clouds do.
func (b *fixture) inject(container, patch string) {
	b.t.Helper()
	name := "inject-" + b.namespace
	b.Create(b.t,
		&admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				MatchConstraints: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": b.namespace}},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
					}}},
				},
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
					ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: patch},
				}},
			},
		},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
		})
	b.eventually(func() bool { // the API server needs a moment to heed it
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "probe"},
			Spec:       corev1.PodSpec{InitContainers: []corev1.Container{{Name: container, Image: "c"}}, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}
		return b.Admin.Create(b.t.Context(), probe, client.DryRunAll) == nil && len(probe.Spec.InitContainers[0].Env) > 0
	})
}

const injection = `Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "sandbox", env: [Object.spec.initContainers.env{name: "AWS_WEB_IDENTITY_TOKEN_FILE", value: "/var/run/token"}]}]}}`

func TestAlteredSandboxEndsTheRun(t *testing.T) {
	b := newFixture(t)
	b.update(withShell)
	b.inject("sandbox", injection)
	b.reconcileUntilStable()
	b.expect("False SandboxAltered")
	for _, want := range []string{"container sandbox has the variable AWS_WEB_IDENTITY_TOKEN_FILE", "sandbox.allowInjected"} {
		if !strings.Contains(message(b.get()), want) {
			t.Errorf("the message does not say %q: %s", want, message(b.get()))
		}
	}
	if n := len(b.pods()); n != 0 {
		t.Errorf("%d pods stay", n)
	}
}

func TestInjectionsMayBeAllowed(t *testing.T) {
	b := newFixture(t)
	b.update(func(a *v1alpha1.Agent) {
		withShell(a)
		a.Spec.Sandbox.AllowInjected = []string{"AWS_WEB_IDENTITY_TOKEN_FILE"}
	})
	b.inject("sandbox", injection)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.onlyPod()
}

// What the API server itself fills in is no injection, and a pod with all its
// containers is welcome where restricted Pod Security is enforced.
func TestSandboxIsMadeAsItWasAskedFor(t *testing.T) {
	b := newFixture(t)
	b.Create(t, &v1alpha1.Toolset{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "issues"},
		Spec: v1alpha1.ToolsetSpec{Stdio: &v1alpha1.StdioServer{
			Command: []string{"issues-mcp"}, Container: &v1alpha1.ServerContainer{Image: "ghcr.io/acme/issues:2", Workspace: v1alpha1.WorkspaceAccessReadOnly},
			Env: []v1alpha1.ServerVariable{{Name: "TOKEN", ValueSecretRef: &v1alpha1.SecretKeyRef{Name: "issues", Key: "token"}}},
		}},
	})
	b.update(func(a *v1alpha1.Agent) {
		withShell(a)
		onVolume(a)
		a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Toolset: "issues"})
		a.Spec.Workspace.Git = &v1alpha1.Git{URL: "https://git.example.com/app.git", SecretRef: &v1alpha1.SecretRef{Name: "git"}, Publish: v1alpha1.PublishBranch}
		a.Spec.Workspace.Files = []v1alpha1.WorkspaceFiles{{ConfigMapRef: v1alpha1.ConfigMapRef{Name: "rules"}, Path: "docs/rules"}}
	})
	b.restrict()
	b.supply = runnerpod.Defaults{
		ImageMirror: "mirror.example/hub", ImagePullSecrets: []string{"mirror"},
		CABundle: &v1alpha1.ConfigMapKeyRef{Name: "ca", Key: "ca.crt"}, Proxy: &v1alpha1.Proxy{HTTP: "http://proxy.example:3128"},
	}
	b.networkPolicies()
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	pod := b.onlyPod()
	var names, images []string
	for _, c := range pod.Spec.InitContainers {
		names, images = append(names, c.Name), append(images, c.Image)
	}
	if diff := cmp.Diff([]string{"install", "fetch", "sandbox", "mcp-issues"}, names); diff != "" {
		t.Errorf("init containers -want +got:\n%s", diff)
	}
	const ours = "mirror.example/hub/runner:dev"
	if diff := cmp.Diff([]string{ours, ours, "mirror.example/hub/library/debian:stable-slim", "mirror.example/hub/acme/issues:2"}, images); diff != "" {
		t.Errorf("images -want +got:\n%s", diff)
	}
}
