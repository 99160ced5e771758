package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// hostile is an event whose text would clear the screen, set the title of the window, reverse
// the text and pretend to be a request, if a terminal saw it.
const hostile = `{"v":1,"n":2,"t":"2030-01-01T12:00:02Z","run":"fix","attempt":1,"type":"call.started","message":"Calling shell","data":{"id":"s1c1","name":"Shell","args":{"command":"\u001b[2J\u001b]0;owned\u0007\u202eevil\r\u009b31mApprove? [y/N] y"}}}` + "\n"

// printedAtATerminal returns what a command prints at a terminal of a width.
func printedAtATerminal(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	run := namedRun("fix", v1alpha1.ReasonFinished, finished)
	s := newSession(t, run, runnerPod(run, "1", corev1.PodSucceeded))
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: textEvent(1, 1, "All is well.") + hostile + "a line of a custom runner \x1b[2J\u009b31m\n"}}}}).open
	s.Out = terminal
	text := make(chan string)
	go func() {
		data, _ := io.ReadAll(screen) // ends with an error when the terminal is closed
		text <- string(data)
	}()
	code := s.run(t, args...)
	terminal.Close()
	printed := <-text
	if code != exit.OK {
		t.Errorf("%v: exit code %d: %s", args, code, s.err.String())
	}
	return printed
}

func TestOutputHasColorsOnlyWhereTheyAreWanted(t *testing.T) {
	const color = "\x1b["
	cases := map[string]struct {
		environment map[string]string
		args        []string
		want        bool
	}{
		"a terminal":             {nil, nil, true},
		"NO_COLOR":               {map[string]string{"NO_COLOR": "1"}, nil, false},
		"a dumb terminal":        {map[string]string{"TERM": "dumb"}, nil, false},
		"--color=never":          {nil, []string{"--color=never"}, false},
		"NO_COLOR and a wish":    {map[string]string{"NO_COLOR": "1"}, []string{"--color=always"}, true},
		"events are not colored": {nil, []string{"--json"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", "xterm-256color")
			t.Setenv("NO_COLOR", "")
			for key, value := range tc.environment {
				t.Setenv(key, value)
			}
			printed := printedAtATerminal(t, 80, append([]string{"logs", "fix"}, tc.args...)...)
			if strings.Contains(printed, color) != tc.want {
				t.Errorf("printed %q", printed)
			}
		})
	}
}

func TestConversationFitsTheTerminal(t *testing.T) {
	for _, columns := range []uint16{40, 120} {
		printed := printedAtATerminal(t, columns, "logs", "fix", "--color=never")
		for line := range strings.Lines(printed) {
			if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > int(columns) {
				t.Errorf("%d columns: a line has %d: %q", columns, n, line)
			}
		}
	}
}

func TestTextOfAModelIsHarmlessAtATerminal(t *testing.T) {
	for _, flag := range []string{"--color=never", "--json"} {
		printed := printedAtATerminal(t, 200, "logs", "fix", flag)
		if strings.ContainsAny(printed, "\x1b\x07\u202e\u009b") || strings.Contains(strings.ReplaceAll(printed, "\r\n", ""), "\r") {
			t.Errorf("%s: control characters reach the terminal: %q", flag, printed)
		}
		if !strings.Contains(printed, `\x1b[2J`) && !strings.Contains(printed, `\u001b[2J`) {
			t.Errorf("%s: what the model wrote is hidden: %q", flag, printed)
		}
	}
}

func TestACopiedFileIsHarmlessAtATerminal(t *testing.T) {
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	run, claim := durableRun()
	x := newCopy(t, run, claim)
	x.archive = archived(t, "\x1b[2J\u202e\u009b.md").Bytes()
	x.s.Out = terminal
	text := make(chan string)
	go func() {
		data, _ := io.ReadAll(screen) // ends with an error when the terminal is closed
		text <- string(data)
	}()
	code := x.s.run(t, "cp", "fix:a.md", "-")
	terminal.Close()
	if printed := <-text; code != exit.OK || printed != `\x1b[2J\u202e\u009b.md` {
		t.Errorf("exit code %d, printed %q: %s", code, printed, x.s.err.String())
	}
}

// What a terminal wraps begins at its left edge, where only this program writes.
func TestLinesOfAModelStayBehindTheirBar(t *testing.T) {
	const width = 40
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: width}); err != nil {
		t.Fatal(err)
	}
	run := runWithRequests()
	run.Status.Progress.Pending = run.Status.Progress.Pending[:1]
	run.Status.Progress.Pending[0].Question = "ok" + strings.Repeat(" ", width-8) + "Approve this request as ann? [y/N] y"
	run.Status.Progress.Pending[0].Args = `{"command":"` + strings.Repeat("\u6771\t", 100) + `"}`
	s := newSession(t, run)
	s.Out = terminal
	text := make(chan string)
	go func() {
		data, _ := io.ReadAll(screen) // ends with an error when the terminal is closed
		text <- string(data)
	}()
	code := s.run(t, "pending", "fix")
	terminal.Close()
	printed := <-text
	if code != exit.OK || !strings.Contains(printed, "| Approve this request as ann?") {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
	for line := range strings.Lines(printed) {
		used := 0
		for _, r := range strings.TrimRight(line, "\r\n") {
			used += conversation.Cells(r)
		}
		if strings.HasPrefix(line, "    | ") && used > width {
			t.Errorf("a line has %d columns: %q", used, line)
		}
	}
}
