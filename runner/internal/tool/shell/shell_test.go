package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/localtest"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A kit is the tools over a sandbox on this machine.
type kit struct {
	*testing.T
	box     sandbox.Sandbox
	sandbox *localtest.Sandbox // the box, unless that is a real one
	shells  *shell.Shells
	tools   *toolbox.Toolbox
	root    string // the workspace
	program string
	calls   int
	emitted strings.Builder
	seen    func() // told of what is emitted
	kept    map[string]string
}

// kits are a kit for each kind of shell that this machine has.
func kits(t *testing.T, test func(t *testing.T, k *kit)) {
	for _, name := range []string{"bash", "dash"} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("this machine has no %s", name)
			}
			test(t, newKit(t, shell.Options{}, path))
		})
	}
}

func newKit(t *testing.T, o shell.Options, program string) *kit {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{T: t, root: root, program: program, seen: func() {}, sandbox: &localtest.Sandbox{}}
	k.box = k.sandbox
	k.over(o)
	return k
}

// over makes the tools over the sandbox and its workspace.
func (k *kit) over(o shell.Options) {
	k.Helper()
	k.kept = map[string]string{}
	o.Workspace = k.root
	o.Overflow = func(_ context.Context, name string, text io.Reader) (string, error) {
		whole, err := io.ReadAll(text)
		k.kept[name] = string(whole)
		return "/results/" + name, err
	}
	k.open(o)
}

func (k *kit) open(o shell.Options) {
	k.Helper()
	o.Program = k.program
	var err error
	if k.shells, err = shell.New(k.box, o); err != nil {
		k.Fatal(err)
	}
	k.Cleanup(k.shells.Close)
	if k.tools, err = toolbox.New(k.shells.Tools(shell.Use{})...); err != nil {
		k.Fatal(err)
	}
}

// try calls a tool.
func (k *kit) try(ctx context.Context, name string, args map[string]any) (tool.Result, error) {
	k.Helper()
	t, ok := k.tools.Find(name)
	if !ok {
		k.Fatalf("there is no tool %s", name)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		k.Fatal(err)
	}
	k.calls++
	session, _ := args["session"].(string)
	if session != "" {
		delete(args, "session")
		raw, _ = json.Marshal(args)
	}
	return t.Call(ctx, tool.Call{
		ID: fmt.Sprintf("c%d", k.calls), Name: name, Args: raw, Scope: step.Scope{Parent: session},
		Emit: func(text string) { k.emitted.WriteString(text); k.seen() },
	})
}

// call calls a tool and returns what the model reads, with the workspace as it
// knows it.
func (k *kit) call(name string, args map[string]any) string {
	k.Helper()
	result, err := k.try(k.Context(), name, args)
	if err != nil {
		k.Fatalf("%s: %v", name, err)
	}
	return strings.ReplaceAll(result.Render(), k.root, "/workspace")
}

func (k *kit) run(command string) string {
	k.Helper()
	return k.call(shell.Name, map[string]any{"command": command})
}

