package cli

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestWhyExplainsTheStateOfARun(t *testing.T) {
	run := runWithRequests()
	asks := decisions.PendingMessage("fix", run.Status.Progress.Pending, nil)
	run.Status.Conditions[0].Message = asks
	run.Status.Progress.Refused = &v1alpha1.Refused{Connections: 9, Hosts: []v1alpha1.RefusedHost{
		{Host: "evil.example", Port: 443, Reason: v1alpha1.RefusedNotListed, Count: 4, FirstID: "s2c1"},
		{Host: "inside.example\x1b[2J", Port: 80, Reason: v1alpha1.RefusedNotPublic, Count: 3, FirstID: "s4c1"},
	}, ToolCalls: 7, Tools: []v1alpha1.DeniedTool{
		{Name: "shell", By: v1alpha1.DeniedByPolicy, Count: 3, FirstID: "s2c1"},
		{Name: "shell", By: v1alpha1.DeniedByApprover, Count: 1, FirstID: "s14c1"},
		{Name: "Write\x1b[2J", By: v1alpha1.DeniedByTimeout, Count: 2, FirstID: "s6c1.s2c3"},
	}}
	pod, leaving := runnerPod(run, "1", corev1.PodRunning), runnerPod(run, "2", corev1.PodRunning)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "runner", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "sandbox", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}},
	}
	leaving.Status = pod.Status
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"example.com/keep"}, &metav1.Time{Time: gen.Noon}
	foreign := runnerPod(namedRun("fix", v1alpha1.ReasonFinished, func(r *v1alpha1.Run) { r.UID = "uid-of-an-earlier-run" }), "3", corev1.PodRunning)
	event := func(name, message string, minutes int) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: gen.Namespace, Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "Run", Name: "fix", UID: run.UID},
			Type:           "Normal", Reason: "AwaitingApproval", Message: message,
			LastTimestamp: metav1.NewTime(gen.Noon.Add(time.Duration(minutes) * time.Minute)),
		}
	}
	s := newSession(t, run, pod, leaving, foreign, event("a", "Asked again \x1b[2J", 9), event("b", "Asked", 1), event("c", asks, 10))
	if code := s.run(t, "why", "fix"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "why.txt", s.text())
}

// An event is one line, whatever its author wrote. One that names another API group with the UID of the Run
// is not about the Run: no policy holds it to one line.
func TestWhyPrintsAnEventInOneLine(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonRunning)
	event := func(name, apiVersion, message string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: gen.Namespace, Name: name},
			InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: "Run", Name: "fix", UID: run.UID},
			Type:           "Normal", Reason: "Said\nthis", Message: message, ReportingController: "tekton\r\ndeckhand",
		}
	}
	s := newSession(t, run, event("a", v1alpha1.GroupVersion.String(), "one\n5m  Normal\u2028 Approved\x1b[2J"), event("b", "", "bare\nevent"), event("c", "tekton.dev/v1", "foreign\nevent"))
	for _, args := range [][]string{{"why", "fix"}, {"why", "run/fix"}} {
		if code := s.run(t, args...); code != exit.OK {
			t.Fatal(s.text())
		}
		_, events, _ := strings.Cut(s.out.String(), "Events:\n")
		if got := strings.Count(events, "\n"); got != 3 || !strings.Contains(events, `tekton deckhand   one 5m Normal Approved\x1b[2J`) || !strings.Contains(events, "bare event") {
			t.Errorf("%v prints %d lines:\n%s", args, got, events)
		}
		s.out.Reset()
	}
	for _, format := range []string{outputJSON, outputYAML} {
		if code := s.run(t, "why", "fix", "-o", format); code != exit.OK || strings.Contains(s.out.String(), "foreign") {
			t.Errorf("exit code %d: %s", code, s.text())
		}
	}
}

