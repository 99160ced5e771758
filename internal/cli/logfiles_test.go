package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/runner/events"
)

// eventLine is a line of a log.
func eventLine(t *testing.T, p events.Payload) string {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(events.Line{V: events.LineVersion, Attempt: 1, Type: p.EventType(), Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
}

// fileLines are the lines of a file, in parts of 3 bytes, and its entry in the list.
func fileLines(t *testing.T, name, content string) (string, events.LoggedFile) {
	t.Helper()
	lines := ""
	for at := 0; at == 0 || at < len(content); at += 3 {
		lines += eventLine(t, events.File{Path: name, Size: int64(len(content)), Offset: int64(at), Data: []byte(content[at:min(at+3, len(content))])})
	}
	digest := sha256.Sum256([]byte(content))
	return lines, events.LoggedFile{Path: name, Size: int64(len(content)), SHA256: hex.EncodeToString(digest[:])}
}

// loggedRun returns a finished Run without a volume, and its pod.
func loggedRun() (*v1alpha1.Run, *corev1.Pod) {
	run := namedRun("fix", v1alpha1.ReasonFinished, finished, func(r *v1alpha1.Run) {
		r.Spec.Agent = "fixer"
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: "fix-1"}
		r.Status.Progress = &v1alpha1.RunProgress{Result: &v1alpha1.Result{Committed: true, Files: []v1alpha1.File{{Path: "/workspace/docs/a.md"}}}}
	})
	return run, runnerPod(run, "1", corev1.PodSucceeded)
}

// newLogSession returns a session in which the pod of the Run has a log.
func newLogSession(t *testing.T, log fakeStream, objects ...client.Object) *session {
	t.Helper()
	s := newSession(t, objects...)
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {log}}}).open
	return s
}

// logOf is a log with files, and with what else a log has.
func logOf(t *testing.T, list events.Files, files map[string]string) fakeStream {
	t.Helper()
	lines := "panic: no event\n" + strings.Repeat("x", 2*maxEventLine) + "\n" + eventLine(t, events.RunStarted{Agent: "fixer"})
	for name, content := range files {
		more, entry := fileLines(t, name, content)
		lines, list.Files = lines+more, append(list.Files, entry)
	}
	lines += eventLine(t, list) + eventLine(t, events.RunFinished{Reason: "Finished"})
	return fakeStream{lines: lines, cut: errors.New("it is read after its last event")}
}

func TestCpReadsTheLogOfARunWithoutAVolume(t *testing.T) {
	run, pod := loggedRun()
	log := logOf(t, events.Files{}, map[string]string{"docs/a.md": "A report.", "docs/b/empty": "", "top": "T"})
	s := newLogSession(t, log, run, pod)
	if code := s.run(t, "cp", "fix:docs/a.md", "-"); code != exit.OK || s.out.String() != "A report." {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	for from, want := range map[string]map[string]string{
		".":    {"docs/a.md": "A report.", "docs/b/empty": "", "top": "T"},
		"docs": {"a.md": "A report.", "b/empty": ""},
	} {
		s := newLogSession(t, log, run, pod)
		local := t.TempDir()
		if code := s.run(t, "cp", "fix:"+from, local); code != exit.OK {
			t.Fatalf("exit code %d: %s", code, s.text())
		}
		if diff := cmp.Diff(want, copiedFiles(t, local)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", from, diff)
		}
	}
}

func copiedFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		name, _ = filepath.Rel(dir, name)
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCpNamesTheFilesThatALogDoesNotHave(t *testing.T) {
	run, pod := loggedRun()
	leftOut := events.Files{LeftOut: []events.LeftOutFile{{Path: "big.bin", Size: 3 << 20, Reason: events.LeftOutTooLarge}}, More: 2}
	rotated := logOf(t, events.Files{}, map[string]string{"a.md": "A report."})
	rotated.lines = rotated.lines[strings.Index(rotated.lines, `"offset":3`):]
	cases := map[string]struct {
		from string
		log  fakeStream
		want string
	}{
		"a file that is too large":   {"big.bin", logOf(t, leftOut, nil), "not in the log of pod fix-1: big.bin (3.0 MiB, and files in a log have at most 1.0 MiB in all). To keep all files, set workspace.durability: Volume of Agent fixer"},
		"all files":                  {".", logOf(t, leftOut, map[string]string{"a.md": "A"}), "2 more. To keep all files"},
		"another file":               {"b.md", logOf(t, events.Files{}, map[string]string{"a.md": "A"}), "b.md is not in the log of pod fix-1, which has: a.md. To keep"},
		"a file that was rotated":    {"a.md", rotated, "a.md (its beginning was lost when the kubelet rotated the log)"},
		"a log without files":        {"a.md", fakeStream{lines: eventLine(t, events.RunFinished{})}, "has no files: the Run made none"},
		"a log that cannot be read":  {"a.md", fakeStream{cut: errors.New("broken")}, "reading the log of pod fix-1: broken"},
		"a log that may not be read": {"a.md", fakeStream{refused: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "fix-1", errors.New(`User "ann" cannot get resource "pods/log" in API group ""`))}, "ClusterRole view"},
		"a pod that is gone":         {"a.md", fakeStream{refused: apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "fix-1")}, "set retention.pod of Agent fixer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newLogSession(t, tc.log, run.DeepCopy(), pod.DeepCopy())
			if code := s.run(t, "cp", "fix:"+tc.from, t.TempDir()); code != exit.Error || !strings.Contains(s.text(), tc.want) {
				t.Errorf("exit code %d, printed %q, want %q", code, s.text(), tc.want)
			}
		})
	}
	s := newSession(t, run)
	if code := s.run(t, "cp", "fix:a.md", "-"); code != exit.Error || !strings.Contains(s.text(), "log of its pod, which was deleted") {
		t.Errorf("exit code %d, printed %q", code, s.text())
	}
}

