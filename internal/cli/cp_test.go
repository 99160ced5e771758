package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// durableRun returns a finished Run and the claim with its files.
func durableRun(mods ...func(*corev1.PersistentVolumeClaim)) (*v1alpha1.Run, *corev1.PersistentVolumeClaim) {
	ended := metav1.NewTime(gen.Noon)
	run := namedRun("fix", v1alpha1.ReasonFinished, finished, func(r *v1alpha1.Run) {
		r.Status.CompletionTime = &ended
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: "fix-1", VolumeClaim: "deckhand-run-fix-1"}
		r.Status.Progress = &v1alpha1.RunProgress{Result: &v1alpha1.Result{Files: []v1alpha1.File{{Path: "docs/report.md"}}}}
	})
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gen.Namespace, Name: "deckhand-run-fix-1",
			Annotations: map[string]string{
				v1alpha1.AnnotationRetention: "24h0m0s",
				v1alpha1.AnnotationRetain:    "Always",
				v1alpha1.AnnotationFilesPod:  `{"image":"registry.test/runner:1","runAsUser":1000,"tolerations":[{"key":"agents","operator":"Exists"}]}`,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	for _, mod := range mods {
		mod(claim)
	}
	return run, claim
}

// A fakeExec is the files pod: it starts when it is waited for, and sends an archive.
type fakeExec struct {
	s       *session
	archive []byte
	says    string
	fails   error

	// pod is the one that was created for the files, and commands what was executed where.
	pod      *corev1.Pod
	commands []string
}

func newCopy(t *testing.T, objects ...client.Object) *fakeExec {
	t.Helper()
	x := &fakeExec{s: newSession(t, objects...), archive: archived(t, "report.md").Bytes()}
	x.s.exec = x.execute
	x.s.wait = x.start
	return x
}

func (f *fakeExec) execute(_ context.Context, in container, command []string, stdout, stderr io.Writer) error {
	f.commands = append(f.commands, in.pod.Name+" "+in.name+" "+strings.Join(command, " "))
	_, _ = io.WriteString(stderr, f.says)
	if f.fails != nil {
		return f.fails
	}
	_, err := stdout.Write(f.archive)
	return err
}

// start lets pods start that were created for files.
func (f *fakeExec) start(ctx context.Context) error {
	pods := f.filesPods(ctx)
	if len(pods) != 1 {
		return fmt.Errorf("%d pods were created", len(pods))
	}
	f.pod = pods[0].DeepCopy()
	pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.FilesContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return f.s.client.Status().Update(ctx, &pods[0])
}

func (f *fakeExec) filesPods(ctx context.Context) []corev1.Pod {
	var pods corev1.PodList
	_ = f.s.client.List(ctx, &pods, client.MatchingLabels{"app.kubernetes.io/name": "deckhand-files"})
	return pods.Items
}

func TestCpReadsTheVolumeOfAFinishedRun(t *testing.T) {
	run, claim := durableRun()
	x := newCopy(t, run, claim)
	local := t.TempDir()
	if code := x.s.run(t, "cp", "fix:/workspace/docs/report.md", local); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, x.s.text())
	}
	if content, err := os.ReadFile(filepath.Join(local, "report.md")); err != nil || string(content) != "report.md" {
		t.Errorf("the file has %q: %v", content, err)
	}
	if want := "Copied 1 file, 9 bytes to " + local; !strings.Contains(x.s.text(), want) {
		t.Errorf("printed %q, want %q", x.s.text(), want)
	}
	if len(x.commands) != 1 || !strings.HasSuffix(x.commands[0], " files /proc/1/exe files docs/report.md") {
		t.Errorf("executed %q", x.commands)
	}
	if left := x.filesPods(t.Context()); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
	x.pod.Name, x.pod.ResourceVersion = "", ""
	shown, err := yaml.Marshal(x.pod)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "filespod.yaml", string(shown))
}

func TestCpReadsAWorkingPodItself(t *testing.T) {
	run, claim := durableRun()
	run.Status.Conditions, run.Status.CompletionTime = nil, nil
	pod := runnerPod(run, "1", corev1.PodRunning)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "runner", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	x := newCopy(t, run, claim, pod)
	if code := x.s.run(t, "cp", "fix:report.md", "-"); code != exit.OK || x.s.out.String() != "report.md" {
		t.Errorf("exit code %d: %s", code, x.s.text())
	}
	if want := []string{"fix-1 runner /proc/1/exe files report.md"}; !slices.Equal(x.commands, want) {
		t.Errorf("executed %q", x.commands)
	}
}