// A pod that works for a Run that has ended would contradict its state.
func TestWhySaysThatThePodOfAnEndedRunIsEnding(t *testing.T) {
	active, stopped := namedRun("fix", v1alpha1.ReasonRunning), namedRun("fix", v1alpha1.ReasonStopped, endedWith(v1alpha1.ReasonStopped))
	for want, tc := range map[string]struct {
		run *v1alpha1.Run
		pod corev1.PodPhase
	}{
		"Running": {active, corev1.PodRunning},
		"Running, is ending, because the Run has ended": {stopped, corev1.PodRunning},
		"Succeeded": {stopped, corev1.PodSucceeded},
	} {
		if got := podPhase(tc.run, runnerPod(tc.run, "1", tc.pod)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestWhySaysWhichModelARunWaitsFor(t *testing.T) {
	s := newSession(t, gen.Model(func(m *v1alpha1.Model) {
		m.Name, m.Spec.APIKeySecretRef = "keyed", &v1alpha1.SecretKeyRef{Name: "keys", Key: "gpt"}
	}))
	now := s.Now()
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	for name, tc := range map[string]struct {
		wait  *v1alpha1.ModelWait
		ended bool
		want  string
	}{
		"an outage": {
			&v1alpha1.ModelWait{Model: "gpt", Since: *at(-5 * time.Minute), NextTryAt: at(30 * time.Second), Message: "HTTP 503: Loading model"}, false,
			"  Waits for: Model gpt, unavailable for 5m; next try in 30s, at " + at(30*time.Second).UTC().Format(time.RFC3339) + "\n  Cause:     HTTP 503: Loading model\n  To do:     ",
		},
		"a time that the provider named": {&v1alpha1.ModelWait{Model: "gpt", Since: *at(-time.Minute), NextTryAt: at(2 * time.Hour), Promised: true}, false, ", which the provider named\n  To do:     "},
		"a try":                          {&v1alpha1.ModelWait{Model: "gpt", Since: *at(-time.Minute), NextTryAt: at(-time.Second)}, false, "it is asked now\n"},
		"a missing key": {
			&v1alpha1.ModelWait{Model: "keyed", Since: *at(-time.Minute), NextTryAt: at(time.Minute), Message: "the model's credential cannot be read: Secret keys has no key gpt: add the key"}, false,
			`  To do:     if Secret keys exists, add key gpt: kubectl patch secret keys -n team-a --patch='{"stringData":{"gpt":"…"}}'; else create it: kubectl create secret generic keys -n team-a --from-literal=gpt=…. To end the Run: kubectl deckhand stop fix -n team-a` + "\n",
		},
		"a key that the Model does not name": {
			&v1alpha1.ModelWait{Model: "keyed", Since: *at(-time.Minute), NextTryAt: at(time.Minute), Message: "HTTP 503: Secret root has no key token"}, false,
			"  To do:     correct the server or Model keyed (",
		},
		"no wait":               {nil, false, ""},
		"a wait that was ended": {&v1alpha1.ModelWait{Model: "gpt", Since: *at(-time.Hour)}, true, ""},
	} {
		run := namedRun("fix", v1alpha1.ReasonWaitingForModel)
		run.Status.Progress = &v1alpha1.RunProgress{ModelWait: tc.wait}
		if tc.ended {
			endedWith(v1alpha1.ReasonModelUnavailable)(run)
			run.Status.Progress = &v1alpha1.RunProgress{ModelWait: tc.wait}
		}
		s.out.Reset()
		explainer{s.Factory}.printModelWait(t.Context(), s.client, run)
		if got := s.out.String(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: printed\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

func TestWhyCountsAttempts(t *testing.T) {
	attempted := func(number, failures, disruptions int32) func(*v1alpha1.Run) {
		return func(run *v1alpha1.Run) {
			run.Status.Attempt = &v1alpha1.Attempt{Number: number}
			run.Status.Failures, run.Status.Disruptions = failures, disruptions
		}
	}
	for want, mod := range map[string]func(*v1alpha1.Run){
		"0":                     func(*v1alpha1.Run) {},
		"1":                     attempted(1, 0, 0),
		"2 (1 after a failure)": attempted(2, 1, 0),
		"4 (1 after a failure, 1 after a loss to infrastructure, 1 after a wait)": attempted(4, 1, 1),
		"": func(run *v1alpha1.Run) { run.Spec.Agent, run.Spec.Workflow = "", "release" },
	} {
		if got := attempts(namedRun("fix", v1alpha1.ReasonRunning, mod)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The time of a step does not count on while nothing works.
func TestWhySaysHowLongAStepTakes(t *testing.T) {
	s := newSession(t)
	for name, tc := range map[string]struct {
		reason   string
		reported int32
		want     string
	}{
		"the agent works":                {v1alpha1.ReasonRunning, 2, "s3c1, Tool shell, for 60m"},
		"the Run is paused":              {v1alpha1.ReasonPaused, 2, "s3c1, Tool shell"},
		"the pod is lost":                {v1alpha1.ReasonPodLost, 2, "s3c1, Tool shell"},
		"the next attempt has not begun": {v1alpha1.ReasonRunning, 1, "s3c1, Tool shell"},
	} {
		run := namedRun("fix", tc.reason)
		run.Status.Attempt = &v1alpha1.Attempt{Number: 2}
		run.Status.Progress = &v1alpha1.RunProgress{Attempt: tc.reported, Step: &v1alpha1.CurrentStep{ID: "s3c1", Kind: "Tool", Name: "shell", StartedAt: &metav1.Time{Time: gen.Noon}}}
		if got := (explainer{s.Factory}).step(run); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	runs := schema.GroupResource{Group: "deckhand.dev", Resource: "runs"}
	forbidden := func(text string) error { return apierrors.NewForbidden(runs, "x", errors.New(text)) }
	for want, err := range map[string]error{
		"ClusterRole deckhand-viewer":   forbidden(`User "ann" cannot list resource "runs" in API group "deckhand.dev"`),
		"ClusterRole deckhand-approver": forbidden(`User "ann" cannot create resource "decisions" in API group "deckhand.dev"`),
		"ClusterRole deckhand-user":     forbidden(`User "ann" cannot patch resource "runs" in API group "deckhand.dev"`),
		"ClusterRole system:basic-user": forbidden(`User "ann" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope`),
		"ClusterRole view":              forbidden(`User "ann" cannot list resource "pods" in API group ""`),
		"kubectl cluster-info":          &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}},
		"install the chart":             apierrors.NewGenericServerResponse(404, "get", runs, "", "404 page not found", 0, true),
		"Log in again":                  apierrors.NewUnauthorized("Unauthorized"),
	} {
		if got := explain(err); !strings.Contains(got, want) {
			t.Errorf("want %q in %q", want, got)
		}
	}
	if got := explain(forbidden("ValidatingAdmissionPolicy denied request")); strings.Contains(got, "ClusterRole") {
		t.Errorf("an admission policy is explained as a missing role: %s", got)
	}
}

func TestWithoutAKubeconfigNoClusterIsConfigured(t *testing.T) {
	s := newSession(t)
	s.newClient, s.readTable = nil, nil
	t.Setenv("KUBECONFIG", "")
	if code := s.run(t, "list"); code != exit.Error || !strings.Contains(s.err.String(), "no cluster is configured: set KUBECONFIG") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	missing := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", missing)
	s.err.Reset()
	if code := s.run(t, "list"); code != exit.Error || !strings.Contains(s.err.String(), "KUBECONFIG names "+missing+", which does not exist") {
		t.Errorf("a missing file: exit code %d: %s", code, s.text())
	}
}
