package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// filesOnly makes the Agent one that runs no commands, so that every kernel can run it.
func (b *bench) filesOnly(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(b.manifests)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(data), "  - builtin: Shell")
	b.write(t, b.manifests, before)
}

// runNamed runs the Agent with a name and a prompt, and returns what is printed.
func (b *bench) runNamed(t *testing.T, want int, name, prompt string, args ...string) string {
	t.Helper()
	b.out.Reset()
	b.err.Reset()
	args = append([]string{"-f", b.manifests, "-C", b.dir, "--name", name, "--model-key", "TEST_MODEL_KEY"}, args...)
	if prompt != "" {
		args = append(args, "-p", prompt)
	}
	code := b.run(t, args...)
	printed := b.out.String() + b.err.String()
	if code != want {
		t.Errorf("%s: exit code %d, want %d\n%s", name, code, want, printed)
	}
	return printed
}

// A local Run is continued with another prompt, forked, and continued again. The model reads what was said before.
func TestALocalRunIsContinued(t *testing.T) {
	b := newBench(t,
		localCall("Write", map[string]string{"path": "/memories/a.md", "content": "red\n"}),
		modeltest.Turn{Text: "It is red."},
		localCall("Read", map[string]string{"path": "/memories/a.md"}),
		modeltest.Turn{Text: "Still {{.LastToolResult}}."},
		modeltest.Turn{Text: "Nothing else."},
	)
	b.filesOnly(t)
	first := b.runNamed(t, exit.OK, "first", "Note the color.")
	if want := "To continue it: the same command with --continue=first"; !strings.Contains(first, want) {
		t.Errorf("it does not say %q:\n%s", want, first)
	}
	printed := b.runNamed(t, exit.OK, "second", "Which color was it?", "--continue=first")
	for _, want := range []string{"s6c1 Read", "Still 1  red"} { // the turn of the script is that of the session
		if !strings.Contains(printed, want) {
			t.Errorf("it prints no %q:\n%s", want, printed)
		}
	}
	if third := b.runNamed(t, exit.OK, "third", "And now?", "--continue"); !strings.Contains(third, "s10 Nothing else.") {
		t.Errorf("the Run that continues the last one prints:\n%s", third)
	}
	forked := b.runNamed(t, exit.OK, "forked", "Write it.", "--continue=first", "--step=1")
	if !strings.Contains(forked, "s3c1 Write") || !strings.Contains(forked, "may make them again") {
		t.Errorf("the fork prints:\n%s", forked)
	}
}

func TestALocalRunThatCannotBeContinued(t *testing.T) {
	b := newBench(t, modeltest.Turn{Text: "Done."}, modeltest.Turn{Text: "Done, too."})
	b.filesOnly(t)
	b.runNamed(t, exit.OK, "first", "Work.")
	elsewhere := t.TempDir()
	state := filepath.Join(os.Getenv("XDG_STATE_HOME"), "deckhand", "runs")
	if err := os.Mkdir(filepath.Join(state, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write(t, filepath.Join(state, "a-file"), "")
	if err := os.Mkdir(filepath.Join(state, "damaged"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write(t, filepath.Join(state, "damaged", "run.json"), "")
	for name, tc := range map[string]struct {
		prompt string
		args   []string
		want   string
	}{
		"without a prompt":      {"", []string{"--continue=first"}, "say with -p what the agent should do next"},
		"an unknown name":       {"More.", []string{"--continue=frist"}, "there is no local Run frist. In " + b.dir + " worked: first"},
		"of an earlier version": {"More.", []string{"--continue=old"}, "the local Run old is of an earlier version of this program"},
		"another directory":     {"More.", []string{"--continue=first", "-C", elsewhere}, "the local Run first worked in " + b.dir + ": name this directory with -C"},
		"no Run in a directory": {"More.", []string{"--continue", "-C", elsewhere}, "no local Run worked in " + elsewhere},
		"an empty name":         {"More.", []string{"--continue="}, "--continue= has no name"},
		"a name without =":      {"More.", []string{"--continue", "first"}, "write --continue=first"},
		"a path":                {"More.", []string{"--continue=../runs/first"}, "there is no local Run ../runs/first"},
		"a damaged note":        {"More.", []string{"--continue=damaged"}, "unexpected end of JSON input"},
		"a step alone":          {"More.", []string{"--step=2"}, "name the Run with --continue=NAME"},
		"a step below 1":        {"More.", []string{"--continue=first", "--step=-2"}, "write the number of a step, as in s2"},
	} {
		if printed := b.runNamed(t, exit.Usage, "next", tc.prompt, tc.args...); !strings.Contains(printed, tc.want) {
			t.Errorf("%s: it does not say %q:\n%s", name, tc.want, printed)
		}
	}
	if printed := b.runNamed(t, exit.Error, "next", "More.", "--continue=first", "--step=9"); !strings.Contains(printed, "Run first has 2 steps, and no step 9") {
		t.Errorf("a step that the Run does not have:\n%s", printed)
	}
	if printed := b.runNamed(t, exit.Usage, "again", "More.", "--continue=next"); !strings.Contains(printed, "the local Run next ended before it began") {
		t.Errorf("a Run that had nothing to continue:\n%s", printed)
	}
	b.runNamed(t, exit.OK, "again", "More.", "--continue") // of the last that began
}