// A volume that only one cluster node may mount is read there while a pod uses it.
func TestCpReadsOnTheClusterNodeThatHasTheVolume(t *testing.T) {
	for mode, want := range map[corev1.PersistentVolumeAccessMode]string{
		corev1.ReadWriteOnce: "node-7", corev1.ReadWriteMany: "", corev1.ReadWriteOncePod: "refused",
	} {
		run, claim := durableRun(func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode} })
		other := runnerPod(namedRun("other", v1alpha1.ReasonPending), "1", corev1.PodRunning)
		other.Spec = corev1.PodSpec{NodeName: "node-7", Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}}
		x := newCopy(t, run, claim, other)
		code := x.s.run(t, "cp", "fix:report.md", "-")
		got := ""
		switch {
		case code != exit.OK:
			got = "refused"
		case x.pod.Spec.Affinity != nil:
			got = x.pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		}
		if got != want {
			t.Errorf("%s: %q, want %q: %s", mode, got, want, x.s.text())
		}
	}
}

func TestCpSaysWhyThereAreNoFiles(t *testing.T) {
	run, claim := durableRun()
	inPod := namedRun("fix", v1alpha1.ReasonFinished, finished)
	old := claim.DeepCopy()
	delete(old.Annotations, v1alpha1.AnnotationFilesPod)
	foreign := claim.DeepCopy()
	foreign.OwnerReferences[0].UID = "another"
	for want, objects := range map[string][]client.Object{
		"had no pod, so it has no files": {inPod},
		"To keep files for longer":       {run},
		"were deleted with":              {run, foreign},
		"Name it with --image":           {run, old},
	} {
		x := newCopy(t, objects...)
		if code := x.s.run(t, "cp", "fix:report.md", "-"); code != exit.Error || !strings.Contains(x.s.text(), want) {
			t.Errorf("exit code %d, printed %q, want %q", code, x.s.text(), want)
		}
	}
}

func TestCpNamesMissingRights(t *testing.T) {
	run, claim := durableRun()
	x := newCopy(t, run, claim)
	x.s.forbidden = []string{"create pods/exec"}
	want := "you may not create pods/exec in namespace " + gen.Namespace
	if code := x.s.run(t, "cp", "fix:report.md", "-"); code != exit.Error || !strings.Contains(x.s.text(), want) || len(x.filesPods(t.Context())) > 0 {
		t.Errorf("exit code %d, printed %q", code, x.s.text())
	}
}

// The API server may have created the pod when the user interrupts the request.
func TestCpRemovesItsPodWhenItsCreateIsInterrupted(t *testing.T) {
	run, claim := durableRun()
	x := newCopy(t, run, claim)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	x.s.wait = func(ctx context.Context) error { return ctx.Err() }
	x.s.client = interceptor.NewClient(x.s.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, isPod := o.(*corev1.Pod); !isPod {
				return c.Create(ctx, o, options...)
			}
			created := o.DeepCopyObject().(client.Object)
			err := c.Create(ctx, created, options...)
			interrupt()
			if ctx.Err() != nil { // its answer is not read
				return ctx.Err()
			}
			created.(*corev1.Pod).DeepCopyInto(o.(*corev1.Pod))
			return err
		},
	})
	if code := x.s.runUntil(ctx, t, "cp", "fix:x.md", "-"); code != exit.Interrupted || len(x.filesPods(t.Context())) > 0 {
		t.Errorf("exit code %d, %d pods are left: %s", code, len(x.filesPods(t.Context())), x.s.text())
	}
}

func TestCpRemovesItsPodAfterErrors(t *testing.T) {
	run, claim := durableRun()
	cases := map[string]func(*fakeExec){
		"does not exist in the workspace. The agent changed: docs/report.md": func(x *fakeExec) {
			x.says, x.fails = "x.md does not exist in the workspace\n", errors.New("command terminated with exit code 1")
		},
		"Name a newer one with --image": func(x *fakeExec) {
			x.says, x.fails = "This program is the first process of a runner pod and nothing else", errors.New("exit code 65")
		},
		"connection reset":         func(x *fakeExec) { x.fails = errors.New("connection reset") },
		"is a directory":           func(x *fakeExec) { x.archive = archived(t, "./", "a").Bytes() },
		"does not start":           func(x *fakeExec) { x.s.wait = func(context.Context) error { return nil }; x.tick() },
		"context canceled":         func(x *fakeExec) { x.s.wait = func(context.Context) error { return context.Canceled } },
		"reading the files: unexp": func(x *fakeExec) { x.archive = nil },
	}
	for want, mod := range cases {
		x := newCopy(t, run.DeepCopy(), claim.DeepCopy())
		mod(x)
		if code := x.s.run(t, "cp", "fix:x.md", "-"); code == exit.OK || !strings.Contains(x.s.text(), want) {
			t.Errorf("exit code %d, printed %q, want %q", code, x.s.text(), want)
		}
		if left := x.filesPods(t.Context()); len(left) > 0 {
			t.Errorf("%s: %d pods are left", want, len(left))
		}
	}
}

