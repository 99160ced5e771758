package python_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
)

// meanwhile lets a thread of the first session go on, by a file, and waits until
// code is true in another session.
func (k *kit) meanwhile(code string) {
	k.Helper()
	k.call(map[string]any{"session": "other", "code": "import os, time\nopen('go', 'w').close()\nwhile not (" + code + "): time.sleep(0.01)\ntime.sleep(0.5)"})
}

const whenLetGo = "import os, threading, time\ndef f():\n  while not os.path.exists('go'): time.sleep(0.01)\n  "

func TestWhatIsPrintedBetweenCalls(t *testing.T) {
	k := newKit(t, python.Options{})
	k.run(whenLetGo + "print('late', flush=True)\n  open('said', 'w').close()\nt = threading.Thread(target=f)\nt.start()")
	k.meanwhile("os.path.exists('said')")
	want := "[Printed since the last call:]\nlate\n[Printed by this call:]\n1\n"
	if got := k.run("1"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := k.run("1"); got != "1\n" {
		t.Errorf("got %q", got)
	}
}

func TestAnInterpreterThatEndedBetweenCalls(t *testing.T) {
	k := newKit(t, python.Options{})
	k.run("x = 1\n" + whenLetGo + "os._exit(7)\nopen('pid', 'w').write(str(os.getpid()))\nthreading.Thread(target=f).start()")
	k.meanwhile("not os.path.exists('/proc/' + open('pid').read())")
	want := "[This is a new interpreter, without the variables of the last one: exit code: 7.]\nFalse\n"
	if got := k.run("'x' in globals()"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestInterpretersAreBounded(t *testing.T) {
	k := newKit(t, python.Options{})
	for i := range 8 {
		k.call(map[string]any{"code": "1", "session": fmt.Sprintf("s%d", i)})
	}
	got := k.call(map[string]any{"code": "1", "session": "more"})
	if !strings.HasPrefix(got, "Error: Not executed: 8 interpreters run already, which is the most.\n- Use one of them, or end one with restart and no code: python session s0,") {
		t.Errorf("got %s", got)
	}
	k.call(map[string]any{"restart": true, "session": "s3"})
	if got := k.call(map[string]any{"code": "1", "session": "more"}); got != "1\n" {
		t.Errorf("got %s", got)
	}
}

func TestInterpretersThatARestartLost(t *testing.T) {
	state := t.TempDir()
	k := newKit(t, python.Options{State: state})
	k.run("x = 1")
	k.call(map[string]any{"code": "1", "session": "other"})
	k.call(map[string]any{"restart": true, "session": "other"})
	k.open(python.Options{State: state, Workspace: k.root})
	if diff := cmp.Diff([]string{"python session main"}, k.interpreters.Lost()); diff != "" {
		t.Errorf("Lost() -want +got:\n%s", diff)
	}
	want := "[This is a new interpreter, without the variables of the last one: lost when the runner was restarted.]\nFalse\n"
	if got := k.run("'x' in globals()"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
