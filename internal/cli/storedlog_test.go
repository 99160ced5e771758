package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

const storedEarlier = `{"v":1,"n":1,"attempt":1,"type":"run.started","data":{"agent":"fixer","model":"m"}}
{"v":1,"n":2,"attempt":1,"type":"nudged","message":"of the first"}
`

const storedLatest = `{"v":1,"n":1000000001,"attempt":2,"type":"run.started","run":"fix","data":{"agent":"fixer","model":"m"}}
{"v":1,"n":1000000002,"attempt":2,"type":"limit.near","message":"of the second \u001b[2J"}
{"v":1,"n":1000000003,"attempt":2,"type":"run.fin`

// newStoredLog returns a session whose Run has finished, with its pods deleted and a volume.
func newStoredLog(t *testing.T, files ...string) *fakeExec {
	t.Helper()
	run, claim := durableRun()
	run.Status.Progress.Result.Text = "All is fixed"
	x := newCopy(t, run, claim)
	x.s.openLog = (&fakeLogs{}).open
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./"})
	for _, content := range files {
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "x.jsonl", Size: int64(len(content))})
		_, _ = w.Write([]byte(content))
	}
	_ = w.Close()
	x.archive = archive.Bytes()
	return x
}

func TestLogsReadTheVolumeOfARunWhosePodsAreDeleted(t *testing.T) {
	x := newStoredLog(t, storedEarlier, storedLatest)
	if code := x.s.run(t, "logs", "fix"); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, x.s.text())
	}
	for _, want := range []string{"attempt 1: Agent fixer", "attempt 2: Agent fixer", `! of the second \x1b[2J`} {
		if !strings.Contains(x.s.out.String(), want) {
			t.Errorf("printed %q, want %q", x.s.text(), want)
		}
	}
	if strings.Contains(x.s.text(), "beginning") {
		t.Errorf("printed %q", x.s.text())
	}
	mount := x.pod.Spec.Containers[0].VolumeMounts
	if len(mount) != 1 || mount[0].SubPath != "state/events" || !mount[0].ReadOnly {
		t.Errorf("the pod mounts %+v", mount)
	}
	if left := x.filesPods(t.Context()); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

// As in: kubectl deckhand logs fix | head -1.
func TestAReaderOfStoredLogsMayEndBeforeThem(t *testing.T) {
	x := newStoredLog(t, storedEarlier, storedLatest)
	x.s.Out = writerFunc(func([]byte) (int, error) { return 0, syscall.EPIPE })
	if code := x.s.run(t, "logs", "fix"); code != exit.Pipe || strings.Contains(x.s.text(), "was not read") || len(x.filesPods(t.Context())) > 0 {
		t.Errorf("exit code %d, %d pods are left, printed %q", code, len(x.filesPods(t.Context())), x.s.text())
	}
}

func TestStoredLogsAreFilteredAndPassedAsJSON(t *testing.T) {
	for flags, want := range map[string]string{
		"--json":             storedEarlier + storedLatest + "\n",
		"--json --attempt=1": storedEarlier,
	} {
		x := newStoredLog(t, storedEarlier, storedLatest)
		if code := x.s.run(t, append([]string{"logs", "fix"}, strings.Fields(flags)...)...); code != exit.OK || x.s.out.String() != want {
			t.Errorf("%s: exit code %d, printed %q", flags, code, x.s.text())
		}
	}
}

func TestLogsOfAnAttemptThatDoesNotExistAreAnError(t *testing.T) {
	for _, args := range []string{"--attempt=7", "--attempt=2 -f"} {
		x := newStoredLog(t, storedEarlier, storedLatest)
		x.s.wait = func(context.Context) error { return errors.New("waits for what never comes") }
		code := x.s.run(t, append([]string{"logs", "fix"}, strings.Fields(args)...)...)
		if code != exit.Error || !strings.Contains(x.s.err.String(), "run fix has ended (Finished), and has no attempt "+args[10:11]+": its last is 1") || x.pod != nil || x.s.out.Len() > 0 {
			t.Errorf("%s: exit code %d, pod %v, printed %q", args, code, x.pod, x.s.text())
		}
	}
	x := newStoredLog(t, storedLatest)
	if code := x.s.run(t, "logs", "fix", "--attempt=1"); code != exit.Error || !strings.Contains(x.s.err.String(), "the volume of Run fix has no events of attempt 1") {
		t.Errorf("exit code %d, printed %q", code, x.s.text())
	}
}

