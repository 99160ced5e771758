package attempt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// loggedFiles joins the files in a log, and returns the last event about them.
func loggedFiles(t *testing.T, log []byte) (map[string]string, events.Files) {
	t.Helper()
	files, summary := map[string]string{}, events.Files{}
	for line := range bytes.Lines(log) {
		var e events.Line
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		switch e.Type { //nolint:exhaustive // the others have no files
		case step.EventFile:
			if len(line) > 16<<10 {
				t.Errorf("a line has %d bytes, and container runtimes split it", len(line))
			}
			var part events.File
			if err := json.Unmarshal(e.Data, &part); err != nil || part.Offset != int64(len(files[part.Path])) {
				t.Fatalf("%s: %v", line, err)
			}
			files[part.Path] += string(part.Data)
		case step.EventFiles:
			if err := json.Unmarshal(e.Data, &summary); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, f := range summary.Files {
		if digest := sha256.Sum256([]byte(files[f.Path])); hex.EncodeToString(digest[:]) != f.SHA256 {
			t.Errorf("%s has another digest", f.Path)
		}
	}
	return files, summary
}

func TestFilesOfARunWithoutAVolumeAreInItsLog(t *testing.T) {
	large := strings.Repeat("0123456789\n", 5000)
	p := newTestPod(t, writeTurn("/workspace/docs/report.md", large), writeTurn("key.txt", "the key is "+secret), modeltest.Turn{Text: "Done."})
	var out bytes.Buffer
	p.Stdout = &out
	if code := p.run(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	files, summary := loggedFiles(t, out.Bytes())
	want := map[string]string{"docs/report.md": large, "key.txt": "the key is ‹secret:anthropic/api-key›"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files -want +got:\n%s", diff)
	}
	if len(summary.Files) != 2 || summary.LeftOut != nil {
		t.Errorf("the last event has %+v", summary)
	}
	if r := p.api.reported[len(p.api.reported)-1].Result; r.Message != "" || len(r.Files) != 2 {
		t.Errorf("the result is %+v", r)
	}
}

func TestFilesThatAreKeptOrNotWantedAreNotInTheLog(t *testing.T) {
	for name, change := range map[string]func(*testPod){
		"with a volume":  func(p *testPod) { p.task.Durable = true },
		"without events": func(p *testPod) { p.snapshot.Agent.Events = "None" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestPod(t, writeTurn("a.txt", "a"), modeltest.Turn{Text: "Done."})
			change(p)
			var out bytes.Buffer
			p.Stdout = &out
			if code := p.run(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			if strings.Contains(out.String(), `"type":"file`) {
				t.Errorf("the log has %s", out.String())
			}
		})
	}
}

// Files that cannot be in the log are in the last event and in the message of the Run, with what
// to do.
func TestFilesThatAreLeftOutAreNamed(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "Done."})
	p.snapshot.Agent.OutputFiles = []string{"*.bin", "out/**", "none/*.md", "many/*"}
	var out bytes.Buffer
	p.Stdout = &out
	writeFile(t, filepath.Join(p.Workspace, "a.bin"), strings.Repeat("\x00", 600<<10))
	writeFile(t, filepath.Join(p.Workspace, "b.bin"), strings.Repeat("\x00", 600<<10))
	writeFile(t, filepath.Join(p.Workspace, "out", "secret.dat"), "\xff\x00"+secret)
	writeFile(t, filepath.Join(p.Workspace, "out", "a\nb"), "x")
	writeFile(t, filepath.Join(p.Workspace, "out", "deep", "empty"), "")
	if err := os.Symlink(p.terminationLog, filepath.Join(p.Workspace, "out", "link")); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		writeFile(t, filepath.Join(p.Workspace, "many", fmt.Sprintf("%03d", i)), "x")
	}
	if code := p.run(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	files, summary := loggedFiles(t, out.Bytes())
	if empty, has := files["out/deep/empty"]; len(files) != events.MaxLoggedFiles || len(files["a.bin"]) != 600<<10 || !has || empty != "" {
		t.Errorf("the log has %d files", len(files))
	}
	if strings.Contains(out.String(), secret) {
		t.Error("the log has the secret")
	}
	got := map[string]string{}
	for _, f := range summary.LeftOut[:4] {
		got[f.Path] = f.Reason
	}
	want := map[string]string{
		"b.bin": events.LeftOutTooLarge, "out/secret.dat": events.LeftOutSecret,
		"out/a?b": events.LeftOutName, "none/*.md": events.LeftOutNotFound,
	}
	if diff := cmp.Diff(want, got); diff != "" || len(summary.LeftOut) != events.MaxLeftOut || len(summary.LeftOut)+int(summary.More) != 104-events.MaxLoggedFiles+2 {
		t.Errorf("left out %d and %d more -want +got:\n%s", len(summary.LeftOut), summary.More, diff)
	}
	message := p.api.reported[len(p.api.reported)-1].Result.Message
	for _, part := range []string{"The work is done. Not in the log: b.bin (too large", "39 more. To keep all files, set workspace.durability: Volume"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message is %q, want %q", message, part)
		}
	}
	if len(message) > task.MaxMessage || strings.Contains(message, "\n") {
		t.Errorf("the message is %q", message)
	}
}

func TestANoteOnlyAboutMissingFilesProposesNoVolume(t *testing.T) {
	r, err := collectFiles(t.TempDir(), []string{"*.md", "[a", "{..,b}/c"}, nil, nil, time.Now)
	want := "Not in the log: *.md (no such file), [a (not a valid pattern), {..,b}/c (not a valid pattern)"
	if got := r.note(); got != want || err != nil {
		t.Errorf("the note is %q, want %q: %v", got, want, err)
	}
}
