//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// Whoever holds the built-in role edit may do much in a namespace, and may not
// speak for the operator or the runner.
func TestEditorCannotSpeakForTheOperator(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("changer")
	run := p.run("changer")
	pod := p.pod(run, 1)
	eve := p.as("eve", "edit")
	merge := func(text string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(text)) }
	strategic := func(text string) client.Patch {
		return client.RawPatch("application/strategic-merge-patch+json", []byte(text))
	}
	secured := func(name, account string) *corev1.Pod {
		c := corev1.Container{Name: "runner", Image: "evil", SecurityContext: pod.Spec.Containers[0].SecurityContext}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: name},
			Spec:       corev1.PodSpec{ServiceAccountName: account, SecurityContext: pod.Spec.SecurityContext, Containers: []corev1.Container{c}},
		}
	}
	debugger, err := json.Marshal(corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "e", Image: "evil", SecurityContext: pod.Spec.Containers[0].SecurityContext,
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.allow("eve", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"patch"}})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: v1alpha1.RunnerServiceAccount}}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"forging a stop":                {eve.Patch(t.Context(), pod.DeepCopy(), merge(`{"metadata":{"annotations":{"deckhand.dev/signals":"{\"stop\":true}"}}}`)), "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"forging a decision":            {eve.Patch(t.Context(), pod.DeepCopy(), merge(`{"metadata":{"annotations":{"deckhand.dev/signals":"{\"decisions\":[{\"name\":\"changer.s2c1\",\"request\":\"s2c1\",\"type\":\"Approve\"}]}"}}}`)), "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"forging a task":                {eve.Patch(t.Context(), pod.DeepCopy(), merge(`{"metadata":{"annotations":{"deckhand.dev/task":"{}"}}}`)), "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"another image":                 {eve.Patch(t.Context(), pod.DeepCopy(), strategic(`{"spec":{"containers":[{"name":"runner","image":"evil"}]}}`)), "only the operator may change images of a runner pod"},
		"squatting the next attempt":    {eve.Create(t.Context(), secured("changer-2", v1alpha1.RunnerServiceAccount)), "only the operator may create pods with the ServiceAccount deckhand-runner: create a Run instead"},
		"the runner's token":            {eve.SubResource("token").Create(t.Context(), account, tokenFor(pod)), "tokens of the ServiceAccount deckhand-runner are issued to kubelets only"},
		"an ephemeral container":        {eve.SubResource("ephemeralcontainers").Patch(t.Context(), pod.DeepCopy(), strategic(`{"spec":{"ephemeralContainers":[`+string(debugger)+`]}}`)), "a runner pod must not have ephemeral containers"},
		"another task by the ConfigMap": {eve.Patch(t.Context(), p.revision(t), merge(`{"data":{"runner.json":"{}"}}`)), "field is immutable when `immutable` is set"},
		"a result":                      {eve.Status().Patch(t.Context(), run.DeepCopy(), merge(`{"status":{"progress":{"result":{"committed":true}}}}`)), `cannot patch resource "runs/status"`},
	} {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: the server says %v, want it to say %q", name, tc.err, tc.want)
		}
	}
	// She may make a pod that says it is the Run's; nobody believes it.
	owned := secured("changer-3", "default")
	owned.Labels = map[string]string{v1alpha1.LabelRun: run.Name, v1alpha1.LabelAttempt: "3"}
	owned.OwnerReferences = pod.OwnerReferences
	if err := eve.Create(t.Context(), owned); err != nil {
		t.Errorf("a pod of her own: %v", err)
	}
	seen := p.ends(run, "True Finished")
	if seen.Status.Attempt.Number != 1 {
		t.Errorf("attempt %d was taken", seen.Status.Attempt.Number)
	}
}

// allow gives a person rights in the namespace in addition to those of their role.
func (p *testNamespace) allow(user string, rules ...rbacv1.PolicyRule) {
	p.t.Helper()
	name := user + "-more"
	p.create(
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	)
}

// tokenFor asks for a token that is bound to a pod, as the kubelet does.
func tokenFor(pod *corev1.Pod) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
}

// revision is the ConfigMap of the only revision of a namespace.
func (p *testNamespace) revision(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	var list corev1.ConfigMapList
	if err := cluster.admin.List(t.Context(), &list, client.InNamespace(p.name), client.HasLabels{v1alpha1.LabelRevision}); err != nil || len(list.Items) != 1 {
		t.Fatalf("listing revisions: %v (%d)", err, len(list.Items))
	}
	return &list.Items[0]
}

// The pod of an Agent without commands is the runner alone, without a key in its
// environment. Who may exec into it finds no shell, and cannot start the runner again.
func TestARunnerPodHasNothingToExec(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("idler")
	pod := p.awaitRunner(p.run("idler"))
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) != 0 {
		t.Errorf("the pod has %d containers and %d init containers", len(pod.Spec.Containers), len(pod.Spec.InitContainers))
	}
	for _, e := range pod.Spec.Containers[0].Env {
		if strings.Contains(e.Value, key) || e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			t.Errorf("the environment holds a secret: %+v", e)
		}
	}
	for program, want := range map[string]string{
		"/bin/sh": "no such file or directory",
		"/runner": "This program is the first process of a runner pod and nothing else",
	} {
		if said, err := p.execIn(pod.Name, "runner", program); err == nil || !strings.Contains(said, want) {
			t.Errorf("exec of %s says %q (%v), want it to say %q", program, said, err, want)
		}
	}
}

// Whoever has the token of a runner may write the progress of its own Run, and do
// nothing else.
func TestARunnersTokenHasOneRight(t *testing.T) {
	t.Parallel()
	p, elsewhere := newNamespace(t), newNamespace(t)
	p.agent("idler")
	run := p.run("idler")
	neighbor := p.run("idler", func(r *v1alpha1.Run) { r.Name = "neighbor" })
	elsewhere.agent("idler")
	foreign := elsewhere.run("idler")
	pod := p.awaitRunner(run)
	p.await(neighbor, "reports", func(r *v1alpha1.Run) bool { return r.Status.Progress != nil })
	elsewhere.awaitRunner(foreign)

	token, account := tokenFor(pod), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: v1alpha1.RunnerServiceAccount}}
	if err := cluster.admin.SubResource("token").Create(t.Context(), account, token.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("the server says to an administrator: %v", err)
	}
	if err := p.as(apitest.Operator, "cluster-admin").SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatalf("issuing a token: %v", err)
	}
	cfg := rest.AnonymousClientConfig(cluster.config)
	cfg.BearerToken = token.Status.Token
	runner, err := client.New(cfg, client.Options{Scheme: cluster.admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	report := func(run *v1alpha1.Run, more string) error {
		const progress = `{"op":"add","path":"/status/progress","value":{"version":1,"attempt":1,"sequence":9000000000000}}`
		return runner.Status().Patch(t.Context(), run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte("["+progress+more+"]")), client.DryRunAll)
	}
	if err := report(run, ""); err != nil {
		t.Fatalf("it may not report the progress of its own Run: %v", err)
	}
	in := client.InNamespace(p.name)
	of := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: p.name, Name: name} }
	executes := api.CoreV1().RESTClient().Post().Namespace(p.name).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "runner", Command: []string{"/runner"}, Stdout: true}, scheme.ParameterCodec).Do(t.Context()).Error()
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"executing in its pod":         {executes, `cannot create resource "pods/exec"`},
		"reading its log":              {api.CoreV1().Pods(p.name).GetLogs(pod.Name, &corev1.PodLogOptions{}).Do(t.Context()).Error(), `cannot get resource "pods/log"`},
		"reading its pod":              {runner.Get(t.Context(), of(pod.Name), &corev1.Pod{}), `cannot get resource "pods"`},
		"listing pods":                 {runner.List(t.Context(), &corev1.PodList{}, in), `cannot list resource "pods"`},
		"reading the key of its model": {runner.Get(t.Context(), of("key"), &corev1.Secret{}), `cannot get resource "secrets"`},
		"listing Secrets":              {runner.List(t.Context(), &corev1.SecretList{}, in), `cannot list resource "secrets"`},
		"reading its own Run":          {runner.Get(t.Context(), of(run.Name), &v1alpha1.Run{}), `cannot get resource "runs"`},
		"listing Runs":                 {runner.List(t.Context(), &v1alpha1.RunList{}, in), `cannot list resource "runs"`},
		"deleting its own Run":         {runner.Delete(t.Context(), run.DeepCopy()), `cannot delete resource "runs"`},
		"making a Run":                 {runner.Create(t.Context(), &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "another"}, Spec: run.Spec}), `cannot create resource "runs"`},
		"deciding":                     {runner.Create(t.Context(), &v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "d"}}), `cannot create resource "decisions"`},
		"another token":                {runner.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: v1alpha1.RunnerServiceAccount}}, tokenFor(pod)), `cannot create resource "serviceaccounts/token"`},
		"the outcome of its own Run":   {report(run, `,{"op":"add","path":"/status/completionTime","value":"2030-01-01T00:00:00Z"}`), "a runner writes status.progress only"},
		"the progress of another Run":  {report(neighbor, ""), "fenced: this pod is not the current attempt of this Run"},
		"a Run of another namespace":   {report(foreign, ""), `cannot patch resource "runs/status"`},
		"the work of its own Run":      {runner.Patch(t.Context(), run.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"desiredState":"Stopped"}}`))), `cannot patch resource "runs"`},
	} {
		if !apierrors.IsForbidden(tc.err) || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: the server says %v, want it to say %q", name, tc.err, tc.want)
		}
	}
}
