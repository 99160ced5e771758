package python_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/localtest"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A kit is the tool over a sandbox on this machine.
type kit struct {
	*testing.T
	box          sandbox.Sandbox
	sandbox      *localtest.Sandbox // the box, unless that is a real one
	interpreters *python.Interpreters
	tool         tool.Tool
	root, home   string
	program      string
	calls        int
	kept         map[string]string
	emit         func(text string)
}

// program is the Python of this machine.
func program(tb testing.TB) string {
	tb.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	tb.Skip("this machine has no python3")
	return ""
}

func newKit(t *testing.T, o python.Options) *kit { return kitWith(t, o, program(t)) }

func kitWith(t *testing.T, o python.Options, program string) *kit {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{T: t, root: root, home: t.TempDir(), program: program}
	k.sandbox = &localtest.Sandbox{Env: []string{"HOME=" + k.home}}
	k.box = k.sandbox
	k.over(o)
	return k
}

// over makes the tool over the sandbox and its workspace.
func (k *kit) over(o python.Options) {
	k.Helper()
	k.kept, k.emit = map[string]string{}, func(string) {}
	o.Workspace = k.root
	o.Overflow = func(_ context.Context, name string, text io.Reader) (string, error) {
		whole, err := io.ReadAll(text)
		k.kept[name] = string(whole)
		return "/results/" + name, err
	}
	k.open(o)
}

func (k *kit) open(o python.Options) {
	k.Helper()
	o.Program = k.program
	var err error
	if k.interpreters, err = python.New(k.box, o); err != nil {
		k.Fatal(err)
	}
	k.Cleanup(k.interpreters.Close)
	k.tool = k.interpreters.Tool(python.Use{})
}

func (k *kit) try(ctx context.Context, args map[string]any) (tool.Result, error) {
	k.Helper()
	scope := step.Scope{}
	if of, ok := args["of"].(string); ok {
		delete(args, "of")
		scope.Parent = of
	}
	raw, err := json.Marshal(args)
	if err != nil {
		k.Fatal(err)
	}
	k.calls++
	return k.tool.Call(ctx, tool.Call{ID: fmt.Sprintf("c%d", k.calls), Args: raw, Scope: scope, Emit: k.emit})
}

func (k *kit) call(args map[string]any) string {
	k.Helper()
	result, err := k.try(k.Context(), args)
	if err != nil {
		k.Fatal(err)
	}
	return strings.NewReplacer(k.root, "/workspace", k.home, "~").Replace(result.Render())
}

func (k *kit) run(code string) string {
	k.Helper()
	return k.call(map[string]any{"code": code})
}

