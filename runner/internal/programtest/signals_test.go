package programtest_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// SIGTERM in the middle of an answer: the answer is waited for and recorded,
// its calls are not begun, and the next start of the attempt begins them.
func TestSigtermThenAgain(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	script := modeltest.NewServer(modeltest.Script{Models: map[string]modeltest.Dialogue{
		modeltest.ModelName: {Turns: []modeltest.Turn{call("Write", `{"path":"a.txt","content":"x"}`), {Text: "done"}}},
	}})
	first := sync.OnceFunc(func() { close(asked); <-answer })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first()
		script.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b := newBench(t, server.URL+"/v1", nil)

	c := b.command(t)
	lines, err := pipe(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for line := range lines {
		if strings.Contains(line, `"state.changed"`) {
			close(answer)
		}
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != task.ExitInterrupted {
		t.Fatalf("exit code %d, want %d\n%s", code, task.ExitInterrupted, b.log.String())
	}
	if _, err := os.Stat(filepath.Join(b.workspace, "a.txt")); !os.IsNotExist(err) {
		t.Errorf("the call was begun: %v", err)
	}

	if code := b.run(t); code != task.ExitCommitted {
		t.Fatalf("exit code %d of the second start\n%s", code, b.log.String())
	}
	if data, err := os.ReadFile(filepath.Join(b.workspace, "a.txt")); err != nil || string(data) != "x" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if n := len(script.Requests()); n != 2 {
		t.Errorf("the model was asked %d times, want 2: the first answer was recorded", n)
	}
}

// pipe is the lines of a command's standard output, to their end.
func pipe(c *exec.Cmd) (func(func(string) bool), error) {
	c.Stdout = nil
	out, err := c.StdoutPipe()
	return func(yield func(string) bool) {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if !yield(lines.Text()) {
				return
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}, err
}