func TestWhatTheModelReads(t *testing.T) {
	cases := map[string]struct{ command, want string }{
		"output and exit code":                {`echo hi; exit 3`, "hi\nexit code: 3"},
		"no output":                           {`true`, "(no output)\nexit code: 0"},
		"no line end at the end":              {`printf hi`, "hi\nexit code: 0"},
		"stdout and stderr in their order":    {`echo a; echo b >&2; echo c`, "a\nb\nc\nexit code: 0"},
		"the exit code of the last command":   {`false; true; (exit 7)`, "(no output)\nexit code: 7"},
		"a pipe without pipefail":             {`false | true`, "(no output)\nexit code: 0"},
		"several lines":                       {"a=1\n# a comment\necho $a", "1\nexit code: 0"},
		"a heredoc":                           {"cat <<X\na $((1+1))\nX", "a 2\nexit code: 0"},
		"quotes":                              {`echo "a'b" 'c"d'`, "a'b c\"d\nexit code: 0"},
		"no arguments":                        {`echo $#-$1`, "0-\nexit code: 0"},
		"stdin is empty":                      {`cat; read x; echo $?`, "1\nexit code: 0"},
		"no terminal":                         {`test -t 0 || test -t 1 || echo none; echo $PAGER`, "none\ncat\nexit code: 0"},
		"no descriptor 3":                     {`(echo x >&3) 2>/dev/null; echo $?`, "" /* below */},
		"a descriptor 3 of its own":           {`exec 3>&1; echo x >&3`, "x\nexit code: 0"},
		"a trap of its own":                   {`trap 'echo bye' EXIT; echo hi`, "hi\nbye\nexit code: 0"},
		"a signal":                            {`kill -9 $$`, "(no output)\nkilled: SIGKILL"},
		"escape sequences":                    {`printf '\033[31mred\033[0m \033]0;title\007x\n'`, "red x\nexit code: 0"},
		"a progress bar":                      {`printf '10%%\r20%%\r100%%\ndone\n'`, "100%\ndone\nexit code: 0"},
		"what is no UTF-8":                    {`printf 'a\377b\000c\n'`, "a\ufffdbc\nexit code: 0"},
		"the id of the call":                  {`echo $DECKHAND_REQUEST`, "c1\nexit code: 0"},
		"text that looks like an exit code":   {`echo exit code: 0; exit 5`, "exit code: 0\nexit code: 5"},
		"a new directory":                     {`mkdir d && cd d && pwd`, "/workspace/d\n[The working directory is /workspace/d now.]\nexit code: 0"},
		"a new directory of a failed command": {`mkdir d; cd d; exit 2`, "(no output)\n[The working directory is /workspace/d now.]\nexit code: 2"},
		"a new directory under set -e":        {`set -e; mkdir d; cd d; false; echo no`, "(no output)\n[The working directory is /workspace/d now.]\nexit code: 1"},
		"a directory with odd characters":     {"mkdir \"a\nb'\\\"\"; cd a*", "(no output)\n[The working directory is /workspace/a\nb'\" now.]\nexit code: 0"},
		"what is left in the background ends": {`sleep 1000 & echo hi`, "hi\nexit code: 0"},
		"a child that holds the pipe":         {`(sleep 1000; echo no) & echo hi`, "hi\nexit code: 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kits(t, func(t *testing.T, k *kit) {
				want := tc.want
				if want == "" { // the shells number it differently
					if got := k.run(tc.command); strings.HasPrefix(got, "0\n") {
						t.Errorf("the descriptor is there: %s", got)
					}
					return
				}
				if diff := cmp.Diff(want, k.run(tc.command)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// What failed is data, so that a result is never read to find out.
func TestACommandThatFailsSaysSo(t *testing.T) {
	k := newKit(t, shell.Options{MaxTimeout: 1000e9}, "/bin/sh")
	for command, failed := range map[string]bool{
		"true": false, "exit 0": false, "false | true": false, "echo exit code: 1": false,
		"exit 1": true, "echo exit code: 0; exit 7": true, "kill -9 $$": true, "no-such-program": true, "(": true,
	} {
		got, err := k.try(t.Context(), shell.Name, map[string]any{"command": command})
		if err != nil || got.Failed != failed {
			t.Errorf("%s: failed %t, want %t (%v)", command, got.Failed, failed, err)
		}
	}
	late, err := k.try(t.Context(), shell.Name, map[string]any{"command": "sleep 1000", "timeout_seconds": 0.1})
	if err != nil || !late.Failed {
		t.Errorf("a command that timed out: failed %t (%v)", late.Failed, err)
	}
	interrupted, err := k.interrupt(task.End(task.ReasonInterrupted, "x"), "echo begun; sleep 1000")
	if err != nil || !interrupted.Failed {
		t.Errorf("an interrupted command: failed %t (%v)", interrupted.Failed, err)
	}
}

func TestSyntaxErrorsAreTheCommandsOwn(t *testing.T) {
	kits(t, func(t *testing.T, k *kit) {
		got := k.run("cd /usr\n((")
		if !strings.HasSuffix(got, "exit code: 2") || strings.Contains(got, "PWD") {
			t.Errorf("got %s", got)
		}
		if got := k.run("nosuchprogram"); !strings.Contains(got, " 1: ") || !strings.Contains(got, ": nosuchprogram: ") || !strings.HasSuffix(got, "exit code: 127") {
			t.Errorf("got %s", got)
		}
	})
}

func TestOnlyTheDirectoryRemains(t *testing.T) {
	kits(t, func(t *testing.T, k *kit) {
		k.run("mkdir -p a/b; cd a; x=1; export y=2; f() { :; }")
		if got, want := k.run(`cd b; echo "$x$y"; type f >/dev/null 2>&1 || echo none`), "\nnone\n[The working directory is /workspace/a/b now.]\nexit code: 0"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := k.run("pwd"), "/workspace/a/b\nexit code: 0"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestShellsHaveDirectoriesOfTheirOwn(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	k.run("mkdir a b c; cd a")
	k.call(shell.Name, map[string]any{"command": "cd b", "name": "other"})
	k.call(shell.Name, map[string]any{"command": "cd c", "session": "s3c1"})
	got := []string{
		k.run("pwd"),
		k.call(shell.Name, map[string]any{"command": "pwd", "name": "other"}),
		k.call(shell.Name, map[string]any{"command": "pwd", "session": "s3c1"}),
		k.call(shell.Name, map[string]any{"command": "pwd", "session": "s3c1", "name": "other"}),
	}
	want := []string{"/workspace/a\nexit code: 0", "/workspace/b\nexit code: 0", "/workspace/c\nexit code: 0", "/workspace\nexit code: 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestALinkStaysInTheWorkingDirectory(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	k.run("mkdir real; ln -s real link; cd link")
	if got, want := k.run("pwd"), "/workspace/link\nexit code: 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestADirectoryThatIsGone(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	k.run("mkdir -p a; cd a; touch keep")
	k.run("rm -r /../" + strings.TrimPrefix(k.root, "/") + "/a")
	want := "Error: Not executed: the working directory /workspace/a no longer exists. The working directory is /workspace now.\n- Repeat the command if it is meant to run there."
	if got := k.run("touch here"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := k.run("ls -A; pwd"), "/workspace\nexit code: 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheNextAttemptStartsWhereThisOneEnded(t *testing.T) {
	state := t.TempDir()
	k := newKit(t, shell.Options{State: state}, "/bin/sh")
	k.run("mkdir a; cd a")
	k.open(shell.Options{State: state, Workspace: k.root})
	if got, want := k.run("pwd"), "/workspace/a\nexit code: 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadStateSaysSo(t *testing.T) {
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "shell.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := shell.New(&localtest.Sandbox{}, shell.Options{State: state}); err == nil || !strings.Contains(err.Error(), "shell.json") {
		t.Errorf("error %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	cases := map[string]struct {
		args map[string]any
		want string
	}{
		"nothing":            {map[string]any{"command": " \n"}, "Error: The command is empty."},
		"too long":           {map[string]any{"command": strings.Repeat("x", 100_001)}, "Error: The command has 100001 bytes; at most 100000 can be run. Write it to a file first, then run that."},
		"a NUL":              {map[string]any{"command": "a\x00b"}, "Error: The command contains a NUL character, which no command line can. Write \\0 in a $'…' or printf instead."},
		"a negative timeout": {map[string]any{"command": "x", "timeout_seconds": -1}, "Error: timeout_seconds must be more than 0 and at most 21600. Set background for what takes longer."},
		"a huge timeout":     {map[string]any{"command": "x", "timeout_seconds": 1e12}, "Error: timeout_seconds must be more than 0 and at most 21600. Set background for what takes longer."},
		"a huge name":        {map[string]any{"command": "x", "name": strings.Repeat("x", 65)}, "Error: The name has 65 bytes; at most 64 are taken."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, shell.Options{}, "/bin/sh")
			if diff := cmp.Diff(tc.want, k.call(shell.Name, tc.args)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if n := len(k.sandbox.Started()); n != 0 {
				t.Errorf("%d commands were started", n)
			}
		})
	}
}

func TestALongCommandRuns(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	if got, want := k.run(": "+strings.Repeat("x", 99_990)), "(no output)\nexit code: 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestALargeOutputIsCutInTheMiddle(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	got := k.run("seq 1 20000; exit 1")
	whole := k.kept["c1"]
	if n := strings.Count(whole, "\n"); n != 20000 || !strings.HasSuffix(whole, "\n20000\n") {
		t.Errorf("the file has %d lines", n)
	}
	marker := fmt.Sprintf("\n\n[%d characters are cut out here. The whole is in /results/c1: look for what you need in it with Grep, or Read it in parts.]\n\n", len(whole)-30_000)
	want := whole[:15_000] + marker + whole[len(whole)-15_000:] + "exit code: 1"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if k.emitted.String() != whole {
		t.Errorf("%d bytes were shown as they came, want %d", k.emitted.Len(), len(whole))
	}
}

func TestMoreThanTheFileTakes(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	got := k.run("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end")
	if !strings.Contains(got, "The first 8 MiB are in /results/c1; the 11611397 bytes after them were not kept.") || !strings.HasSuffix(got, "x\nend\nexit code: 0") {
		t.Errorf("got …%s", got[14_900:min(len(got), 15_500)])
	}
	if n := len(k.kept["c1"]); n != 8<<20 {
		t.Errorf("the file has %d bytes", n)
	}
	if n := k.emitted.Len(); n > 1<<20+100 {
		t.Errorf("%d bytes were shown as they came", n)
	}
}

func TestTimeouts(t *testing.T) {
	k := newKit(t, shell.Options{MaxTimeout: 1000e9}, "/bin/sh")
	got := k.call(shell.Name, map[string]any{"command": "echo begun; trap '' TERM; sleep 1000", "timeout_seconds": 1.5})
	want := "begun\n[Set timeout_seconds, up to 1000, or background for what takes longer.]\nkilled: timed out after 1.5s"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	k.run("true")
	if got := k.sandbox.Started()[1].Limits.Timeout; got != 2*time.Minute {
		t.Errorf("a command that says nothing has %s", got)
	}
}

// interrupt cancels a context once the command has shown something.
func (k *kit) interrupt(cause error, command string) (tool.Result, error) {
	ctx, cancel := context.WithCancelCause(k.Context())
	defer cancel(nil)
	t, _ := k.tools.Find(shell.Name)
	raw, _ := json.Marshal(map[string]string{"command": command})
	return t.Call(ctx, tool.Call{ID: "c1", Args: raw, Emit: func(string) { cancel(cause) }})
}

func TestInterruptions(t *testing.T) {
	const killed = "; the command was killed and may have partly happened"
	cases := map[string]struct {
		cause error
		want  string // empty: no result
	}{
		"by shutdown":        {task.End(task.ReasonInterrupted, "x"), "begun\ninterrupted by shutdown" + killed},
		"at the end of time": {task.End(task.ReasonDurationLimit, "The Run took 1h."), "begun\ninterrupted: The Run took 1h." + killed},
		"by something else":  {errors.New("x"), "begun\ninterrupted" + killed},
		"by another attempt": {task.End(task.ReasonStorageFull, "x"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, shell.Options{}, "/bin/sh")
			got, err := k.interrupt(tc.cause, "echo begun; sleep 1000")
			if tc.want == "" && !errors.Is(err, tc.cause) || tc.want != "" && err != nil {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got.Render()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatWasPrintedIsKeptForAfterACrash(t *testing.T) {
	state := t.TempDir()
	k := newKit(t, shell.Options{State: state}, "/bin/sh")
	// While the command runs, another runner reads what there is.
	var seen string
	tl, _ := k.tools.Find(shell.Name)
	_, err := tl.Call(t.Context(), tool.Call{
		ID: "s1c0/../x", Args: json.RawMessage(`{"command":"echo begun; while [ ! -e go ]; do sleep 0.02; done; echo more"}`),
		Emit: func(text string) {
			if text == "begun\n" {
				seen = output.Captured(state, "s1c0/../x")
			}
			_ = os.WriteFile(filepath.Join(k.root, "go"), nil, 0o600)
		},
	})
	if err != nil || seen != "begun\n" {
		t.Errorf("Captured() = %q, error %v", seen, err)
	}
	if got := output.Captured(state, "other"); got != "" {
		t.Errorf("Captured(other) = %q", got)
	}
}