func TestWhatTheModelReads(t *testing.T) {
	cases := map[string]struct{ code, want string }{
		"the value of an expression":          {"1+1", "2\n"},
		"the value of the last":               {"x = [1]\nx\nx * 2", "[1, 1]\n"},
		"None is no value":                    {"None", "(no output)"},
		"a statement has none":                {"x = 1", "(no output)"},
		"what is printed":                     {"print('a'); print('b', end='')", "a\nb"},
		"before the value":                    {"print('a')\n'b'", "a\n'b'\n"},
		"stderr in its place":                 {"import sys\nprint('a'); print('b', file=sys.stderr); print('c')", "a\nb\nc\n"},
		"what a child prints":                 {"import subprocess\nsubprocess.run(['echo', 'hi']).returncode", "hi\n0\n"},
		"what is printed below Python":        {"import os\nos.write(1, b'a\\xff\\n'); os.write(2, b'b\\n'); None", "a\ufffd\nb\n"},
		"text of any kind":                    {"print('é\\u4e2d\\U0001f600\\ud800')", "é中😀\\ud800\n"},
		"an exception":                        {"def f():\n    return 1/0\nf()", "Traceback (most recent call last):\n  File \"<call 1>\", line 3, in <module>\n    f()\n  File \"<call 1>\", line 2, in f\n    return 1/0\n           ~^~\nZeroDivisionError: division by zero\n"},
		"code that is none":                   {"x = = 1", "  File \"<call 1>\", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n"},
		"code that exits":                     {"import sys\nsys.exit()", "(no output)"},
		"code that exits with a code":         {"import sys\nsys.exit('sorry')", "SystemExit: sorry\n"},
		"an exception that cannot be told":    {"class E(Exception):\n  def __str__(self): raise ValueError\nraise E", "Traceback (most recent call last):\n  File \"<call 1>\", line 3, in <module>\n    raise E\nE: <exception str() failed>\n"},
		"an empty input":                      {"try: input()\nexcept EOFError: print('none')", "none\n"},
		"an empty input of a child":           {"import subprocess\nsubprocess.run(['cat']).returncode", "0\n"},
		"no descriptor 3":                     {"import os\ntry: os.write(3, b'x')\nexcept OSError: print('none')", "none\n"},
		"it is the main module":               {"__name__", "'__main__'\n"},
		"where it starts":                     {"import os\nos.getcwd()", "'/workspace'\n"},
		"the id of the call that started it":  {"import os\nos.environ['DECKHAND_REQUEST']", "'c1'\n"},
		"arguments":                           {"import sys\nlen(sys.argv)", "1\n"},
		"none of our names":                   {"sorted(n for n in globals() if n[0] != '_')", "[]\n"},
		"a fork that comes back":              {"import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: print('child')", "child\n"},
		"a process pool":                      {"import multiprocessing as m\ndef f(x): return x*x\nwith m.get_context('fork').Pool(2) as p: print(p.map(f, [1,2,3]))", "[1, 4, 9]\n"},
		"a class that pickles":                {"import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))).__name__", "'A'\n"},
		"async":                               {"import asyncio\nasync def f(): return 5\nasyncio.run(f())", "5\n"},
		"a stdout that code replaced":         {"import sys, io\nsys.stdout = io.StringIO()\nprint('x')", "(no output)"},
		"a stdout that code broke":            {"import sys\nsys.stdout = None\n1", "RuntimeError: lost sys.stdout\n"},
		"escape sequences and a progress bar": {"print('\\x1b[1mx\\x1b[0m'); print('10%\\r100%')", "x\n100%\n"},
		"from the future":                     {"from __future__ import annotations\ndef f(x: Nope): return 1\nf(1)", "1\n"},
		"decorators, comments, strings":       {"# c\n'''doc'''\n", "'doc'\n"},
		"a very deep expression":              {"'(' * 3\nx = " + strings.Repeat("(", 50) + "1" + strings.Repeat(")", 50) + "\nx", "1\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, python.Options{})
			if diff := cmp.Diff(tc.want, k.run(tc.code)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := k.run("6*7"); !strings.Contains(tc.code, "sys.stdout = ") && got != "42\n" {
				t.Errorf("after it: %s", got)
			}
		})
	}
}

func TestCodeThatFailsSaysSo(t *testing.T) {
	k := newKit(t, python.Options{})
	for code, failed := range map[string]bool{
		"1+1": false, "import sys\nsys.exit()": false, "print('Traceback')": false, "import os\nos._exit(0)": false,
		"1/0": true, "x = = 1": true, "import sys\nsys.exit(2)": true, "raise KeyboardInterrupt": true, "import os\nos._exit(3)": true,
	} {
		got, err := k.try(t.Context(), map[string]any{"code": code})
		if err != nil || got.Failed != failed {
			t.Errorf("%s: failed %t, want %t (%v)", code, got.Failed, failed, err)
		}
	}
}

