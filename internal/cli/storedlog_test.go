package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/internal/runnerpod"
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
	if code := x.s.run(t, "logs", "fix"); code != exitOK {
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
	if code := x.s.run(t, "logs", "fix"); code != exitPipe || strings.Contains(x.s.text(), "was not read") || len(x.filesPods(t.Context())) > 0 {
		t.Errorf("exit code %d, %d pods are left, printed %q", code, len(x.filesPods(t.Context())), x.s.text())
	}
}

func TestStoredLogsAreFilteredAndPassedAsJSON(t *testing.T) {
	for flags, want := range map[string]string{
		"--json":             storedEarlier + storedLatest + "\n",
		"--json --attempt=1": storedEarlier,
	} {
		x := newStoredLog(t, storedEarlier, storedLatest)
		if code := x.s.run(t, append([]string{"logs", "fix"}, strings.Fields(flags)...)...); code != exitOK || x.s.out.String() != want {
			t.Errorf("%s: exit code %d, printed %q", flags, code, x.s.text())
		}
	}
}

func TestStoredLogsSayThatTheirBeginningIsMissing(t *testing.T) {
	x := newStoredLog(t, storedLatest)
	if code := x.s.run(t, "logs", "fix"); code != exitOK || !strings.Contains(x.s.err.String(), "the beginning of its conversation may be missing") {
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
		if code != exitError || !strings.Contains(x.s.text(), want) || !strings.HasPrefix(x.s.out.String(), "All is fixed") {
			t.Errorf("exit code %d, printed %q, want %q", code, x.s.text(), want)
		}
		if left := x.filesPods(t.Context()); len(left) > 0 {
			t.Errorf("%s: %d pods are left", want, len(left))
		}
	}
}

// failsToMount lets pods wait for a folder that the volume does not have.
func (x *fakeExec) failsToMount(t *testing.T) func(context.Context) error {
	t.Helper()
	return func(ctx context.Context) error {
		pods := x.filesPods(ctx)
		pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.FilesContainer, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: "failed to create subPath directory"},
		}}}
		return x.s.client.Status().Update(ctx, &pods[0])
	}
}