// tick lets a minute pass with each look at the time.
func (f *fakeExec) tick() {
	now := gen.Noon
	f.s.Now = func() time.Time { now = now.Add(time.Minute); return now }
}

func TestCpRefusesSourcesWithoutAMeaning(t *testing.T) {
	for _, source := range []string{"fix", ":report.md", "fix:../x", "fix:a/../../x"} {
		x := newCopy(t)
		if code := x.s.run(t, "cp", source, "-"); code != exit.Usage {
			t.Errorf("%s: exit code %d: %s", source, code, x.s.text())
		}
	}
}

func TestWhySaysUntilWhenFilesExist(t *testing.T) {
	run, claim := durableRun()
	mine := "Files:     on PersistentVolumeClaim deckhand-run-fix-1"
	for want, objects := range map[string][]client.Object{
		mine + " until " + gen.Noon.Add(24*time.Hour).Format(time.RFC3339) + ". To copy them: kubectl deckhand cp fix:. DIRECTORY -n team-a. To continue the Run: kubectl deckhand continue fix -p TEXT -n team-a\n": {run, claim},
		"Files:     deleted with PersistentVolumeClaim deckhand-run-fix-1\n": {run},
	} {
		s := newSession(t, objects...)
		if code := s.run(t, "why", "fix"); code != exit.OK || !strings.Contains(s.text(), want) {
			t.Errorf("exit code %d, printed:\n%s\nwant %q", code, s.text(), want)
		}
	}
}

// The pod of a finished Run ends at any moment, so it is not asked.
func TestCpReadsTheVolumeWhileThePodOfAFinishedRunEnds(t *testing.T) {
	run, claim := durableRun()
	pod := runnerPod(run, "1", corev1.PodRunning)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "runner", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	x := newCopy(t, run, claim, pod)
	if code := x.s.run(t, "cp", "fix:report.md", "-"); code != exit.OK || x.pod == nil {
		t.Errorf("exit code %d, executed %q: %s", code, x.commands, x.s.text())
	}
}

// Ctrl-C while files are read deletes the pod.
func TestInterruptedCpRemovesItsPod(t *testing.T) {
	run, claim := durableRun()
	x := newCopy(t, run, claim)
	ctx, interrupt := context.WithCancel(t.Context())
	x.s.exec = func(ctx context.Context, _ container, _ []string, stdout, _ io.Writer) error {
		if len(x.filesPods(t.Context())) != 1 {
			t.Error("there is no pod to read the files in")
		}
		interrupt()
		<-ctx.Done()
		return ctx.Err()
	}
	if code := x.s.runUntil(ctx, t, "cp", "fix:.", t.TempDir()); code == exit.OK {
		t.Errorf("exit code %d: %s", code, x.s.text())
	}
	if left := x.filesPods(t.Context()); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

// A killed command leaves its pod behind, which ends and keeps the claim from being deleted.
func TestCpRemovesThePodsOfKilledCommands(t *testing.T) {
	run, claim := durableRun()
	ended := runnerpod.FilesPodOf(claim).Pod(run, claim.Name, runnerpod.WorkspaceFolder, "")
	ended.Name, ended.Status.Phase = "deckhand-files-killed", corev1.PodFailed
	foreign := ended.DeepCopy()
	foreign.Name, foreign.OwnerReferences[0].UID = "deckhand-files-foreign", "another"
	x := newCopy(t, run, claim, ended, foreign)
	x.s.wait = func(context.Context) error { return context.Canceled } // it does not come to its own
	_ = x.s.run(t, "cp", "fix:report.md", "-")
	if left := x.filesPods(t.Context()); len(left) != 1 || left[0].Name != foreign.Name {
		t.Errorf("%d pods are left", len(left))
	}
}

// The cluster node of a claim is that of a runner, if one is at work: users create the other pods.
func TestTheNodeOfAClaimIsThatOfARunner(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "deckhand-run-fix"}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}}
	pod := func(account, node string) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: account, NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}}}
	}
	runner, forged, unplaced := pod(v1alpha1.RunnerServiceAccount, "a"), pod("default", "nowhere"), pod(v1alpha1.RunnerServiceAccount, "")
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"a runner behind a pod of a user": {[]corev1.Pod{forged, runner}, "a"},
		"a pod of a user alone":           {[]corev1.Pod{forged}, "nowhere"},
		"a runner that is not placed":     {[]corev1.Pod{unplaced, runner}, "a"},
		"none":                            {nil, ""},
	} {
		if got, err := nodeThatMounts(claim, tc.pods); got != tc.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
}
