package shell_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func (k *kit) background(command string) string {
	k.Helper()
	return k.call(shell.Name, map[string]any{"command": command, "background": true})
}

// begin starts the first job and returns what is shown until it has printed a
// text: on a slow machine that can be more than what the start shows.
func (k *kit) begin(command, text string) string { return k.beginNth(1, command, text) }

func (k *kit) beginNth(n int, command, text string) string {
	k.Helper()
	got := k.background(command)
	for !strings.Contains(got, text) && strings.HasSuffix(got, "\nstill running") {
		got = strings.TrimSuffix(strings.TrimSuffix(got, "still running"), "(no new output)\n")
		got += k.call(shell.NameOutput, map[string]any{"id": fmt.Sprint(n), "wait_seconds": 0.1})
	}
	return got
}

func (k *kit) wait(id string) string {
	k.Helper()
	return k.call(shell.NameOutput, map[string]any{"id": id, "wait_seconds": 60})
}

func TestAJobFromBeginToEnd(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	k.run("mkdir a; cd a")
	got := []string{
		k.begin("pwd; echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; printf 'three: '; exit 4", "one\n"),
		fmt.Sprint(k.shells.Running()),
		k.call(shell.NameOutput, map[string]any{"id": "job-1"}),
		k.run("touch go"),
		k.wait("1"), // as models write it
		fmt.Sprint(k.shells.Running()),
		k.call(shell.NameKill, map[string]any{"id": "job-1"}),
	}
	want := []string{
		"Started in the background as job-1. Follow it with ShellOutput.\n/workspace/a\none\nstill running",
		"1",
		"(no new output)\nstill running",
		"(no output)\nexit code: 0",
		"two\nthree: \nexit code: 4",
		"0",
		"/workspace/a\none\ntwo\nthree: \nexit code: 4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The loop takes a call that is repeated while a job runs for waiting, and one that
// is repeated after the job ended for a loop.
func TestOutputIsPendingWhileAJobRuns(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	k.background("while [ ! -e go ]; do sleep 0.02; done")
	look := func(wait int) bool {
		result, err := k.try(t.Context(), shell.NameOutput, map[string]any{"id": "job-1", "wait_seconds": wait})
		if err != nil {
			t.Fatal(err)
		}
		return result.Pending
	}
	if !look(0) {
		t.Error("the job runs and its output is not pending")
	}
	k.run("touch go")
	if look(20); look(0) {
		t.Error("the job has ended and its output is pending")
	}
}

func TestOutputOfAJobThatFailedSaysSo(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	for i, tc := range []struct {
		command string
		failed  bool
	}{{"exit 0", false}, {"exit 3", true}, {"sleep 1000", false}} {
		k.background(tc.command)
		id, wait := fmt.Sprintf("job-%d", i+1), 20
		if tc.command == "sleep 1000" {
			wait = 0
		}
		got, err := k.try(t.Context(), shell.NameOutput, map[string]any{"id": id, "wait_seconds": wait})
		if err != nil || got.Failed != tc.failed {
			t.Errorf("%s: failed %t, want %t (%v)", tc.command, got.Failed, tc.failed, err)
		}
	}
	if got, err := k.try(t.Context(), shell.NameKill, map[string]any{"id": "job-3"}); err != nil || got.Failed {
		t.Errorf("killing it failed: %+v, %v", got, err)
	}
}

func TestAJobIsKilled(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	k.begin("trap '' TERM INT HUP; printf 'name? '; sleep 1000", "name?")
	if got, want := k.call(shell.NameOutput, map[string]any{"id": "job-1"}), "name? \nstill running"; got != want {
		t.Errorf("got %q, want %q: a question has no line end", got, want)
	}
	if got, want := k.call(shell.NameKill, map[string]any{"id": "job-1"}), "name? \nkilled: canceled"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAJobThatEndsAtOnce(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	if got, want := k.begin("exit 1", "exit code"), "Started in the background as job-1. Follow it with ShellOutput.\n(no new output)\nexit code: 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAJobThatPrintsMuch(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	k.background("seq 1 1000000")
	got := k.wait("job-1")
	if len(got) > 31_000 || !strings.HasPrefix(got, "[") || !strings.Contains(got, "before this are not kept]") && !strings.Contains(got, "cut out here]") ||
		!strings.HasSuffix(got, "1000000\nexit code: 0") {
		t.Errorf("got %d bytes: %.100s", len(got), got)
	}
}

func TestJobsAreBounded(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	sh, _ := k.tools.Find(shell.Name)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			call := tool.Call{Args: json.RawMessage(`{"command":"exec sleep 1000","background":true}`)}
			if result, err := sh.Call(t.Context(), call); err != nil || result.Error != nil {
				t.Errorf("%v %v", result, err)
			}
		})
	}
	all.Wait()
	got := k.background("true")
	if !strings.HasPrefix(got, "Error: Not executed: 16 background commands run already") || !strings.Contains(got, "job-16 (exec sleep 1000, running)") {
		t.Errorf("got %s", got)
	}
	k.call(shell.NameKill, map[string]any{"id": "job-3"})
	for i := range 20 { // of those that ended the newest can be looked at
		k.beginNth(17+i, "true", "exit code")
	}
	if got := k.call(shell.NameOutput, map[string]any{"id": "job-3"}); !strings.HasPrefix(got, `Error: There is no background command "job-3".`) {
		t.Errorf("got %s", got)
	}
	if got := k.call(shell.NameOutput, map[string]any{"id": "job-1"}); got != "(no new output)\nstill running" {
		t.Errorf("got %s", got)
	}
}

