package local

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/terminaltest"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// pictureColumns is the width of the terminal: the text of a wider picture is too small to read on a page.
const pictureColumns = 92

// tryBlock has the commands of README.md that print what the picture shows: one makes the file that the Agent
// changes, one runs the Agent.
var tryBlock = regexp.MustCompile(`(?ms)^### On your machine$.*?^(mkdir .*?)^(bin/deckhand-local .*?[^\\])\n.*?^` + "```$")

// pictureMasks replace what differs from one machine and one time to the next.
var pictureMasks = []mask{
	{regexp.MustCompile(`/\S*/home/`), "/home/dev/"},
	{regexp.MustCompile(`releaser-[a-z0-9]{5}`), "releaser-w6bxl"},
	{regexp.MustCompile(`(Approve by )\S+:`), "${1}dev:"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "2026-12-01T12:00:00Z"},
	{regexp.MustCompile(`^(← [\w ]+) \([0-9.]+m?s\):`), "$1:"}, // of a call that took a while
	{regexp.MustCompile(`^(■ .*USD) · \d+s$`), "$1"},           // of a Run of a second or more
}

// The picture of README.md is what a terminal shows of the commands below it: the program and the runner are
// those of a release, and only the answers of the model are scripted. -update draws it again.
func TestThePictureShowsWhatTheTerminalShows(t *testing.T) {
	picture, err := filepath.Abs("../../../docs/terminal.svg")
	if err != nil {
		t.Fatal(err)
	}
	b, typed := newPictureBench(t) // changes the directory
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 50, Cols: pictureColumns}); err != nil {
		t.Fatal(err)
	}
	b.In, b.Out, b.Err = terminal, terminal, terminal
	shown := make(chan string)
	go func() { shown <- terminaltest.AnswerAt(keyboard, "Approve this call?", "y\n") }()
	code := b.run(t, shellWords(typed)[1:]...)
	terminal.Close()
	printed := <-shown
	if code != exit.OK {
		t.Fatalf("exit code %d\n%s", code, printed)
	}
	got, err := drawScreen("$ "+typed+"\n"+printed, pictureColumns, pictureMasks)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(picture, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/terminal.svg (-picture +terminal), -update draws it again:\n%s", diff)
	}
}

// newPictureBench is a user who has typed the commands of README.md up to the last one, which it returns.
func newPictureBench(t *testing.T) (*session, string) {
	t.Helper()
	commands := tryBlock.FindStringSubmatch(readPage(t, "README.md"))
	if commands == nil {
		t.Fatal("README.md does not say how to try an Agent on a machine")
	}
	manifests := readPage(t, "examples/local/agent.yaml")
	script, err := modeltest.Parse([]byte(readPage(t, "examples/local/script.json")))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := runnerLocal()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(modeltest.NewServer(script))
	t.Cleanup(server.Close)
	home := filepath.Join(t.TempDir(), "home")
	path := filepath.Dir(runner) + string(filepath.ListSeparator) + os.Getenv("PATH")
	for name, value := range map[string]string{"HOME": home, "XDG_STATE_HOME": "", "TERM": "xterm", "NO_COLOR": "", "PATH": path} {
		t.Setenv(name, value)
	}
	if err := os.MkdirAll(filepath.Join(home, "examples", "local"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	manifests = strings.Replace(manifests, "http://127.0.0.1:8080", server.URL, 1)
	if err := os.WriteFile("examples/local/agent.yaml", []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", commands[1]).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", commands[1], err, out)
	}
	return newSession(t), commands[2]
}

// readPage returns a file of the repository.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shellWords returns the words of a command line as a shell does: with ~, with quotes, and continued after a
// backslash.
func shellWords(line string) []string {
	line = strings.NewReplacer("\\\n", "", "~/", os.Getenv("HOME")+"/").Replace(line)
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