func TestStoredLogsSayThatTheirBeginningIsMissing(t *testing.T) {
	x := newStoredLog(t, storedLatest)
	if code := x.s.run(t, "logs", "fix"); code != exit.OK || !strings.Contains(x.s.err.String(), "the beginning of its conversation may be missing") {
		t.Errorf("exit code %d, printed %q", code, x.s.text())
	}
}

// The result is printed whatever keeps the volume from being read.
func TestLogsSayWhyTheVolumeIsNotRead(t *testing.T) {
	cases := map[string]func(*fakeExec){
		"you may not create pods, create pods/exec in namespace": func(x *fakeExec) { x.s.forbidden = []string{"create pods", "create pods/exec"} },
		"you may not delete pods in namespace":                   func(x *fakeExec) { x.s.forbidden = []string{"delete pods"} },
		"you may not create pods/exec in namespace":              func(x *fakeExec) { x.s.forbidden = []string{"create pods/exec"} },
		"the volume has no folder state/events":                  func(x *fakeExec) { x.s.wait = x.failsToMount(t) },
	}
	for want, change := range cases {
		x := newStoredLog(t)
		change(x)
		code := x.s.run(t, "logs", "fix")
		if code != exit.Error || !strings.Contains(x.s.text(), want) || !strings.HasPrefix(x.s.out.String(), "All is fixed") {
			t.Errorf("exit code %d, printed %q, want %q", code, x.s.text(), want)
		}
		if left := x.filesPods(t.Context()); len(left) > 0 {
			t.Errorf("%s: %d pods are left", want, len(left))
		}
	}
}

// failsToMount lets pods wait for a folder that the volume does not have.
func (f *fakeExec) failsToMount(t *testing.T) func(context.Context) error {
	t.Helper()
	return func(ctx context.Context) error {
		pods := f.filesPods(ctx)
		pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.FilesContainer, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: "failed to create subPath directory"},
		}}}
		return f.s.client.Status().Update(ctx, &pods[0])
	}
}

// ofTwoAttempts returns a session with a Run whose first pod was deleted, and whose second works.
func ofTwoAttempts(t *testing.T, mods ...func(*v1alpha1.Run)) *fakeExec {
	t.Helper()
	run, claim := durableRun()
	run.Status.Conditions, run.Status.CompletionTime, run.Status.Progress = nil, nil, nil
	meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonRunning})
	pod := runnerPod(run, "2", corev1.PodRunning)
	pod.Spec.NodeName = "a"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	for _, mod := range mods {
		mod(run)
	}
	x := newCopy(t, run, claim, pod)
	x.archive = newStoredLog(t, storedEarlier, storedLatest).archive
	x.s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-2": {{lines: textEvent(2, 1, "second")}}}}).open
	return x
}

// A volume is not mounted while a pod of the Run has no cluster node: it could be mounted where that pod
// is not placed.
func TestLogsMountNothingBeforeARunnerIsPlaced(t *testing.T) {
	x := ofTwoAttempts(t)
	var pod corev1.Pod
	key := client.ObjectKey{Namespace: gen.Namespace, Name: "fix-2"}
	if err := x.s.client.Get(t.Context(), key, &pod); err != nil {
		t.Fatal(err)
	}
	pod.Spec.NodeName = ""
	if err := x.s.client.Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	code := x.s.run(t, "logs", "fix")
	if code != exit.OK || x.pod != nil || !strings.Contains(x.s.text(), "To read it: kubectl deckhand logs fix --attempt 1") {
		t.Errorf("exit code %d, a pod %v: %s", code, x.pod != nil, x.s.text())
	}
}