func TestJobsThatARestartLost(t *testing.T) {
	state := t.TempDir()
	k := newKit(t, shell.Options{State: state}, "/bin/sh")
	k.begin("true", "exit code")
	k.background("echo hi\nsleep 1000")
	for range 2 { // until something new is known
		k.open(shell.Options{State: state, Workspace: k.root})
		if diff := cmp.Diff([]string{"background command job-2 (echo hi …)"}, k.shells.Lost()); diff != "" {
			t.Errorf("Lost() -want +got:\n%s", diff)
		}
	}
	got := k.call(shell.NameOutput, map[string]any{"id": "job-2"})
	want := "Error: There is no background command \"job-2\". Commands that ran when the runner was restarted are lost; commands that ended long ago are forgotten.\n- There is none now."
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := k.beginNth(3, "true", "exit code"); !strings.Contains(got, " as job-3.") {
		t.Errorf("got %s", got)
	}
	k.open(shell.Options{State: state, Workspace: k.root})
	if got := k.shells.Lost(); len(got) != 0 {
		t.Errorf("Lost() = %v", got)
	}
}

func TestAgentsHaveTheToolsUnderTheirNames(t *testing.T) {
	k := newKit(t, shell.Options{}, "/bin/sh")
	var names []string
	for _, made := range k.shells.Tools(shell.Use{Name: "sh", Timeout: 1e9}) {
		spec := made.Spec
		names = append(names, fmt.Sprintf("%s %s %s", spec.Name, spec.Effect, spec.Concurrency))
		if spec.Timeout != tool.Unbounded || strings.Contains(spec.Description, "ShellOutput") {
			t.Errorf("%s: timeout %s, page %s", spec.Name, spec.Timeout, spec.Description)
		}
	}
	if diff := cmp.Diff([]string{"sh Once Sequential", "sh_output ReadOnly Parallel", "sh_kill Idempotent Parallel"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestASandboxThatDoesNotTakeACommand(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"too busy":       {&sandbox.RefusedError{Reason: sandbox.Busy, Subject: "64"}, "Error: Not executed: 64 commands run in the sandbox already; end one first"},
		"lost meanwhile": {&sandbox.LostError{Detail: "the sandbox was restarted"}, "Error: The command may or may not have begun: the sandbox was restarted"},
		"not there":      {fmt.Errorf("x: %w", sandbox.ErrUnavailable), "Error: Not executed: x: " + sandbox.ErrUnavailable.Error()},
		"no workspace":   {&sandbox.RefusedError{Reason: sandbox.NoDirectory}, "Error: Not executed: the workspace /workspace is not there."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, shell.Options{}, "/bin/sh")
			k.sandbox.Refuse = func(sandbox.Command) error { return tc.err }
			if diff := cmp.Diff([]string{tc.want, tc.want}, []string{k.run("true"), k.background("true")}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if n := k.shells.Running(); n != 0 {
				t.Errorf("%d run", n)
			}
		})
	}
}
