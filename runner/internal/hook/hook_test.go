package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/hook"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A service answers for hooks, each at a path of its own.
type fakeService struct {
	*httptest.Server
	mu       sync.Mutex
	asked    []string // the bodies, in order
	headers  []http.Header
	handlers map[string]http.HandlerFunc
}

func startService(t *testing.T) *fakeService {
	t.Helper()
	s := &fakeService{handlers: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, string(body))
		s.headers = append(s.headers, r.Header.Clone())
		handler := s.handlers[r.URL.Path]
		s.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// hook is one whose every answer is the same; empty: 204.
func (s *fakeService) hook(name, point, answer string) task.Hook {
	return s.hookBy(name, point, func(w http.ResponseWriter, _ *http.Request) {
		if answer == "" {
			w.WriteHeader(http.StatusNoContent)
		}
		_, _ = io.WriteString(w, answer)
	})
}

func (s *fakeService) hookBy(name, point string, handler http.HandlerFunc) task.Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := "/" + name + "/" + point
	s.handlers[path] = handler
	return task.Hook{Name: name, Point: point, URL: s.URL + path, TimeoutSeconds: 5}
}

var theRun = task.Run{Namespace: "ns", Name: "run", UID: "u1"}

func layer(hooks ...task.Hook) middleware.Layer {
	return hook.Layer(hooks, hook.Options{Run: theRun, User: "ann"})
}

// A called is the result of a call, with what hooks did around it.
type called struct {
	tool.Result
	Hooks []step.Hook
}

// call makes a call through a layer; the tool echoes its arguments.
func call(t *testing.T, l middleware.Layer, c tool.Call) (called, []string) {
	t.Helper()
	var executed []string
	ctx, report := callreport.New(t.Context())
	f := l.Tool(func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		callreport.AddHook(ctx, step.Hook{Name: "inner"})
		executed = append(executed, string(c.Args))
		return tool.Result{Text: "did " + string(c.Args), Output: c.Args}, nil
	})
	r, err := f(ctx, &c)
	if err != nil {
		t.Fatalf("the call: %v", err)
	}
	return called{r, report.Hooks()}, executed
}

var write = tool.Call{ID: "s3c1", Name: "write", Args: json.RawMessage(`{"n":1}`), Scope: step.Scope{Agent: "writer", Depth: 1}}

// did tells what hooks did, a line each.
func did(hooks []step.Hook) []string {
	var all []string
	for _, h := range hooks {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", h.Name, h.Point, h.Did, h.Reason)))
	}
	return all
}

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

func TestALayerDoesOnlyWhatHooksAskFor(t *testing.T) {
	cases := map[string]struct {
		point string
		want  string
	}{
		"no hook":        {"", ""},
		"before session": {hook.BeforeSession, "start"},
		"after session":  {hook.AfterSession, "stop"},
		"before model":   {hook.BeforeModel, "model"},
		"after model":    {hook.AfterModel, "model"},
		"before tool":    {hook.BeforeTool, "model tool"},
		"after tool":     {hook.AfterTool, "model tool"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := layer(task.Hook{Point: tc.point})
			var parts []string
			for part, there := range map[string]bool{"start": l.Start != nil, "stop": l.Stop != nil, "model": l.Model != nil, "tool": l.Tool != nil} {
				if there {
					parts = append(parts, part)
				}
			}
			slices.Sort(parts)
			got := strings.Join(parts, " ")
			if got != tc.want || l.Name != "hooks" || l.Priority != 400 {
				t.Errorf("has %q, want %q; %+v", got, tc.want, l)
			}
		})
	}
}

func TestHooksOfOnePointAreAskedInOrderEachWithTheValuesOfTheOneBefore(t *testing.T) {
	s := startService(t)
	r, executed := call(t, layer(
		s.hook("c", hook.AfterTool, `{"text":"first"}`),
		s.hook("a", hook.BeforeTool, `{"args":{"n":2}}`),
		s.hook("d", hook.AfterTool, `{"allow":true,"text":"second","unknown":[1]}`),
		s.hook("b", hook.BeforeTool, `{"args":{"n":3},"reason":"three is better"}`),
		s.hook("e", hook.AfterTool, ""),
	), write)
	const head = `{"version":1,"hook":"%s","point":"%s","run":{"namespace":"ns","name":"run","uid":"u1"},"user":"ann","scope":{"depth":1,"agent":"writer"},"id":"s3c1","name":"write",`
	expect(t, "what hooks were told", []string{
		fmt.Sprintf(head, "a", hook.BeforeTool) + `"args":{"n":1}}`,
		fmt.Sprintf(head, "b", hook.BeforeTool) + `"args":{"n":2}}`,
		fmt.Sprintf(head, "c", hook.AfterTool) + `"args":{"n":3},"result":{"text":"did {\"n\":3}","isError":false}}`,
		fmt.Sprintf(head, "d", hook.AfterTool) + `"args":{"n":3},"result":{"text":"first","isError":false}}`,
		fmt.Sprintf(head, "e", hook.AfterTool) + `"args":{"n":3},"result":{"text":"second","isError":false}}`,
	}, s.asked)
	expect(t, "executed", []string{`{"n":3}`}, executed)
	expect(t, "the result", "second", r.Render())
	expect(t, "what hooks did", []string{
		"a BeforeTool Changed", "b BeforeTool Changed three is better", "inner", "c AfterTool Changed", "d AfterTool Changed", "e AfterTool Allowed",
	}, did(r.Hooks))
	expect(t, "the caller's arguments", `{"n":1}`, string(write.Args))
}

