package attempt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What is wrong with a call is a result that the model reads: it says what to do instead, and
// the Run goes on.
func TestTheModelReadsWhatIsWrongWithItsCalls(t *testing.T) {
	args := func(path string) string { return `{"path":"` + path + `"}` }
	cases := map[string]struct {
		name, args string
		want       []string // in what the model reads
	}{
		"broken JSON":                   {"Write", `{"path": "a.txt", "content": `, []string{"JSON"}},
		"JSON that is no object":        {"Write", `["a.txt"]`, []string{"object"}},
		"an argument of another type":   {"Write", `{"path":1,"content":"x"}`, []string{"path"}},
		"an argument that is missing":   {"Write", args("a.txt"), []string{"content"}},
		"a tool that there is not":      {"Teleport", "{}", []string{"Unknown tool name: 'Teleport'", "Read"}},
		"a path outside":                {"Read", args("/etc/passwd"), []string{"/etc/passwd", "/workspace"}},
		"a path that leads outside":     {"Read", args("/workspace/../etc/passwd"), []string{"/workspace"}},
		"a relative path outside":       {"Read", args("../../etc/passwd"), []string{"/workspace"}},
		"a key of the runner":           {"Read", args("/deckhand/secrets/models/m/key"), []string{"/deckhand/secrets/models/m/key", "/workspace"}},
		"a file that it writes outside": {"Write", `{"path":"/etc/cron.d/x","content":"x"}`, []string{"/etc/cron.d/x", "/workspace"}},
		"a file that there is not":      {"Read", args("none.txt"), []string{"none.txt"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := readAfterACall(t, tc.name, tc.args)
			for _, want := range tc.want {
				if !strings.Contains(read, want) {
					t.Errorf("the model reads %q, want %q in it", read, want)
				}
			}
			if strings.Contains(read, "root:") {
				t.Errorf("it reads a file outside: %q", read)
			}
		})
	}
}

// readAfterACall returns what the model reads of a call that is an error, in a Run that then
// finishes.
func readAfterACall(t *testing.T, name, args string) string {
	t.Helper()
	quoted, err := json.Marshal(args) // sent as it is
	if err != nil {
		t.Fatal(err)
	}
	p := newTestPod(t, modeltest.Turn{Calls: []modeltest.Call{{Name: name, Args: quoted}}}, modeltest.Turn{Text: "I could not."})
	if code := p.run(); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	if end := p.api.reported[len(p.api.reported)-1]; end.Result.Reason != task.ReasonFinished || end.Counts.Errors != 1 {
		t.Errorf("the end is %+v after %d errors", end.Result, end.Counts.Errors)
	}
	asked := p.model.Requests()
	told := asked[len(asked)-1].Messages
	read := told[len(told)-1]
	if read.Role != "tool" || read.Content == nil {
		t.Fatalf("the last message is %+v", read)
	}
	return *read.Content
}
