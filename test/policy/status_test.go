package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// A fixture is a namespace with two Runs, each with the pod of its current
// attempt, and runners that may patch the status of Runs: what RBAC allows.
type fixture struct {
	*apitest.Server
	namespace string
	account   *corev1.ServiceAccount
	run       *v1alpha1.Run // its current attempt is 2, in pod
	pod       *corev1.Pod
	old       *corev1.Pod // attempt 1 of the same Run
	foreign   *v1alpha1.Run
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{Server: apitest.Get(t)}
	s.namespace = s.Namespace(t)
	s.account = runnerAccount(t, s.Server, s.namespace)
	s.old, s.pod = s.newPod(t, "mine-1", v1alpha1.RunnerServiceAccount), s.newPod(t, "mine-2", v1alpha1.RunnerServiceAccount)
	s.run = s.newRun(t, "mine", 2, s.pod)
	s.foreign = s.newRun(t, "other", 1, s.newPod(t, "other-1", v1alpha1.RunnerServiceAccount))
	return s
}

func runnerAccount(t *testing.T, s *apitest.Server, namespace string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.RunnerServiceAccount}}
	s.Create(t, account)
	role(t, "runner")
	s.Bind(t, namespace, "deckhand-runner", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name})
	return account
}

func (s *fixture) newPod(t *testing.T, name, account string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "runner", Image: "runner"}}},
	}
	s.Create(t, pod)
	return pod
}

func (s *fixture) newRun(t *testing.T, name string, attempt int32, pod *corev1.Pod) *v1alpha1.Run {
	t.Helper()
	run := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       v1alpha1.RunSpec{Agent: "a", Prompt: "Do it."},
	}
	s.Create(t, run)
	s.patch(t, run, fmt.Sprintf(`[{"op":"add","path":"/status/attempt","value":{"number":%d,"pod":%q,"podUID":%q,"agentRevision":"h","startedAt":"2030-01-01T00:00:00Z"}}]`, attempt, pod.Name, pod.UID))
	return run
}

// patch changes a status as the operator does.
func (s *fixture) patch(t *testing.T, run *v1alpha1.Run, ops string) {
	t.Helper()
	if err := s.Admin.Status().Patch(t.Context(), run, client.RawPatch(types.JSONPatchType, []byte(ops))); err != nil {
		t.Fatalf("patching %s: %v", run.Name, err)
	}
}

// impersonate is a client of an administrator who impersonates the runner.
func (s *fixture) impersonate(t *testing.T, extra map[string][]string) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(s.Config)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + s.namespace + ":" + v1alpha1.RunnerServiceAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + s.namespace, "system:authenticated"},
		Extra:    extra,
	}
	c, err := client.New(cfg, client.Options{Scheme: s.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// podExtra is what the API server knows of a token that is bound to a pod.
func podExtra(pod *corev1.Pod) map[string][]string {
	return map[string][]string{
		"authentication.kubernetes.io/pod-name": {pod.Name},
		"authentication.kubernetes.io/pod-uid":  {string(pod.UID)},
	}
}

// progressPatch is the patch that a runner sends.
func progressPatch(attempt int, sequence int, more string) string {
	return fmt.Sprintf(`{"op":"add","path":"/status/progress","value":{"version":1,"attempt":%d,"sequence":%d%s}}`, attempt, sequence, more)
}

func TestRunnerWritesItsOwnProgress(t *testing.T) {
	s := newFixture(t)
	c := s.WithToken(t, s.Token(t, s.account, s.pod))
	send := func(ops string) error {
		return c.Status().Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(ops)))
	}
	mine := fmt.Sprintf(`{"op":"test","path":"/status/attempt/podUID","value":%q}`, s.pod.UID)
	if err := send("[" + mine + "," + progressPatch(2, 10, "") + "]"); err != nil {
		t.Fatalf("its first report is refused: %v", err)
	}
	if err := send("[" + mine + "," + progressPatch(2, 11, `,"counts":{"steps":1}`) + "]"); err != nil {
		t.Fatalf("its second report is refused: %v", err)
	}
	var got v1alpha1.Run
	if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.run), &got); err != nil {
		t.Fatal(err)
	}
	if got.Status.Progress == nil || got.Status.Progress.Counts.Steps != 1 {
		t.Errorf("progress is %+v", got.Status.Progress)
	}
	err := send(`[{"op":"test","path":"/status/attempt/podUID","value":"another"},` + progressPatch(2, 12, "") + "]")
	if !apierr.IsConflict(err) {
		t.Errorf("a failed test is %v, want a conflict", err)
	}
}