// What one hook may answer before and after a call.
func TestAnswersAroundACall(t *testing.T) {
	cases := map[string]struct {
		point, answer string
		result        string // what the model reads
		did           string
		executed      int
	}{
		"nothing":                   {hook.BeforeTool, "", `did {"n":1}`, "Allowed", 1},
		"an empty body":             {hook.BeforeTool, " \n", `did {"n":1}`, "Allowed", 1},
		"yes":                       {hook.BeforeTool, `{"allow":true}`, `did {"n":1}`, "Allowed", 1},
		"yes, with a reason":        {hook.BeforeTool, `{"allow":true,"reason":"fine"}`, `did {"n":1}`, "Allowed fine", 1},
		"null changes nothing":      {hook.BeforeTool, `{"allow":null,"args":null}`, `did {"n":1}`, "Allowed", 1},
		"no":                        {hook.BeforeTool, `{"allow":false}`, "Error: Not executed: the hook h does not allow this call: no reason was given", "Vetoed no reason was given", 0},
		"no, and a change":          {hook.BeforeTool, `{"allow":false,"reason":"not on Sundays","args":{"n":2}}`, "Error: Not executed: the hook h does not allow this call: not on Sundays", "Vetoed not on Sundays", 0},
		"arguments of no object":    {hook.BeforeTool, `{"args":[1]}`, "", "Failed it answered arguments that are no JSON object", 0},
		"arguments that do not fit": {hook.BeforeTool, `{"args":{"bad":1}}`, "", "Failed it answered arguments that do not fit the tool: `bad` is not known", 0},
		"what is for another point": {hook.BeforeTool, `{"text":7}`, `did {"n":1}`, "Allowed", 1},

		"a result withheld":          {hook.AfterTool, `{"allow":false,"reason":"private"}`, "Error: The call was executed, but the hook h withholds its result: private", "Vetoed private", 1},
		"a result made an error":     {hook.AfterTool, `{"isError":true}`, `Error: did {"n":1}`, "Changed", 1},
		"another error":              {hook.AfterTool, `{"isError":true,"text":"Error: no"}`, `Error: no`, "Changed", 1},
		"an empty result":            {hook.AfterTool, `{"text":""}`, ``, "Changed", 1},
		"a text that looks like one": {hook.AfterTool, `{"text":"Error: is what it says"}`, `Error: is what it says`, "Changed", 1},
		"a text that is none":        {hook.AfterTool, `{"text":["x"]}`, "", "Failed its answer makes no sense: text cannot be of type array", 1},

		"no JSON":               {hook.BeforeTool, `OK`, "", "Failed its answer is no JSON object", 0},
		"a web page":            {hook.BeforeTool, `<html>`, "", "Failed its answer is no JSON object", 0},
		"another JSON":          {hook.BeforeTool, `[]`, "", "Failed its answer is no JSON object", 0},
		"JSON that is cut":      {hook.BeforeTool, `{"allow":true`, "", "Failed its answer makes no sense: unexpected end of JSON input", 0},
		"two answers":           {hook.BeforeTool, `{"allow":true}{"allow":false}`, "", "Failed its answer makes no sense: invalid character '{' after top-level value", 0},
		"a word for a truth":    {hook.BeforeTool, `{"allow":"false"}`, "", "Failed its answer makes no sense: allow cannot be of type string", 0},
		"as much as may be":     {hook.BeforeTool, `{"x":"` + strings.Repeat("x", 256<<10-8) + `"}`, `did {"n":1}`, "Allowed", 1},
		"more than may be":      {hook.BeforeTool, `{"x":"` + strings.Repeat("x", 256<<10-7) + `"}`, "", "Failed its answer has more than 262144 bytes", 0},
		"a reason that is long": {hook.BeforeTool, `{"reason":"` + strings.Repeat("x", 2000) + `"}`, `did {"n":1}`, "Allowed " + strings.Repeat("x", 1021) + "…", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := startService(t).hook("h", tc.point, tc.answer)
			checkCall(t, h, outcome{tc.result, tc.did, tc.executed})
			h.Ignore = true
			checkCall(t, h, outcome{tc.result, tc.did, tc.executed})
		})
	}
}

// An outcome is what came of a call with one hook; where that failed, result
// and executed are the same for all.
type outcome struct {
	result   string
	did      string
	executed int
}

func (o outcome) of(h task.Hook) outcome {
	cause, failed := strings.CutPrefix(o.did, "Failed ")
	switch {
	case failed && h.Ignore:
		o.result, o.executed = `did {"n":1}`, 1
	case failed && h.Point == hook.AfterTool:
		o.result = "Error: The call was executed, but the hook h could not be asked at AfterTool: " + cause + ", so its result is withheld"
	case failed:
		o.result = "Error: the hook h could not be asked at BeforeTool: " + cause + "; the call was not executed"
	}
	o.did = "h " + h.Point + " " + o.did
	return o
}

