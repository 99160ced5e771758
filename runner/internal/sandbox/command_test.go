//go:build linux

package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

var exited = sandbox.Exit{Cause: sandbox.Exited}

func TestCommands(t *testing.T) {
	const timeout = 2 * time.Second // a shell has to start in it
	c, s := sandboxtest.New(t)
	for name, tc := range map[string]struct {
		command sandbox.Command
		want    outcome
	}{
		"stdout, stderr and control are told apart": {
			sh("echo out; echo err >&2; echo ctl >&3; exit 3"),
			outcome{stdout: "out\n", stderr: "err\n", control: "ctl\n", exit: sandbox.Exit{Code: 3, Cause: sandbox.Exited}},
		},
		"it starts in the workspace": {sandbox.Command{Args: []string{"pwd"}}, outcome{stdout: s.Workspace + "\n", exit: exited}},
		"it starts where it is told": {sandbox.Command{Args: []string{"pwd"}, Dir: "/usr"}, outcome{stdout: "/usr\n", exit: exited}},
		"it knows its request and home": {
			sh(`echo "$DECKHAND_REQUEST $HOME"`), outcome{stdout: "call-1 " + s.Home + "\n", exit: exited},
		},
		"its own variables count": {
			sandbox.Command{Args: []string{"sh", "-c", `echo "$HOME $X"`}, Env: map[string]string{"HOME": "/", "X": "a b"}},
			outcome{stdout: "/ a b\n", exit: exited},
		},
		"what it makes the group can change": {sh("umask"), outcome{stdout: "0002\n", exit: exited}},
		"it leaves no core":                  {sh("ulimit -c"), outcome{stdout: "0\n", exit: exited}},
		"a signal is told":                   {sh("kill -TERM $$"), outcome{exit: sandbox.Exit{Code: -1, Signal: "SIGTERM", Cause: sandbox.Exited}}},
		"output is limited and counted": {
			limited("printf 12345; printf 67890", sandbox.Limits{Output: 7}),
			outcome{stdout: "1234567", exit: sandbox.Exit{Cause: sandbox.Exited, Dropped: 3}},
		},
		"control is not limited": {
			limited("printf 12345; printf 67890 >&3", sandbox.Limits{Output: 1}),
			outcome{stdout: "1", control: "67890", exit: sandbox.Exit{Cause: sandbox.Exited, Dropped: 4}},
		},
		"what it leaves behind ends with it, pipes and all": {
			sh("sleep 1000 & (setsid sh -c 'trap \"\" TERM HUP; sleep 1000; echo never' &) ; echo done"),
			outcome{stdout: "done\n", exit: exited},
		},
		"a time limit ends what ignores it": {
			limited(`trap "" TERM; echo on; while :; do sleep 1000; done`, sandbox.Limits{Timeout: timeout}),
			outcome{stdout: "on\n", exit: sandbox.Exit{Code: -1, Signal: "SIGKILL", Cause: sandbox.TimedOut}},
		},
		"a time limit lets it put its things in order": {
			limited(`trap "echo bye; exit 7" TERM; echo on; while :; do :; done`, sandbox.Limits{Timeout: timeout}),
			outcome{stdout: "on\nbye\n", exit: sandbox.Exit{Code: 7, Cause: sandbox.TimedOut}},
		},
		"a program is told to be nicer than who watches": {sh("nice"), outcome{stdout: "10\n", exit: exited}},
		"large arguments reach it": {
			sandbox.Command{Args: []string{"sh", "-c", `echo ${#1} ${#2}`, "sh", strings.Repeat("x", 100<<10), strings.Repeat("y", 100<<10)}},
			outcome{stdout: "102400 102400\n", exit: exited},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, c, tc.command)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotStarted(t *testing.T) {
	c, s := sandboxtest.New(t)
	script := filepath.Join(s.Workspace, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		command sandbox.Command
		reason  sandbox.Reason
		says    string
	}{
		"no such program":              {sandbox.Command{Args: []string{"frobnicate"}}, sandbox.NoProgram, `no program "frobnicate" in the image`},
		"no such path":                 {sandbox.Command{Args: []string{"./frobnicate"}}, sandbox.NoProgram, "no program"},
		"no such directory":            {sandbox.Command{Args: []string{"true"}, Dir: "/no/where"}, sandbox.NoDirectory, `no directory "/no/where"`},
		"a file as a directory":        {sandbox.Command{Args: []string{"true"}, Dir: "/etc/passwd"}, sandbox.NoDirectory, "no directory"},
		"a directory as a program":     {sandbox.Command{Args: []string{"/usr"}}, sandbox.NotExecutable, "no program that the sandbox can execute"},
		"a file that is no program":    {sandbox.Command{Args: []string{"/etc/passwd"}}, sandbox.NotExecutable, "look at its mode and its first line"},
		"a script without interpreter": {sandbox.Command{Args: []string{script}}, sandbox.NotExecutable, "first line"},
		"nothing":                      {sandbox.Command{}, sandbox.Malformed, "names no program"},
		"a relative directory":         {sandbox.Command{Args: []string{"true"}, Dir: "x"}, sandbox.Malformed, "is not absolute"},
		"a NUL":                        {sandbox.Command{Args: []string{"true", "\x00"}}, sandbox.Malformed, "NUL"},
		"no variable":                  {sandbox.Command{Args: []string{"true"}, Env: map[string]string{"A=B": "c"}}, sandbox.Malformed, "no variable"},
		"more than the kernel takes":   {sandbox.Command{Args: []string{"true", strings.Repeat("x", 200<<10)}}, sandbox.Malformed, "through a file"},
		"a negative limit":             {limited("true", sandbox.Limits{Output: -1}), sandbox.Malformed, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Start(t.Context(), tc.command)
			refused, ok := errors.AsType[*sandbox.RefusedError](err)
			if !ok || refused.Reason != tc.reason || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Start: %v, want %s with %q", err, tc.reason, tc.says)
			}
		})
	}
	if got := run(t, c, sh("echo still here")); got.stdout != "still here\n" {
		t.Errorf("after all that: %+v", got)
	}
}