// An older runner reports numbers of turns in place of ids, and longer summaries: the numbers are left
// out, and the rest is taken.
func TestAReportOfAnOlderRunnerIsTaken(t *testing.T) {
	s := newFixture(t)
	c := s.WithToken(t, s.Token(t, s.account, s.pod))
	summary := strings.Repeat("a", 200)
	ops := "[" + progressPatch(2, 10, `,"step":{"number":7,"kind":"Tool","name":"Shell"},"recent":[{"step":6,"kind":"Tool","name":"Shell","summary":"`+summary+`","durationMs":3}],`+
		`"refused":{"connections":1,"hosts":[{"host":"a.example","port":443,"count":1,"firstStep":6}],"toolCalls":1,"tools":[{"name":"Shell","by":"Policy","count":1,"firstStep":5}]}`) + "]"
	if err := c.Status().Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(ops))); err != nil {
		t.Fatalf("it is refused: %v", err)
	}
	var got v1alpha1.Run
	if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.run), &got); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.RunProgress{
		Version: 1, Attempt: 2, Sequence: 10, Step: &v1alpha1.CurrentStep{Kind: "Tool", Name: "Shell"},
		Recent: []v1alpha1.RecentStep{{Kind: "Tool", Name: "Shell", Summary: summary, DurationMs: 3}},
		Refused: &v1alpha1.Refused{
			Connections: 1, Hosts: []v1alpha1.RefusedHost{{Host: "a.example", Port: 443, Count: 1}},
			ToolCalls: 1, Tools: []v1alpha1.DeniedTool{{Name: "Shell", By: v1alpha1.DeniedByPolicy, Count: 1}},
		},
	}
	if diff := cmp.Diff(want, got.Status.Progress); diff != "" {
		t.Errorf("progress -want +got:\n%s", diff)
	}
}

// A runner that is newer than the operator may report fields that its schema
// does not have: they are left out, and the rest is taken.
func TestAReportWithFieldsOfANewerRunnerIsTaken(t *testing.T) {
	s := newFixture(t)
	c := s.WithToken(t, s.Token(t, s.account, s.pod))
	ops := "[" + progressPatch(2, 10, `,"counts":{"steps":3,"newCount":1},"newField":{"a":["b"]}`) + "]"
	if err := c.Status().Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(ops))); err != nil {
		t.Fatalf("it is refused: %v", err)
	}
	got := &unstructured.Unstructured{}
	got.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Run"))
	if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.run), got); err != nil {
		t.Fatal(err)
	}
	progress, _, err := unstructured.NestedMap(got.Object, "status", "progress")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"version": int64(1), "attempt": int64(2), "sequence": int64(10), "counts": map[string]any{"steps": int64(3)}}
	if diff := cmp.Diff(want, progress); diff != "" {
		t.Errorf("the progress is not what both know (-want +got):\n%s", diff)
	}
}

