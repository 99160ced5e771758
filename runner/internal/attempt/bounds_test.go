package attempt

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A fakeModel is a model that answers with a text, in chunks that know no characters.
type fakeModel string

func (s fakeModel) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for rest := string(s); rest != ""; {
			n := min(len(rest), 1<<10)
			if !yield(model.Delta{Text: rest[:n]}, nil) {
				return
			}
			rest = rest[n:]
		}
		yield(model.Delta{Finish: step.FinishStop, Usage: &step.Usage{OutputTokens: 1}}, nil)
	}
}

// A result of 1 MiB with bytes that are no text reaches the status within its
// bounds, as text; the whole is in a file that the result names.
func TestAResultOfAMebibyteWithBytesThatAreNoText(t *testing.T) {
	const size = 1 << 20
	text := strings.Repeat("äöü\x00\xff\xc3(", size/len("äöü\x00\xff\xc3("))
	p := newTestPod(t)
	p.snapshot.Models[0] = task.Model{Name: "m", Provider: "Custom", Driver: "speaker"}
	if code := p.run(withModel("speaker", func(context.Context, registry.ModelSpec) (model.Model, error) { return fakeModel(text), nil })); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	r := p.api.reported[len(p.api.reported)-1].Result
	if r == nil || !r.Committed || r.Reason != task.ReasonFinished {
		t.Fatalf("the result is %+v", r)
	}
	for what, said := range map[string]string{"text": r.Text, "message": r.Message, "text of the last word": p.termination(t).Result.Text} {
		if !utf8.ValidString(said) || strings.Contains(said, "\x00") || len(said) > task.MaxText || said == "" {
			t.Errorf("the %s is no text within its bounds: %d bytes", what, len(said))
		}
	}
	if len(r.Files) != 1 || !strings.Contains(r.Message, r.Files[0].Path) {
		t.Fatalf("files %+v, message %q", r.Files, r.Message)
	}
	whole, err := os.ReadFile(filepath.Join(p.Workspace, textFile))
	if err != nil || int64(len(whole)) != r.Files[0].Size || len(whole) < size/2 || !strings.HasPrefix(string(whole), "äöü") {
		t.Errorf("the file has %d bytes, the result says %d (%v)", len(whole), r.Files[0].Size, err)
	}
	if last, err := os.ReadFile(p.terminationLog); err != nil || len(last) > task.MaxTermination {
		t.Errorf("the termination message has %d bytes (%v)", len(last), err)
	}
}

// A volume that is read-only ends the attempt before a model is asked, with a
// message that says so; where only the workspace is, the model reads it.
func TestAVolumeThatIsReadOnly(t *testing.T) {
	const inside = "DECKHAND_TEST_READ_ONLY"
	if os.Getenv(inside) == "" { // mounts go with the namespace of a process
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAVolumeThatIsReadOnly$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); errors.Is(err, syscall.EPERM) {
			t.Skipf("a mount namespace needs root: %v", err)
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	t.Run("with the journal", func(t *testing.T) {
		p := newTestPod(t)
		p.State = readOnly(t)
		if code := p.run(); code == task.ExitCommitted {
			t.Error("it ended with exit code 0")
		}
		if r := p.termination(t).Result; r.Reason != task.ReasonRunnerFailed || !strings.Contains(r.Message, "read-only file system") {
			t.Errorf("the result is %s: %q", r.Reason, r.Message)
		}
		if n := len(p.model.Requests()); n > 0 {
			t.Errorf("the model was asked %d times", n)
		}
	})
	t.Run("with the workspace", func(t *testing.T) {
		p := newTestPod(t, writeTurn("a.txt", "hello"), modeltest.Turn{Text: "It cannot be written."})
		p.Workspace = readOnly(t)
		if code := p.run(); code != task.ExitCommitted {
			t.Fatalf("exit code %d: %+v", code, p.termination(t))
		}
		if asked := p.model.Requests(); len(asked) != 2 || !strings.Contains(string(asked[1].Raw), "permission denied for write on /workspace/a.txt") {
			t.Errorf("the model was asked %d times and did not read why", len(asked))
		}
	})
}

// readOnly is an empty volume that takes no files.
func readOnly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "")); err != nil {
		t.Fatalf("mounting a read-only volume: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // the namespace goes anyway
	return dir
}
