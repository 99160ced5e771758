package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestPodsOfARunNeedProof(t *testing.T) {
	const uid = "uid-of-pod-fix-2"
	attempt := func(number int32, podUID string) *v1alpha1.Attempt {
		return &v1alpha1.Attempt{Number: number, PodUID: podUID}
	}
	progress := func(attempt int32, podUID string) *v1alpha1.RunProgress {
		return &v1alpha1.RunProgress{Attempt: attempt, PodUID: podUID}
	}
	taskOf := func(number int, uid string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations[v1alpha1.AnnotationTask] = string(runnerpod.ToJSON(task.Task{Attempt: number, Run: task.Run{Name: "fix", UID: uid}}))
		}
	}
	otherUID := func(p *corev1.Pod) { p.UID = "another" }
	noTask := func(p *corev1.Pod) { p.Annotations = nil }
	otherAccount := func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" }
	cases := map[string]struct {
		attempt  *v1alpha1.Attempt
		progress *v1alpha1.RunProgress
		change   []func(*corev1.Pod)
		want     proof
	}{
		"the recorded pod of the current attempt":                 {attempt(2, uid), nil, nil, proofComplete},
		"that of a release whose pods had no task":                {attempt(2, uid), nil, []func(*corev1.Pod){noTask}, proofComplete},
		"that of a Run that was restored from a backup":           {attempt(2, uid), nil, []func(*corev1.Pod){taskOf(2, "before")}, proofComplete},
		"a recorded UID with another ServiceAccount":              {attempt(2, uid), nil, []func(*corev1.Pod){otherAccount}, proofMissing},
		"a second pod of the current attempt":                     {attempt(2, uid), nil, []func(*corev1.Pod){otherUID}, proofNotRecorded},
		"the pod that reports before it is recorded":              {attempt(2, ""), progress(2, uid), nil, proofComplete},
		"another pod than the one that reports":                   {attempt(2, ""), progress(2, uid), []func(*corev1.Pod){otherUID}, proofNotRecorded},
		"the pod that reported in the attempt before":             {attempt(2, ""), progress(1, uid), nil, proofNotRecorded},
		"a report does not replace what is recorded":              {attempt(2, "recorded"), progress(2, uid), nil, proofNotRecorded},
		"the first attempt reports before it is recorded":         {nil, progress(1, uid), []func(*corev1.Pod){taskOf(1, "uid-of-fix")}, proofComplete},
		"the first attempt before it reports":                     {nil, nil, []func(*corev1.Pod){taskOf(1, "uid-of-fix")}, proofNotRecorded},
		"a pod of an earlier Run reports in the name of this one": {nil, progress(1, uid), []func(*corev1.Pod){taskOf(1, "before")}, proofOfAnotherRun},
		"an earlier attempt":                                      {attempt(3, "recorded"), nil, nil, proofComplete},
		"an earlier attempt with another ServiceAccount":          {attempt(3, "recorded"), nil, []func(*corev1.Pod){otherAccount}, proofMissing},
		"an earlier attempt without a task":                       {attempt(3, "recorded"), nil, []func(*corev1.Pod){noTask}, proofMissing},
		"an earlier attempt of an earlier Run":                    {attempt(3, "recorded"), nil, []func(*corev1.Pod){taskOf(2, "before")}, proofOfAnotherRun},
		"a later attempt than the status has":                     {attempt(1, "recorded"), nil, nil, proofNotRecorded},
		"an attempt without a number":                             {attempt(3, "recorded"), nil, []func(*corev1.Pod){taskOf(0, "uid-of-fix"), func(p *corev1.Pod) { p.Labels = nil }}, proofNotRecorded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := namedRun("fix", v1alpha1.ReasonRunning)
			pod := runnerPod(run, "2", corev1.PodRunning)
			run.Status.Attempt, run.Status.Progress = tc.attempt, tc.progress
			for _, change := range tc.change {
				change(pod)
			}
			if got := proofOf(pod, run); got != tc.want {
				t.Errorf("proofOf() = %d, want %d", got, tc.want)
			}
		})
	}
}