// Everything else that a runner could try is refused, by policy or schema.
func TestRunnerWritesNothingElse(t *testing.T) {
	s := newFixture(t)
	bound := s.WithToken(t, s.Token(t, s.account, s.pod))
	stranger := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "stranger"}}
	s.Create(t, stranger)
	good := "[" + progressPatch(2, 100, "") + "]"
	s.patch(t, s.run, "["+progressPatch(2, 50, "")+"]")

	elsewhere := newFixture(t)
	cases := map[string]struct {
		who  client.Client
		run  *v1alpha1.Run
		ops  string
		want string
	}{
		"a foreign Run":                   {bound, s.foreign, "[" + progressPatch(1, 100, "") + "]", "fenced: this pod is not the current attempt"},
		"an empty patch on a foreign Run": {bound, s.foreign, "[]", "fenced: this pod is not the current attempt"},
		"a Run of another namespace":      {bound, elsewhere.run, good, "forbidden"},
		"conditions":                      {bound, s.run, `[{"op":"replace","path":"/status/conditions/1/status","value":"True"},` + progressPatch(2, 100, "") + "]", "a runner writes status.progress only"},
		"the attempt":                     {bound, s.run, `[{"op":"replace","path":"/status/attempt/number","value":9},` + progressPatch(9, 100, "") + "]", "a runner writes status.progress only"},
		"the budgets":                     {bound, s.run, `[{"op":"add","path":"/status/failures","value":0},` + progressPatch(2, 100, "") + "]", "a runner writes status.progress only"},
		"a field that is taken away":      {bound, s.run, `[{"op":"remove","path":"/status/conditions"},` + progressPatch(2, 100, "") + "]", "a runner writes status.progress only"},
		"completion":                      {bound, s.run, `[{"op":"add","path":"/status/completionTime","value":"2030-01-01T00:00:00Z"},` + progressPatch(2, 100, "") + "]", "a runner writes status.progress only"},
		"a report in the name of another": {bound, s.run, "[" + progressPatch(2, 100, `,"podUID":"another"`) + "]", "fenced: status.progress.podUID must be"},
		"an older report":                 {bound, s.run, "[" + progressPatch(2, 50, "") + "]", "fenced: a report must be newer"},
		"a report of another attempt":     {bound, s.run, "[" + progressPatch(3, 100, "") + "]", "fenced: the report is not of the current attempt"},
		"taking the progress away":        {bound, s.run, `[{"op":"remove","path":"/status/progress"}]`, "fenced: the report is not of the current attempt"},
		"too long a text":                 {bound, s.run, "[" + progressPatch(2, 100, `,"result":{"text":"`+strings.Repeat("a", 8193)+`"}`) + "]", "8192"},
		"too many questions":              {bound, s.run, "[" + progressPatch(2, 100, `,"pending":[`+strings.TrimSuffix(strings.Repeat("{},", 9), ",")+`]`) + "]", "must have at most 8 items"},
		"too much that is asked":          {bound, s.run, "[" + progressPatch(2, 100, `,"pending":[`+strings.TrimSuffix(strings.Repeat(`{"args":"`+strings.Repeat("a", 1024)+`"},`, 7), ",")+`]`) + "]", "questions, arguments, schemas and approvers must have at most 6 KiB in total"},
		"too many groups":                 {bound, s.run, "[" + progressPatch(2, 100, `,"pending":[{"approvers":{"groups":["1","2","3","4","5","6","7","8","9"]}}]`) + "]", "must have at most 8 items"},
		"arguments that are too long":     {bound, s.run, "[" + progressPatch(2, 100, `,"pending":[{"args":"`+strings.Repeat("ä", 2049)+`"}]`) + "]", "at most 4 KiB"},
		"a schema that is too long":       {bound, s.run, "[" + progressPatch(2, 100, `,"pending":[{"schema":"`+strings.Repeat("ä", 513)+`"}]`) + "]", "at most 1 KiB"},
		"a confinement of its own making": {bound, s.run, "[" + progressPatch(2, 100, `,"confinement":{"network":"Perfect"}`) + "]", `supported values: "Enforced", "PortsOnly", "Unenforced"`},
		"negative steps":                  {bound, s.run, "[" + progressPatch(2, 100, `,"counts":{"steps":-1}`) + "]", "progress.counts.steps in body should be greater than or equal to 0"},
		"negative tokens":                 {bound, s.run, "[" + progressPatch(2, 100, `,"usage":{"totalTokens":-1}`) + "]", "should be greater than or equal to 0"},
		"a negative cost":                 {bound, s.run, "[" + progressPatch(2, 100, `,"usage":{"costMicroUSD":-1}`) + "]", "should be greater than or equal to 0"},
		"a negative duration":             {bound, s.run, "[" + progressPatch(2, 100, `,"usage":{"durationSeconds":-1}`) + "]", "should be greater than or equal to 0"},
		"a negative size":                 {bound, s.run, "[" + progressPatch(2, 100, `,"result":{"files":[{"size":-1}]}`) + "]", "should be greater than or equal to 0"},
		"too long a branch":               {bound, s.run, "[" + progressPatch(2, 100, `,"result":{"published":{"branch":"`+strings.Repeat("b", 129)+`"}}`) + "]", "may not be more than 128"},
		"too long a question":             {bound, s.run, "[" + progressPatch(2, 100, `,"pending":[{"question":"`+strings.Repeat("ä", 513)+`"}]`) + "]", "at most 1 KiB"},
		"too long an id":                  {bound, s.run, "[" + progressPatch(2, 100, `,"pending":[{"id":"`+strings.Repeat("i", 81)+`"}]`) + "]", "may not be more than 80"},
		"too many decisions":              {bound, s.run, "[" + progressPatch(2, 100, `,"decided":[`+strings.TrimSuffix(strings.Repeat("{},", 21), ",")+`]`) + "]", "must have at most 20 items"},
		"too long a refusal":              {bound, s.run, "[" + progressPatch(2, 100, `,"decided":[{"refused":"`+strings.Repeat("ä", 65)+`"}]`) + "]", "at most 124 bytes"},
		"no id of a step":                 {bound, s.run, "[" + progressPatch(2, 100, `,"recent":[{"id":"14"}]`) + "]", "progress.recent[0].id in body should match"},
		"too long an id of a step":        {bound, s.run, "[" + progressPatch(2, 100, `,"step":{"id":"s`+strings.Repeat("1", 32)+`"}`) + "]", "may not be more than 32"},
		"an id and too long a summary":    {bound, s.run, "[" + progressPatch(2, 100, `,"recent":[{"id":"s2","summary":"`+strings.Repeat("a", 165)+`"}]`) + "]", "at most 164 bytes if there is an id"},
		"too many recent steps":           {bound, s.run, "[" + progressPatch(2, 100, `,"recent":[`+strings.TrimSuffix(strings.Repeat("{},", 21), ",")+`]`) + "]", "must have at most 20 items"},
		"a token that is bound to no pod": {s.WithToken(t, s.Token(t, s.account, nil)), s.run, good, "not bound to a pod"},
		"the token of the attempt before": {s.WithToken(t, s.Token(t, s.account, s.old)), s.run, good, "fenced: this pod is not the current attempt"},
		"an administrator as the runner":  {s.AsServiceAccount(t, s.namespace, v1alpha1.RunnerServiceAccount), s.run, good, "not bound to a pod"},
		"the same, with half of a pod":    {s.impersonate(t, map[string][]string{"authentication.kubernetes.io/pod-name": {s.pod.Name}}), s.run, good, "not bound to a pod"},
		"the same, with the pod before":   {s.impersonate(t, podExtra(s.old)), s.run, good, "fenced: this pod is not the current attempt"},
		"another ServiceAccount":          {s.WithToken(t, s.Token(t, stranger, s.newPod(t, "strange", "stranger"))), s.run, good, "forbidden"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.who.Status().Patch(t.Context(), tc.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(tc.ops)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the server says %v, want it to say %q", err, tc.want)
			}
		})
	}
	t.Run("anything but status", func(t *testing.T) {
		for what, err := range map[string]error{
			"spec":     bound.Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"desiredState":"Stopped"}}`))),
			"metadata": bound.Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
			"reading":  bound.Get(t.Context(), client.ObjectKeyFromObject(s.run), &v1alpha1.Run{}),
			"deleting": bound.Delete(t.Context(), s.run.DeepCopy()),
			"secrets":  bound.List(t.Context(), &corev1.SecretList{}, client.InNamespace(s.namespace)),
			"pods":     bound.List(t.Context(), &corev1.PodList{}, client.InNamespace(s.namespace)),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s: %v, want it forbidden", what, err)
			}
		}
	})
	t.Run("metadata through status", func(t *testing.T) {
		ops := `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"replace","path":"/spec/desiredState","value":"Stopped"},` + progressPatch(2, 200, "") + "]"
		var after v1alpha1.Run
		err := bound.Status().Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(ops)))
		if getErr := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.run), &after); getErr != nil {
			t.Fatal(getErr)
		}
		if len(after.Labels) > 0 || after.Spec.DesiredState != v1alpha1.DesiredRunning {
			t.Errorf("labels %v, desiredState %s after %v", after.Labels, after.Spec.DesiredState, err)
		}
	})
}

// A pod that takes a dead one's name is not the attempt, and the dead one's
// token is no token any more.
func TestNameOfAPodIsNotEnough(t *testing.T) {
	s := newFixture(t)
	dead := s.WithToken(t, s.Token(t, s.account, s.pod))
	send := func(c client.Client, sequence int) error {
		return c.Status().Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte("["+progressPatch(2, sequence, "")+"]")))
	}
	if err := send(dead, 1); err != nil {
		t.Fatalf("the living pod's report is refused: %v", err)
	}
	now := int64(0)
	if err := s.Admin.Delete(t.Context(), s.pod.DeepCopy(), &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	squatter := s.WithToken(t, s.Token(t, s.account, s.newPod(t, s.pod.Name, v1alpha1.RunnerServiceAccount)))
	if err := send(squatter, 2); err == nil || !strings.Contains(err.Error(), "fenced: this pod is not the current attempt") {
		t.Errorf("the squatter's report: %v", err)
	}
	// Servers remember for some seconds that a token was good.
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return apierrors.IsUnauthorized(send(dead, 1)), nil
	})
	if err != nil {
		t.Errorf("the dead pod's token still is one: %v", err)
	}
}

func TestRunnerIsFencedAfterItsEnd(t *testing.T) {
	s := newFixture(t)
	c := s.WithToken(t, s.Token(t, s.account, s.pod))
	send := func(sequence int) error {
		ops := "[" + progressPatch(2, sequence, `,"result":{"committed":true,"reason":"Finished"}`) + "]"
		return c.Status().Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(ops)))
	}
	if err := send(10); err != nil {
		t.Fatalf("the commit is refused: %v", err)
	}
	if err := send(11); err == nil || !strings.Contains(err.Error(), "fenced: the result of this attempt is committed") {
		t.Errorf("a second commit: %v", err)
	}
	s.patch(t, s.run, `[{"op":"replace","path":"/status/progress/result/committed","value":false},{"op":"add","path":"/status/completionTime","value":"2030-01-01T00:00:00Z"}]`)
	if err := send(12); err == nil || !strings.Contains(err.Error(), "fenced: the Run is finished") {
		t.Errorf("a report on a finished Run: %v", err)
	}
}

// An attempt that failed commits its failure. If that is worth another attempt, the
// reports of the next one take its place, and count from one.
func TestTheNextAttemptReportsOverACommittedFailure(t *testing.T) {
	s := newFixture(t)
	s.patch(t, s.run, "["+progressPatch(1, 500, `,"result":{"committed":true,"reason":"ModelUnavailable"}`)+"]")
	c := s.WithToken(t, s.Token(t, s.account, s.pod))
	for i, more := range []string{"", `,"counts":{"steps":1}`, `,"result":{"committed":true,"reason":"Finished"}`} {
		ops := "[" + progressPatch(2, i+1, more) + "]"
		if err := c.Status().Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(ops))); err != nil {
			t.Errorf("report %d of attempt 2 is refused: %v", i+1, err)
		}
	}
}

// A reserved attempt has no writer until its pod is recorded.
func TestNoPodReportsBeforeItIsRecorded(t *testing.T) {
	s := newFixture(t)
	s.patch(t, s.run, `[{"op":"remove","path":"/status/attempt/podUID"}]`)
	c := s.WithToken(t, s.Token(t, s.account, s.pod))
	report := "[" + progressPatch(2, 10, fmt.Sprintf(`,"podUID":%q`, s.pod.UID)) + "]"
	err := c.Status().Patch(t.Context(), s.run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(report)))
	if err == nil || !strings.Contains(err.Error(), "fenced:") {
		t.Errorf("the server says %v, want it fenced", err)
	}
}

// The pod of attempt 1 reports while the status has no attempt, and names itself.
func TestTheFirstAttemptReportsBeforeItIsRecorded(t *testing.T) {
	s := newFixture(t)
	long := strings.Repeat("n", 62)
	named := func(pod *corev1.Pod) string { return fmt.Sprintf(`,"podUID":%q`, pod.UID) }
	first := s.newPod(t, "fresh-1", v1alpha1.RunnerServiceAccount)
	second := s.newPod(t, "fresh-2", v1alpha1.RunnerServiceAccount)
	cut := s.newPod(t, long+"-1", v1alpha1.RunnerServiceAccount)
	ofWorkflow := s.newPod(t, "flow-1", v1alpha1.RunnerServiceAccount)
	const other = "fenced: this pod is not the current attempt"
	cases := map[string]struct {
		pod    *corev1.Pod
		run    string
		before string // what another report left
		report string
		want   string // empty: it is accepted
	}{
		"it names itself":                       {first, "fresh", "", progressPatch(1, 10, named(first)), ""},
		"its second report":                     {first, "fresh", progressPatch(1, 9, named(first)), progressPatch(1, 10, named(first)), ""},
		"it does not name itself":               {first, "fresh", "", progressPatch(1, 10, ""), other},
		"it names another pod":                  {first, "fresh", "", progressPatch(1, 10, named(second)), other},
		"the pod of another attempt":            {second, "fresh", "", progressPatch(1, 10, named(second)), other},
		"a report of another attempt":           {first, "fresh", "", progressPatch(2, 10, named(first)), "fenced: the report is not of the current attempt"},
		"the pod of another Run":                {s.old, "fresh", "", progressPatch(1, 10, named(s.old)), other},
		"another pod of the name reported":      {first, "fresh", progressPatch(1, 9, `,"podUID":"gone"`), progressPatch(1, 10, named(first)), other},
		"an older report":                       {first, "fresh", progressPatch(1, 10, named(first)), progressPatch(1, 10, named(first)), "fenced: a report must be newer"},
		"it has committed":                      {first, "fresh", progressPatch(1, 9, named(first)+`,"result":{"committed":true}`), progressPatch(1, 10, named(first)), "fenced: the result of this attempt is committed"},
		"the Run has ended":                     {first, "fresh", `{"op":"add","path":"/status/completionTime","value":"2030-01-01T00:00:00Z"}`, progressPatch(1, 10, named(first)), "fenced: the Run is finished"},
		"the name is too long to be that of it": {cut, long, "", progressPatch(1, 10, named(cut)), other},
		"the Run of a Workflow":                 {ofWorkflow, "flow", "", progressPatch(1, 10, named(ofWorkflow)), other},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: tc.run}, Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Do it."}}
			if tc.pod == ofWorkflow {
				run.Spec = v1alpha1.RunSpec{Workflow: "w"}
			}
			s.Create(t, run)
			t.Cleanup(func() { _ = s.Admin.Delete(context.WithoutCancel(t.Context()), run) })
			if tc.before != "" {
				s.patch(t, run, "["+tc.before+"]")
			}
			c := s.WithToken(t, s.Token(t, s.account, tc.pod))
			err := c.Status().Patch(t.Context(), run.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte("["+tc.report+"]")))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the server says %v, want it to say %q", err, tc.want)
			}
		})
	}
}