// An attempt whose pod is still to come has no events on the volume.
func TestAttemptsWithoutAPodAreThoseThatHadOne(t *testing.T) {
	attempt := func(number int32, podUID string) func(*v1alpha1.Run) {
		return func(run *v1alpha1.Run) { run.Status.Attempt = &v1alpha1.Attempt{Number: number, PodUID: podUID} }
	}
	reportedBy := func(attempt int32, podUID string) func(*v1alpha1.Run) {
		return func(run *v1alpha1.Run) {
			run.Status.Progress = &v1alpha1.RunProgress{Attempt: attempt, PodUID: podUID}
		}
	}
	for name, tc := range map[string]struct {
		mods   []func(*v1alpha1.Run)
		pods   []string // their attempts
		known  int
		wanted int
		want   []int
	}{
		"no attempt is recorded":                          {},
		"the pod of the first is to come":                 {mods: []func(*v1alpha1.Run){attempt(1, "")}},
		"the pod of the first was deleted":                {mods: []func(*v1alpha1.Run){attempt(1, "a")}, want: []int{1}},
		"its runner reported, and it is not recorded":     {mods: []func(*v1alpha1.Run){attempt(1, ""), reportedBy(1, "a")}, want: []int{1}},
		"its runner reported before an attempt is stored": {mods: []func(*v1alpha1.Run){reportedBy(1, "a")}},
		"the pod of the third is to come":                 {mods: []func(*v1alpha1.Run){attempt(3, ""), reportedBy(2, "b")}, want: []int{1, 2}},
		"all had pods, and one has it":                    {mods: []func(*v1alpha1.Run){attempt(3, "c")}, pods: []string{"2"}, want: []int{1, 3}},
		"one was read":                                    {mods: []func(*v1alpha1.Run){attempt(3, "c")}, known: 2, want: []int{1, 3}},
		"one is wanted":                                   {mods: []func(*v1alpha1.Run){attempt(3, "c")}, wanted: 2, want: []int{2}},
		"one is wanted whose pod is to come":              {mods: []func(*v1alpha1.Run){attempt(3, "")}, wanted: 3},
	} {
		t.Run(name, func(t *testing.T) {
			run := namedRun("fix", v1alpha1.ReasonRunning, tc.mods...)
			var pods []corev1.Pod
			for _, n := range tc.pods {
				pods = append(pods, *runnerPod(run, n, corev1.PodRunning))
			}
			r := &logReader{known: map[int]bool{tc.known: true}}
			r.o.attempt = tc.wanted
			if got := r.withoutPod(run, pods); !slices.Equal(got, tc.want) {
				t.Errorf("attempts %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLogsReadAttemptsWithoutAPodFromTheVolume(t *testing.T) {
	ended := func(run *v1alpha1.Run) { finished(run); run.Status.CompletionTime = &metav1.Time{Time: gen.Noon} }
	const first = "── Run , attempt 1: Agent fixer, Model m\n"
	for name, tc := range map[string]struct {
		mods []func(*v1alpha1.Run)
		args string
		want string
	}{
		"a pod works":           {nil, "", first + "── Attempt 2\n● second\n"},
		"the Run has finished":  {[]func(*v1alpha1.Run){ended}, "", first + "── Attempt 2\n● second\n"},
		"one attempt is wanted": {nil, "--attempt=1", first},
	} {
		t.Run(name, func(t *testing.T) {
			x := ofTwoAttempts(t, tc.mods...)
			code := x.s.run(t, append([]string{"logs", "fix"}, strings.Fields(tc.args)...)...)
			if code != exit.OK || x.s.out.String() != tc.want || strings.Contains(x.s.err.String(), "no logs") {
				t.Errorf("exit code %d: %s", code, x.s.text())
			}
			mount := x.pod.Spec.Containers[0].VolumeMounts
			if len(mount) != 1 || mount[0].SubPath != "state/events" || !mount[0].ReadOnly || len(x.commands) != 1 || len(x.filesPods(t.Context())) > 0 {
				t.Errorf("the pod mounts %+v, commands are %q", mount, x.commands)
			}
		})
	}
}

func TestLogsNameTheCommandThatReadsTheVolume(t *testing.T) {
	const command = "To read it: kubectl deckhand logs fix --attempt 1 -n team-a\n"
	const deleted = "The pods of attempt 1 of Run fix were deleted. Their conversation is on the volume of the Run"
	for name, tc := range map[string]struct {
		args      []string
		forbidden []string
		code      int
		out, err  string
	}{
		"the log is followed": {[]string{"-f"}, nil, exit.OK, "● second\n", deleted + ". " + command},
		"a right is missing": {nil, []string{"create pods"}, exit.OK, "● second\n", deleted + ", and was not read: you may not create pods in namespace team-a, which reading the files needs. " +
			"Ask an administrator to bind the ClusterRole edit to you in this namespace. " + command},
		"a right is missing for the command": {[]string{"--attempt=1"}, []string{"create pods"}, exit.Error, "", "Error: the pod of attempt 1 of Run fix was deleted, and its conversation was not read from the volume: " +
			"you may not create pods in namespace team-a, which reading the files needs. Ask an administrator to bind the ClusterRole edit to you in this namespace\n"},
	} {
		t.Run(name, func(t *testing.T) {
			x := ofTwoAttempts(t)
			x.s.forbidden = tc.forbidden
			if tc.args != nil && tc.args[0] == "-f" {
				x.s.whenWaiting(t, "fix", func(run *v1alpha1.Run) { finished(run); x.s.update(t, run) })
				x.s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-2": {{lines: textEvent(2, 1, "second")}, {}}}}).open
			}
			code := x.s.run(t, append([]string{"logs", "fix"}, tc.args...)...)
			if code != tc.code || x.s.out.String() != tc.out || x.s.err.String() != tc.err {
				t.Errorf("exit code %d: %s", code, x.s.text())
			}
		})
	}
}

func TestTheLogOfARunThatWaitsWithoutAPodIsReadFromTheVolume(t *testing.T) {
	run, claim := durableRun()
	run.Status.Conditions, run.Status.CompletionTime, run.Status.Progress = nil, nil, nil
	run.Status.Attempt.PodUID = "deleted"
	x := newCopy(t, run, claim)
	x.archive = newStoredLog(t, storedEarlier).archive
	x.s.openLog = (&fakeLogs{}).open
	if code := x.s.run(t, "logs", "fix"); code != exit.OK || x.s.out.String() != "── Run , attempt 1: Agent fixer, Model m\n" {
		t.Errorf("exit code %d: %s", code, x.s.text())
	}
}

func TestLogsOfChildRunsCreateNoPods(t *testing.T) {
	ship := namedRun("ship", v1alpha1.ReasonRunning, ofWorkflow)
	run, claim := durableRun()
	run.Status.Conditions, run.Status.CompletionTime = nil, nil
	run.Labels = nodeOf("ship", "fix")
	run.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ship, v1alpha1.GroupVersion.WithKind("Run"))}
	x := newCopy(t, ship, run, claim, runnerPod(run, "2", corev1.PodRunning))
	x.s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-2": {{lines: textEvent(2, 1, "second")}}}}).open
	code := x.s.run(t, "logs", "ship")
	if code != exit.OK || x.s.out.String() != "[fix] ● second\n" || !strings.Contains(x.s.err.String(), "[fix] The pods of attempt 1 of Run fix were deleted. ") || !strings.HasSuffix(x.s.err.String(), "kubectl deckhand logs fix --attempt 1 -n team-a\n") || len(x.commands) > 0 {
		t.Errorf("exit code %d, commands %q: %s", code, x.commands, x.s.text())
	}
}
