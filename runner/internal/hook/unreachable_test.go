package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/hook"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A refusing transport makes no connection.
type failingTransport struct{ err error }

func (f failingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// The host of a hook that does not exist ends the attempt, though the call that it
// was to be asked about only fails: the model would go on without its tools. A hook
// that is down, or that the work may do without, does not.
func TestAHookWhoseHostDoesNotExistEndsTheAttempt(t *testing.T) {
	missing := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "gaurd.example", Server: "10.96.0.10:53", IsNotFound: true}}
	down := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connect: connection refused")}
	cases := map[string]struct {
		point  string
		err    error
		ignore bool
		result string
		ends   string
	}{
		"before a call":                {hook.BeforeTool, missing, false, "Error: the hook guard could not be asked at BeforeTool: lookup gaurd.example: no such host; the call was not executed", "lookup gaurd.example: no such host"},
		"after a call":                 {hook.AfterTool, missing, false, "Error: The call was executed, but the hook guard could not be asked at AfterTool: lookup gaurd.example: no such host, so its result is withheld", "lookup gaurd.example: no such host"},
		"one that is down":             {hook.BeforeTool, down, false, "Error: the hook guard could not be asked at BeforeTool: dial: connect: connection refused; the call was not executed", ""},
		"one that may be done without": {hook.BeforeTool, missing, true, "did", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := hook.Layer([]task.Hook{{Name: "guard", Point: tc.point, URL: "http://gaurd.example/ask", Ignore: tc.ignore}}, hook.Options{Run: theRun, Transport: failingTransport{tc.err}})
			asked := 0
			ask := l.Model(func(context.Context, *middleware.Turn) (model.Response, error) {
				asked++
				return model.Response{}, nil
			})
			if _, err := ask(t.Context(), &middleware.Turn{}); err != nil {
				t.Fatal(err)
			}
			call := l.Tool(func(context.Context, *tool.Call) (tool.Result, error) { return tool.Result{Text: "did"}, nil })
			result, err := call(t.Context(), &tool.Call{ID: "c1", Name: "write", Args: json.RawMessage(`{}`)})
			if err != nil || result.Render() != tc.result {
				t.Errorf("the model reads %q (%v), want %q", result.Render(), err, tc.result)
			}
			_, err = ask(t.Context(), &middleware.Turn{})
			var end *task.EndError
			switch {
			case tc.ends == "" && (err != nil || asked != 2):
				t.Errorf("the attempt ended: %v", err)
			case tc.ends != "" && (!errors.As(err, &end) || end.Reason != task.ReasonToolUnavailable || asked != 1):
				t.Errorf("the attempt did not end with ToolUnavailable: %v", err)
			case tc.ends != "" && end.Message != "The hook guard could not be asked: "+tc.ends+"; see whether its url answers, or set its failurePolicy to Ignore":
				t.Errorf("it ended with %s", end.Message)
			}
		})
	}
}