func TestStdin(t *testing.T) {
	c, _ := sandboxtest.New(t)
	t.Run("a program reads megabytes and the end", func(t *testing.T) {
		much := bytes.Repeat([]byte("0123456789abcdef"), 512<<10)
		p := begin(t, c, sandbox.Command{Args: []string{"sha256sum"}})
		go func() {
			defer p.Stdin().Close()
			if n, err := p.Stdin().Write(much); err != nil {
				t.Errorf("Write: %d, %v", n, err)
			}
		}()
		want := fmt.Sprintf("%x  -\n", sha256.Sum256(much))
		if got := collect(t, p); got.stdout != want {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a program that does not read can be killed", func(t *testing.T) {
		p := begin(t, c, sh("echo on; sleep 1000"))
		says(t, p, "on\n")
		failed := make(chan error)
		go func() {
			_, err := p.Stdin().Write(make([]byte, 8<<20))
			failed <- err
		}()
		p.Kill()
		if got := collect(t, p); got.exit.Cause != sandbox.Canceled {
			t.Errorf("%+v", got)
		}
		if err := <-failed; err == nil {
			t.Error("writing to it succeeded")
		}
	})
	t.Run("a program that ended reads no more", func(t *testing.T) {
		p := begin(t, c, sh("true"))
		collect(t, p)
		if _, err := p.Stdin().Write(make([]byte, 1<<20)); !errors.Is(err, io.ErrClosedPipe) && err == nil {
			t.Errorf("Write: %v", err)
		}
		if err := p.Stdin().Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	t.Run("a conversation", func(t *testing.T) {
		p := begin(t, c, sh(`while read x; do echo "got $x"; done; echo end`))
		for _, word := range []string{"one", "two"} {
			io.WriteString(p.Stdin(), word+"\n")
			says(t, p, "got "+word+"\n")
		}
		p.Stdin().Close()
		if got := collect(t, p); got.stdout != "end\n" {
			t.Errorf("%+v", got)
		}
	})
}