func TestEveryPythonFrom38On(t *testing.T) {
	all, _ := filepath.Glob("/root/.pyenv/versions/3.*/bin/python3")
	if len(all) == 0 {
		t.Skip("this machine has one Python only")
	}
	for _, path := range all {
		version := filepath.Base(filepath.Dir(filepath.Dir(path)))
		t.Run(version, func(t *testing.T) {
			k := kitWith(t, python.Options{}, path)
			got := k.run("import sys\nx = sys.version.split()[0]\nx")
			if strings.HasPrefix(version, "3.6.") || strings.HasPrefix(version, "3.7.") {
				return // too old, it need not work
			}
			if got != "'"+version+"'\n" {
				t.Errorf("got %s", got)
			}
			if got := k.run("1/0"); !strings.HasPrefix(got, "Traceback (most recent call last):\n  File \"<call 2>\", line 1, in <module>\n    1/0\n") {
				t.Errorf("got %s", got)
			}
			got = k.call(map[string]any{"code": "while True: pass", "timeout_seconds": 1})
			if !strings.HasSuffix(got, "the variables are kept") || k.run("len(x) > 3") != "True\n" {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestVariablesStay(t *testing.T) {
	k := newKit(t, python.Options{})
	got := []string{
		k.run("import math\nx = 1\ndef f(): return x + 1"),
		k.run("x = 5\nf()"),
		k.run("raise ValueError"),
		k.run("f(), math.floor(2.5), _"),
		k.call(map[string]any{"code": "x", "session": "other"}),
		k.call(map[string]any{"code": "x", "of": "s3c1"}),
		k.call(map[string]any{"code": "'x' in globals()", "restart": true}),
		k.call(map[string]any{"restart": true}),
		k.run("'x' in globals()"),
	}
	const traceback = "Traceback (most recent call last):\n  File \"<call %d>\", line 1, in <module>\n"
	want := []string{
		"(no output)", "6\n", fmt.Sprintf(traceback, 3) + "    raise ValueError\nValueError\n", "(6, 2, 6)\n",
		fmt.Sprintf(traceback, 1) + "    x\nNameError: name 'x' is not defined\n",
		fmt.Sprintf(traceback, 1) + "    x\nNameError: name 'x' is not defined\n",
		"False\n", "The interpreter main was ended; its variables were lost.", "False\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestScripts(t *testing.T) {
	k := newKit(t, python.Options{})
	got := []string{
		k.call(map[string]any{"script": "double"}),
		k.call(map[string]any{"code": "import sys\nfactor = 2\n[int(a) * factor for a in sys.argv[1:]]", "save_as": "double.py", "args": []string{"1"}}),
		k.call(map[string]any{"script": "double.py", "args": []string{"4", "5"}}),
		k.call(map[string]any{"restart": true, "script": "double", "args": []string{"7"}}),
		k.run("factor"),
		k.call(map[string]any{"script": "triple"}),
		k.call(map[string]any{"code": "open('/proc/self/nothing')", "save_as": "bad"}),
	}
	want := []string{
		"Error: There is no script double.\n- There is none yet; save one with save_as.",
		"[Saved as ~/scripts/double.py.]\n[2]\n", "[8, 10]\n", "[14]\n", "2\n",
		"Error: There is no script triple.\n- There are: double.",
		"[Saved as ~/scripts/bad.py.]\nTraceback (most recent call last):\n  File \"~/scripts/bad.py\", line 1, in <module>\n    open('/proc/self/nothing')\n" +
			"FileNotFoundError: [Errno 2] No such file or directory: '/proc/self/nothing'\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBadArguments(t *testing.T) {
	cases := map[string]struct {
		args map[string]any
		want string
	}{
		"nothing":            {map[string]any{"code": " \n"}, "Error: There is nothing to run: give code, or the name of a script."},
		"both":               {map[string]any{"code": "1", "script": "a"}, "Error: Give code or script, not both."},
		"nothing to save":    {map[string]any{"save_as": "a", "restart": true}, "Error: There is no code to save."},
		"too much":           {map[string]any{"code": strings.Repeat("x", 1<<18+1)}, "Error: The code has 262145 bytes; at most 262144 can be run. Put data into a file and read it from there."},
		"a name with a path": {map[string]any{"script": "../x"}, `Error: The name "../x" cannot be used: write at most 64 letters, digits, _, . and -.`},
		"a hidden name":      {map[string]any{"code": "1", "save_as": ".x"}, `Error: The name ".x" cannot be used: write at most 64 letters, digits, _, . and -.`},
		"an odd session":     {map[string]any{"code": "1", "session": "a b"}, `Error: The name "a b" cannot be used: write at most 64 letters, digits, _, . and -.`},
		"a huge timeout":     {map[string]any{"code": "1", "timeout_seconds": 1e9}, "Error: timeout_seconds must be more than 0 and at most 21600."},
		"a huge argument":    {map[string]any{"code": "1", "args": []string{strings.Repeat("x", 4097)}}, "Error: At most 64 args of 4096 bytes each are passed on."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, python.Options{})
			if diff := cmp.Diff(tc.want, k.call(tc.args)); diff != "" || len(k.sandbox.Started()) > 0 {
				t.Errorf("%d started, -want +got:\n%s", len(k.sandbox.Started()), diff)
			}
		})
	}
}

// What code may do to its interpreter, what is told, and that the next call works.
func TestHowCodeEnds(t *testing.T) {
	const (
		lost = "; its variables are lost, the next call has a new one"
		kept = "interrupted: timed out after 2s; the variables are kept"
		gone = "killed: timed out after 2s and did not stop when it was interrupted; the variables are lost, the next call has a new interpreter"
	)
	cases := map[string]struct {
		code, want, after string
		timesOut          bool
	}{
		"it exits":                     {"import os\nprint('x')\nos._exit(3)", "x\nthe interpreter ended (exit code: 3)" + lost, "none", false},
		"it crashes":                   {"import os, signal\nprint('x')\nos.kill(os.getpid(), signal.SIGSEGV)", "x\nthe interpreter ended (killed: SIGSEGV)" + lost, "none", false},
		"it never ends":                {"print('x')\nwhile True: pass", "x\nTraceback (most recent call last):\n  File \"<call 2>\", line 2, in <module>\n    while True: pass\nKeyboardInterrupt\n" + kept, "1", true},
		"it sleeps":                    {"import time\ntime.sleep(1000)", "Traceback (most recent call last):\n  File \"<call 2>\", line 2, in <module>\n    time.sleep(1000)\nKeyboardInterrupt\n" + kept, "1", true},
		"it catches everything":        {"import time\nprint('x')\nwhile True:\n  try:\n    while True: time.sleep(1000)\n  except BaseException: pass", "x\n" + gone, "none", true},
		"it waits for a child":         {"import subprocess\nsubprocess.run(['sleep', '1000'])", "", "1", true},
		"it catches it and ends":       {"import time\ntry:\n  while True: time.sleep(1000)\nexcept KeyboardInterrupt: print('stopped')", "stopped\n", "1", true},
		"it writes to where we speak":  {"import os, time\nos.write(101, b'\\xff' * 8)\ntime.sleep(1000)", "the interpreter ended (the interpreter's control channel carries what is no answer; the code wrote to it)" + lost, "none", false},
		"it closes everything":         {"import os\nos.closerange(3, 1000)", "", "none", false},
		"it closes stdout and stderr":  {"import os\nos.close(1); os.close(2)", "(no output)", "quiet", false},
		"it holds on below Python":     {"import os\nos.system('sleep 3')", "", "1", true},
		"it ends all children and us":  {"import os, signal\nos.killpg(0, signal.SIGKILL)", "the interpreter ended (killed: SIGKILL)" + lost, "none", false},
		"it raises KeyboardInterrupt":  {"raise KeyboardInterrupt", "Traceback (most recent call last):\n  File \"<call 2>\", line 1, in <module>\n    raise KeyboardInterrupt\nKeyboardInterrupt\n", "1", false},
		"it recurses without end":      {"def f(): f()\ntry: f()\nexcept RecursionError: print('deep')", "deep\n", "1", false},
		"it sets a handler of its own": {"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", gone, "none", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, python.Options{})
			k.run("before = 1")
			timeout := 60
			if tc.timesOut {
				timeout = 2 // the code has to begin in it
			}
			got := k.call(map[string]any{"code": tc.code, "timeout_seconds": timeout})
			if diff := cmp.Diff(tc.want, got); diff != "" && tc.want != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			after := k.run("globals().get('before', 'none')")
			if want := map[string]string{"1": "1\n", "none": "'none'\n"}[tc.after]; after != want && want != "" {
				t.Errorf("after it: %s\nit was: %s", after, got)
			}
		})
	}
}

func TestALargeOutputIsCutInTheMiddle(t *testing.T) {
	k := newKit(t, python.Options{})
	got := k.run("for i in range(20000): print(i)")
	whole := k.kept["c1"]
	marker := fmt.Sprintf("\n\n[%d characters are cut out here. The whole is in /results/c1: look for what you need in it with Grep, or Read it in parts.]\n\n", len(whole)-30_000)
	if diff := cmp.Diff(whole[:15_000]+marker+whole[len(whole)-15_000:], got); diff != "" || strings.Count(whole, "\n") != 20000 {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInterruptions(t *testing.T) {
	state := t.TempDir()
	k := newKit(t, python.Options{State: state})
	ctx, cancel := context.WithCancelCause(t.Context())
	k.emit = func(string) { cancel(task.End(task.ReasonInterrupted, "x")) }
	got, err := k.try(ctx, map[string]any{"code": "print('begun')\nwhile True: pass"})
	want := "begun\ninterrupted by shutdown; the interpreter was killed, and the code may have partly happened"
	if err != nil || got.Render() != want {
		t.Errorf("got %q, %v", got.Render(), err)
	}
	if got := output.Captured(state, "c1"); got != "begun\n" {
		t.Errorf("Captured() = %q", got)
	}
}

func TestASandboxThatDoesNotTakeIt(t *testing.T) {
	k := newKit(t, python.Options{})
	k.sandbox.Refuse = func(sandbox.Command) error { return &sandbox.RefusedError{Reason: sandbox.Busy, Subject: "64"} }
	if got := k.run("1"); got != "Error: Not executed: 64 commands run in the sandbox already; end one first" {
		t.Errorf("got %s", got)
	}
	k.sandbox.Refuse = nil
	if got := k.run("1"); got != "1\n" {
		t.Errorf("got %s", got)
	}
	k = kitWith(t, python.Options{}, "/bin/cat")
	if got := k.run("1"); !strings.HasPrefix(got, "Error: Not executed: python did not start: exit code: 1\nThe output until then:\n") {
		t.Errorf("got %s", got)
	}
}