// whileForged returns a Run whose pod works, and a pod with the owner, the labels and the containers of
// a pod of the Run, which an editor of the namespace created.
func whileForged(mods ...func(*v1alpha1.Run)) (run *v1alpha1.Run, pod, forged *corev1.Pod) {
	run = namedRun("fix", v1alpha1.ReasonRunning, mods...)
	pod, forged = runnerPod(run, "1", corev1.PodRunning), forgedPod(run, "1", corev1.PodRunning)
	forged.Annotations = pod.Annotations
	forged.Name = "fix-0" // is listed first
	for _, p := range []*corev1.Pod{pod, forged} {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	return run, pod, forged
}

// leftOut is how a command names the forged pod.
const leftOut = "Pod fix-0 is left out: its labels or its owner name Run fix, but the operator did not create it for this Run."

func TestForgedPodsAreLeftOutAndNamed(t *testing.T) {
	truncated, line := runWithTruncatedArgs(t)
	asks := func(r *v1alpha1.Run) { r.Status.Progress = truncated.Status.Progress.DeepCopy() }
	ended := func(r *v1alpha1.Run) {
		finished(r)
		r.Status.CompletionTime = &metav1.Time{Time: gen.Noon}
		r.Status.Progress = &v1alpha1.RunProgress{Result: &v1alpha1.Result{Files: []v1alpha1.File{{Path: "report.md"}}}}
	}
	harmless := strings.Replace(line, "; rm -rf / #hidden", "", 1)
	file := loggedFile(t, "report.md", "true")
	cases := map[string]struct {
		mod    func(*v1alpha1.Run)
		args   []string
		log    string // of the pod of the Run
		forged string
		want   string
	}{
		"approve":  {asks, []string{"approve", "fix"}, line, harmless, "#hidden"},
		"pending":  {asks, []string{"pending", "fix"}, line, harmless, "#hidden"},
		"logs":     {ended, []string{"logs", "fix"}, textEvent(1, 1, "true"), textEvent(1, 1, "lies"), "● true"},
		"logs -f":  {ended, []string{"logs", "fix", "-f"}, textEvent(1, 1, "true"), textEvent(1, 1, "lies"), "● true"},
		"cp":       {ended, []string{"cp", "fix:report.md", "-"}, file, loggedFile(t, "report.md", "lies"), "true"},
		"why":      {ended, []string{"why", "fix"}, file, loggedFile(t, "lies.md", "lies"), "Pod fix-1:"},
		"why asks": {asks, []string{"why", "fix"}, line, harmless, "Pod fix-1:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run, pod, forged := whileForged(tc.mod)
			s := newSession(t, run, pod, forged)
			s.types(t, "y\n")
			logs := &fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: tc.log}}, "fix-0": {{lines: tc.forged}}}}
			s.openLog = logs.open
			code := s.run(t, tc.args...)
			if code != exit.OK || !strings.Contains(s.text(), tc.want) || strings.Contains(s.text(), "lies") || strings.Contains(s.out.String(), "fix-0") {
				t.Errorf("exit code %d: %s", code, s.text())
			}
			if strings.Count(s.err.String(), leftOut) != 1 {
				t.Errorf("the forged pod is not named once: %s", s.err.String())
			}
			if slices.Contains(logs.asked, "fix-0") {
				t.Errorf("logs of %v were read", logs.asked)
			}
		})
	}
}

// loggedFile is a log with a file.
func loggedFile(t *testing.T, path, content string) string {
	t.Helper()
	return logOf(t, events.Files{}, map[string]string{path: content}).lines
}

func TestCpExecutesNothingInAForgedPod(t *testing.T) {
	run, pod, forged := whileForged()
	x := newCopy(t, run, pod, forged)
	if code := x.s.run(t, "cp", "fix:report.md", "-"); code != exit.OK || !strings.Contains(x.s.err.String(), leftOut) {
		t.Errorf("exit code %d: %s", code, x.s.text())
	}
	if want := []string{"fix-1 runner /proc/1/exe files report.md"}; !slices.Equal(x.commands, want) {
		t.Errorf("executed %q", x.commands)
	}
}

