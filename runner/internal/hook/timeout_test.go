package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/hook"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A transport that does as it is told.
type fakeTransport func(*http.Request) (*http.Response, error)

func (f fakeTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hangingTransport never answers; once it has begun to, if says so.
func hangingTransport(begin string) fakeTransport {
	return func(r *http.Request) (*http.Response, error) {
		if begin == "" {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		body, w := io.Pipe()
		go func() {
			_, _ = io.WriteString(w, begin)
			<-r.Context().Done()
			_ = w.CloseWithError(r.Context().Err())
		}()
		return &http.Response{StatusCode: http.StatusOK, Body: body, Request: r}, nil
	}
}

func TestAHookThatHangs(t *testing.T) {
	cases := map[string]struct {
		begin   string
		seconds int64
		want    time.Duration
	}{
		"without an answer":               {"", 7, 7 * time.Second},
		"in the middle of its answer":     {`{"allow":tr`, 7, 7 * time.Second},
		"with the default timeout":        {"", 0, 5 * time.Second},
		"with a timeout that is too long": {"", 1 << 60, 30 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				h := task.Hook{Name: "h", Point: hook.BeforeTool, URL: "http://hook.example/?key=s3cret", TimeoutSeconds: tc.seconds}
				r, executed := call(t, hook.Layer([]task.Hook{h}, hook.Options{Transport: hangingTransport(tc.begin)}), write)
				expect(t, "how long it took", tc.want, time.Since(began))
				expect(t, "executed", 0, len(executed))
				expect(t, "the result", fmt.Sprintf("Error: the hook h could not be asked at BeforeTool: it did not answer within %s; the call was not executed", tc.want), r.Render())
			})
		})
	}
}

func TestTheEndOfTheWorkIsNotTheHooksFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		h := task.Hook{Name: "h", Point: hook.BeforeTool, URL: "http://hook.example", Ignore: true}
		l := hook.Layer([]task.Hook{h}, hook.Options{Transport: hangingTransport("")})
		_, err := l.Tool(func(context.Context, *tool.Call) (tool.Result, error) {
			t.Error("the call was executed though its hook was not heard")
			return tool.Result{}, nil
		})(ctx, &write)
		if !errors.Is(err, stopped) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestAResultIsNotLostWhenTheWorkEnds(t *testing.T) {
	s := startService(t)
	ctx, cancel := context.WithCancel(t.Context())
	l := layer(s.hook("h", hook.AfterTool, `{"text":"seen"}`))
	r, err := l.Tool(func(context.Context, *tool.Call) (tool.Result, error) {
		cancel()
		return tool.Result{Text: "done"}, nil
	})(ctx, &write)
	if err != nil || r.Text != "seen" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A result that is there is not kept waiting for by a hook that hangs, when the
// pod is about to end.
func TestAResultWaitsForItsHooksOnlyALittleOnceAllElseHasEnded(t *testing.T) {
	cases := map[string]struct {
		ignore bool
		want   string
	}{
		"a hook that must be asked":  {false, "Error: The call was executed, but the hook h could not be asked at AfterTool: the work ended before it answered, so its result is withheld"},
		"one that need not be asked": {true, "done"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				ctx, report := callreport.New(ctx)
				hangs := fakeTransport(func(r *http.Request) (*http.Response, error) {
					cancel()
					<-r.Context().Done()
					return nil, r.Context().Err()
				})
				hooks := []task.Hook{{Name: "h", Point: hook.AfterTool, URL: "http://hook", TimeoutSeconds: 30, Ignore: tc.ignore}, {Name: "i", Point: hook.AfterTool, URL: "http://hook", TimeoutSeconds: 30, Ignore: tc.ignore}}
				began := time.Now()
				r, err := hook.Layer(hooks, hook.Options{Transport: hangs}).Tool(func(context.Context, *tool.Call) (tool.Result, error) {
					return tool.Result{Text: "done"}, nil
				})(ctx, &tool.Call{Name: "rm", Args: json.RawMessage("{}")})
				if err != nil || time.Since(began) != 3*time.Second || r.Render() != tc.want {
					t.Errorf("after %s: %v, %q", time.Since(began), err, r.Render())
				}
				expect(t, "what the hook did", "h AfterTool Failed the work ended before it answered", did(report.Hooks())[0])
			})
		})
	}
}