// A custom runner may write anything to its log.
func TestHostileFilesOfALogStayInTheDirectory(t *testing.T) {
	run, pod := loggedRun()
	for name, wantCode := range map[string]int{"../escaped": exit.Error, "/etc/escaped": exit.Error, "a/../../escaped": exit.Error, "new\nline\x1b[2J": exit.OK} {
		parent := t.TempDir()
		local := filepath.Join(parent, "files")
		s := newLogSession(t, logOf(t, events.Files{}, map[string]string{name: "x"}), run.DeepCopy(), pod.DeepCopy())
		if code := s.run(t, "cp", "fix:.", local); code != wantCode || strings.ContainsAny(s.text(), "\x1b") {
			t.Errorf("%q: exit code %d, printed %q", name, code, s.text())
		}
		if files := copiedFiles(t, parent); len(files) > 0 {
			t.Errorf("%q: wrote %v", name, files)
		}
	}
}

func TestTheFilesOfALogAreBounded(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		log.WriteString(eventLine(t, events.File{Path: fmt.Sprint(i), Data: make([]byte, 32<<10)}))
	}
	files := &loggedFiles{parts: map[string]*bytes.Buffer{}}
	if err := files.read(strings.NewReader(log.String())); err != nil || files.bytes > events.MaxLoggedBytes {
		t.Errorf("holds %d bytes: %v", files.bytes, err)
	}
}

func TestWhySaysHowManyFilesAreInTheLog(t *testing.T) {
	run, pod := loggedRun()
	const inLog = "in the log of pod fix-1 until it is deleted (retention.pod of the Agent). To copy them: kubectl deckhand cp fix:. DIRECTORY"
	leftOut := events.Files{LeftOut: []events.LeftOutFile{{Path: "big.bin", Size: 3 << 20, Reason: events.LeftOutTooLarge}, {Path: "*.pdf", Reason: events.LeftOutNotFound}}}
	cases := map[string]struct {
		log         fakeStream
		want, never string
	}{
		"all":            {logOf(t, events.Files{}, map[string]string{"a.md": "A"}), "  Files:     1 " + inLog, "2 in the log"},
		"some":           {logOf(t, leftOut, map[string]string{"a.md": "A"}), "  Files:     1 " + inLog, "2 in the log"},
		"none":           {logOf(t, leftOut, nil), "Pod fix-1", "in the log"},
		"no event":       {fakeStream{lines: eventLine(t, events.RunFinished{})}, "Pod fix-1", "Files:"},
		"no rights":      {fakeStream{refused: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "fix-1", errors.New(`User "ann" cannot get resource "pods/log" in API group ""`))}, "Files are not shown: ", inLog},
		"gone meanwhile": {fakeStream{refused: apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "fix-1")}, "Files are not shown: ", inLog},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newLogSession(t, tc.log, run.DeepCopy(), pod.DeepCopy())
			if code := s.run(t, "why", "fix"); code != exit.OK || !strings.Contains(s.text(), tc.want) || strings.Contains(s.text(), tc.never) {
				t.Errorf("exit code %d, printed %s", code, s.text())
			}
		})
	}
	if s := newSession(t, run); s.run(t, "why", "fix") != exit.OK || strings.Contains(s.text(), "in the log") {
		t.Errorf("without its pod: printed %s", s.text())
	}
}