// The names of the Run's pods are free once they are deleted, so a user who may delete and create pods
// can put another in their place between two requests.
func TestAPodThatTookTheNameOfAnotherIsNotRead(t *testing.T) {
	for name, args := range map[string][]string{
		"logs": {"logs", "fix"}, "cp from a log": {"cp", "fix:report.md", "-"}, "why": {"why", "fix"},
	} {
		t.Run(name, func(t *testing.T) {
			run, pod, forged := whileForged(finished, func(r *v1alpha1.Run) {
				r.Status.Progress = &v1alpha1.RunProgress{Result: &v1alpha1.Result{Text: "The work is done."}}
			})
			s := newSession(t, run, pod)
			s.openLog = func(ctx context.Context, _, _ string, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
				takeName(ctx, t, s, pod, forged)
				return io.NopCloser(strings.NewReader(textEvent(1, 1, "lies") + loggedFile(t, "report.md", "lies"))), nil
			}
			if s.run(t, args...); strings.Contains(s.text(), "lies") || strings.Contains(s.text(), "in the log of pod") {
				t.Errorf("printed %s", s.text())
			}
		})
	}
	t.Run("cp from a pod", func(t *testing.T) {
		run, pod, forged := whileForged()
		x := newCopy(t, run, pod)
		x.s.exec = func(ctx context.Context, in container, command []string, stdout, stderr io.Writer) error {
			takeName(ctx, t, x.s, pod, forged)
			return x.execute(ctx, in, command, stdout, stderr)
		}
		local := filepath.Join(t.TempDir(), "report.md")
		code := x.s.run(t, "cp", "fix:report.md", local)
		if _, err := os.Stat(local); code != exit.Error || err == nil || !strings.Contains(x.s.err.String(), "pod fix-1 was replaced while its files were read") {
			t.Errorf("exit code %d, %v: %s", code, err, x.s.text())
		}
	})
}

// takeName deletes a pod and creates another with its name.
func takeName(ctx context.Context, t *testing.T, s *session, pod, forged *corev1.Pod) {
	t.Helper()
	if err := s.client.Delete(ctx, pod); err != nil {
		t.Error(err)
	}
	forged.Name = pod.Name
	if err := s.client.Create(ctx, forged); err != nil {
		t.Error(err)
	}
}

func TestWaitAsksAboutTheRequestInTheLogOfAProvenPod(t *testing.T) {
	truncated, line := runWithTruncatedArgs(t)
	s := newSession(t)
	s.types(t, "y\n")
	s.openLog = func(_ context.Context, _, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		log := line
		switch {
		case pod != "fix-1":
			t.Errorf("the log of pod %s is read", pod)
		case o.Follow:
			log = textEvent(1, 1, "I clean up.")
		}
		return io.NopCloser(strings.NewReader(log)), nil
	}
	s.whenWaiting(t, "fix", func(run *v1alpha1.Run) {
		switch {
		case run.Status.Progress == nil:
			pod, forged := runnerPod(run, "1", corev1.PodRunning), forgedPod(run, "1", corev1.PodRunning)
			forged.Name = "fix-0"
			run.Status.Progress = &v1alpha1.RunProgress{Pending: truncated.Status.Progress.Pending[:1]}
			if err := errors.Join(s.client.Create(t.Context(), pod), s.client.Create(t.Context(), forged)); err != nil {
				t.Error(err)
			}
			s.update(t, run)
		case len(decisionsOf(t, s)) > 0 && !isFinished(run):
			endedWith(v1alpha1.ReasonFinished)(run)
			run.Status.CompletionTime = &metav1.Time{Time: gen.Noon}
			s.update(t, run)
		}
	})
	code := s.run(t, "run", "fixer", "-p", "Work.", "--name=fix", "-w")
	if code != exit.OK || len(decisionsOf(t, s)) != 1 || !strings.Contains(s.text(), "#hidden") || !strings.Contains(s.err.String(), leftOut) {
		t.Errorf("exit code %d, %d Decisions: %s", code, len(decisionsOf(t, s)), s.text())
	}
}

