package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// unreachableGit is a session with a Run whose container fetch tries again.
func unreachableGit(t *testing.T) (*session, *v1alpha1.Run) {
	t.Helper()
	run := namedRun("fix", v1alpha1.ReasonStarting)
	pod := runnerPod(run, "1", corev1.PodPending)
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: "install", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
		{Name: "fetch", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	s := newSession(t, run, pod)
	s.openLog = func(_ context.Context, _, _ string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		if o.Container != "fetch" {
			return nil, apierrors.NewBadRequest("container \"runner\" in pod \"fix-1\" is waiting to start: PodInitializing")
		}
		if o.Follow || o.TailLines == nil || *o.TailLines != 1 {
			t.Errorf("asks for %+v", o)
		}
		return io.NopCloser(strings.NewReader(`{"time":"2030-01-01T12:00:00Z","level":"WARN","msg":"Preparing the workspace failed","error":"lookup git.example: no such host"}` + "\n")), nil
	}
	return s, run
}

const triesAgain = "Preparing the workspace failed: lookup git.example: no such host"

func TestWhyShowsWhatFetchTriesAgain(t *testing.T) {
	s, _ := unreachableGit(t)
	if code := s.run(t, "why", "fix"); code != exit.OK || !strings.Contains(s.out.String(), "Last log:  fetch: "+triesAgain) {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestLogsSayWhatFetchTriesAgain(t *testing.T) {
	s, run := unreachableGit(t)
	waits := 0
	s.wait = func(context.Context) error {
		if waits++; waits < 3 {
			return nil
		}
		finished(run)
		return s.client.Update(t.Context(), run)
	}
	s.run(t, "logs", "-f", "fix")
	if got := strings.Count(s.err.String(), "Waiting for pod fix-1 to start: container fetch says: "+triesAgain); got != 1 {
		t.Errorf("said %d times: %s", got, s.text())
	}
}

func TestStartLine(t *testing.T) {
	for line, want := range map[string]string{
		`{"msg":"Preparing the workspace failed","error":"no such host"}`: "Preparing the workspace failed: no such host",
		`{"msg":"Cloning"}`:     "Cloning",
		"panic: \x1b[2Jworse\n": `panic: \x1b[2Jworse`,
		`{"other":1}`:           `{"other":1}`,
		"":                      "",
	} {
		if got := startLine(line); got != want {
			t.Errorf("%q is shown as %q, want %q", line, got, want)
		}
	}
}