// checkCall makes a call with one hook; the tool knows no argument "bad".
func checkCall(t *testing.T, h task.Hook, want outcome) {
	t.Helper()
	check := func(_ string, args json.RawMessage) error {
		if strings.Contains(string(args), "bad") {
			return errors.New("`bad` is not known")
		}
		return nil
	}
	r, executed := call(t, hook.Layer([]task.Hook{h}, hook.Options{Check: check}), write)
	if r.Error != nil && r.Output != nil {
		t.Errorf("a call that failed commits %s", r.Output)
	}
	all := slices.DeleteFunc(did(r.Hooks), func(d string) bool { return d == "inner" })
	got := outcome{r.Render(), strings.Join(all, "; "), len(executed)}
	if diff := cmp.Diff(want.of(h), got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("with Ignore %t: -want +got:\n%s", h.Ignore, diff)
	}
}

func TestAFailureTurnedIntoAResult(t *testing.T) {
	s := startService(t)
	f := layer(s.hook("h", hook.AfterTool, `{"isError":false}`)).Tool(func(context.Context, *tool.Call) (tool.Result, error) {
		return tool.Fail("not there", "look elsewhere"), nil
	})
	r, err := f(t.Context(), &write)
	if err != nil || r.Error != nil || r.Text != "not there\n- look elsewhere" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Only a hook that says so makes a success of a command that failed.
func TestACommandThatFailedStaysFailed(t *testing.T) {
	for answer, failed := range map[string]bool{`{}`: true, `{"text":"shorter"}`: true, `{"isError":false}`: false} {
		s := startService(t)
		f := layer(s.hook("h", hook.AfterTool, answer)).Tool(func(context.Context, *tool.Call) (tool.Result, error) {
			return tool.Result{Text: "exit code: 1", Failed: true}, nil
		})
		if r, err := f(t.Context(), &write); err != nil || r.Failed != failed {
			t.Errorf("%s: failed %t, want %t (%v)", answer, r.Failed, failed, err)
		}
	}
}

func TestOnlyNamedToolsAreAskedAbout(t *testing.T) {
	s := startService(t)
	h := s.hook("h", hook.BeforeTool, `{"allow":false}`)
	h.Tools = []string{"delete", "write"}
	for name, want := range map[string]int{"write": 0, "delete": 0, "writer": 1, "Write": 1, "": 1} {
		c := write
		c.Name = name
		if _, executed := call(t, layer(h), c); len(executed) != want {
			t.Errorf("%q was executed %d times, want %d", name, len(executed), want)
		}
	}
}

func TestStatuses(t *testing.T) {
	cases := map[int]string{
		200: "Allowed", 201: "Allowed", 204: "Allowed",
		301: "Failed it answered with a redirect (HTTP 301), which is not followed",
		307: "Failed it answered with a redirect (HTTP 307), which is not followed",
		400: "Failed it answered HTTP 400", 401: "Failed it answered HTTP 401", 404: "Failed it answered HTTP 404",
		500: "Failed it answered HTTP 500", 503: "Failed it answered HTTP 503", 999: "Failed it answered HTTP 999",
	}
	for status, want := range cases {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := startService(t)
			s.handlers["/elsewhere"] = func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }
			h := s.hookBy("h", hook.BeforeTool, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				if status >= 300 {
					_, _ = io.WriteString(w, `{"allow":true}`)
				}
			})
			h.Secret, h.Key = "sec", "k"
			h.Ignore = true
			l := hook.Layer([]task.Hook{h}, hook.Options{Key: func(task.SecretKey) func() (string, error) {
				return func() (string, error) { return "t0ken", nil }
			}})
			r, _ := call(t, l, write)
			expect(t, "what the hook did", "h BeforeTool "+want, did(r.Hooks)[0])
			expect(t, "how often it was asked", 1, len(s.asked))
		})
	}
}

func TestTheErrorOfAnUnreachableHookHidesItsURL(t *testing.T) {
	for name, url := range map[string]string{"refused": "http://127.0.0.1:1/?key=s3cret", "no URL": "http://s3cret\x7f/", "no scheme": "s3cret"} {
		r, _ := call(t, layer(task.Hook{Name: "h", Point: hook.BeforeTool, URL: url, Ignore: true}), write)
		if got := r.Hooks[0]; got.Did != step.HookFailed || strings.Contains(got.Reason, "s3cret") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAHookThatIsAMetadataServiceIsNotCalled(t *testing.T) {
	h := task.Hook{Name: "h", Point: hook.BeforeTool, URL: "http://169.254.169.254/latest", TimeoutSeconds: 5, Ignore: true}
	r, executed := call(t, layer(h), write)
	if len(executed) != 1 || len(r.Hooks) == 0 || !strings.Contains(r.Hooks[0].Reason, "the address 169.254.169.254 may not be reached") {
		t.Errorf("the hook did %+v", r.Hooks)
	}
}