func TestLogsWarnOfARequestThatTheRunDoesNotAsk(t *testing.T) {
	truncated, line := runWithTruncatedArgs(t)
	for name, tc := range map[string]struct {
		log    string
		change func(*v1alpha1.PendingRequest)
		want   int
	}{
		"what it asks":                {line, nil, 0},
		"other arguments":             {strings.Replace(line, "; rm -rf / #hidden", "", 1), nil, 1},
		"another call of the same id": {strings.Replace(line, callDigest, strings.Repeat("0", 64), 1), nil, 1},
		"a request that is decided":   {line, func(r *v1alpha1.PendingRequest) { r.ID = "s9c1" }, 0},
		"asked by an older runner":    {line, func(r *v1alpha1.PendingRequest) { r.DisplayDigest = "" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run, pod, _ := whileForged(func(r *v1alpha1.Run) { r.Status.Progress = truncated.Status.Progress.DeepCopy() })
			if tc.change != nil {
				tc.change(&run.Status.Progress.Pending[0])
			}
			s := newSession(t, run, pod)
			s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: tc.log}}}}).open
			const warning = "! Do not decide by this text: status.progress.pending has request " + "s4c1-"
			if code := s.run(t, "logs", "fix"); code != exit.OK || strings.Count(s.text(), warning) != tc.want {
				t.Errorf("exit code %d: %s", code, s.text())
			}
		})
	}
}

func TestAForgedRequestIsNotAskedAboutWhileARunIsWatched(t *testing.T) {
	run, line := runWithTruncatedArgs(t)
	run.Status.Progress.Pending = run.Status.Progress.Pending[:1]
	s := newSession(t, run, runnerPod(run, "1", corev1.PodRunning))
	s.types(t)
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: strings.Replace(line, "; rm -rf / #hidden", "", 1)}}}}).open
	asker := s.newAsker(podReaderOf(s.Factory, s.client), &terminal.Console{})
	for range 2 {
		if err := asker.ask(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(s.err.String(), "Nothing was decided: this request cannot be approved") {
		t.Errorf("printed %s", s.err.String())
	}
}

// The status has a new pod two seconds later.
func TestAPodThatIsNotRecordedYetIsAwaitedAndNotNamed(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonPending)
	pod := runnerPod(run, "1", corev1.PodRunning)
	attempt := run.Status.Attempt
	for follow, want := range map[string]string{"-f": "", "--follow=false": "Pod fix-1 is left out: it is not in the status of Run fix"} {
		run.Status.Attempt = nil
		s := newSession(t, run.DeepCopy(), pod.DeepCopy())
		s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: textEvent(1, 1, "done")}}}}).open
		s.whenWaiting(t, "fix", func(run *v1alpha1.Run) {
			run.Status.Attempt = attempt
			finished(run)
			s.update(t, run)
		})
		code := s.run(t, "logs", "fix", follow)
		if code != exit.OK || strings.Contains(s.out.String(), "● done") != (follow == "-f") || strings.Contains(s.err.String(), "is left out") != (want != "") || !strings.Contains(s.err.String(), want) {
			t.Errorf("%s: exit code %d: %s", follow, code, s.text())
		}
	}
}

func TestCpReadsNoVolumeInAPodThatTookTheNameOfItsOwn(t *testing.T) {
	run, claim := durableRun()
	x := newCopy(t, run, claim)
	x.s.wait = func(ctx context.Context) error {
		own := x.filesPods(ctx)[0]
		forged := own.DeepCopy()
		forged.UID, forged.ResourceVersion = "uid-of-another", ""
		forged.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.FilesContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		takeName(ctx, t, x.s, &own, forged)
		return nil
	}
	if code := x.s.run(t, "cp", "fix:report.md", "-"); code != exit.Error || len(x.commands) > 0 || !strings.Contains(x.s.err.String(), "was deleted before it ran") {
		t.Errorf("exit code %d, executed %q: %s", code, x.commands, x.s.text())
	}
}

func TestOwnerAndLabelsOnlySelectPods(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"without labels":   func(p *corev1.Pod) { p.Labels = nil },
		"without an owner": func(p *corev1.Pod) { p.OwnerReferences = nil },
	} {
		run, pod, forged := whileForged()
		change(pod)
		change(forged)
		x := newCopy(t, run, pod, forged)
		if code := x.s.run(t, "cp", "fix:report.md", "-"); code != exit.OK || !strings.Contains(x.s.err.String(), leftOut) {
			t.Errorf("%s: exit code %d: %s", name, code, x.s.text())
		}
	}
}

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
