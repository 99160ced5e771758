package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type addOut struct {
	Sum int `json:"sum"`
}

// library is a server of the official library, with some of everything.
func library() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "library", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Adds two numbers.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in addIn) (*sdk.CallToolResult, addOut, error) {
			return nil, addOut{in.A + in.B}, nil
		})
	s.AddTool(&sdk.Tool{Name: "fail", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, errors.New("it is broken")
		})
	s.AddTool(&sdk.Tool{Name: "mixed.parts", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{
				&sdk.TextContent{Text: "first"},
				&sdk.ImageContent{MIMEType: "image/png", Data: make([]byte, 12<<10)},
				&sdk.AudioContent{MIMEType: "audio/wav", Data: make([]byte, 100)},
				&sdk.ResourceLink{URI: "file:///a", Name: "a", Description: "what it is"},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", MIMEType: "text/plain", Text: "inside"}},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c", MIMEType: "image/gif", Blob: make([]byte, 5)}},
			}}, nil
		})
	s.AddResource(&sdk.Resource{URI: "note://1", Name: "one", MIMEType: "text/plain", Description: "a note"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "the note"}}}, nil
		})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Description: "greets", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true, Description: "whom"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Hello " + r.Params.Arguments["who"]}}}}, nil
		})
	return s
}

func TestTheToolsOfAServer(t *testing.T) {
	ts := stdio()
	ts.Resources, ts.Prompts = true, true
	s := begin(t, ts, official(library()))
	want := []string{
		"files__add", "files__fail", "files__get_prompt", "files__list_prompts", "files__list_resources",
		"files__mixed_parts", "files__read_resource",
	}
	if diff := cmp.Diff(want, names(t, s)); diff != "" {
		t.Errorf("names -want +got:\n%s", diff)
	}
	spec := named(t, s, "add").Spec
	if spec.Description != "Adds two numbers." || spec.Effect != tool.Once || spec.Concurrency != tool.Parallel || spec.Timeout < maxCall {
		t.Errorf("Spec() = %+v", spec)
	}
	has(t, string(spec.Input), `"required":["a","b"]`)
	cases := map[string]struct{ home, args, want string }{
		"a structured answer":       {"add", `{"a":2,"b":3}`, `{"sum":5}`},
		"a tool that fails":         {"fail", `{}`, "Error: the MCP server of files answered with an error: it is broken"},
		"arguments that do not fit": {"add", `{"a":"x"}`, "Error: "},
		"parts of all kinds": {"mixed.parts", `{}`, "first\n[image image/png, 12 KB]\n" + notAFile + "\n[audio audio/wav, 100 bytes]\n" + notAFile + "\n[resource file:///a a: what it is]\n" +
			"[resource file:///b (text/plain)]\ninside\n[resource file:///c (image/gif), 5 bytes]\n" + notAFile},
		"resources":               {listResources, `{}`, "note://1 one (text/plain): a note"},
		"a resource":              {readResource, `{"uri":"note://1"}`, "[resource note://1 (text/plain)]\nthe note"},
		"a resource that is none": {readResource, `{"uri":"note://2"}`, "Error: the MCP server of files answered with an error: "},
		"prompts":                 {listPrompts, `{}`, "greet: greets\n  who (required): whom"},
		"a prompt":                {getPrompt, `{"name":"greet","arguments":{"who":"Ann"}}`, "[user]\nHello Ann"},
		"a call without its name": {getPrompt, `{}`, "Error: Invalid arguments for get_prompt: `name` is missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := use(t, s, tc.home, tc.args).Render(); got != tc.want && (!strings.HasSuffix(tc.want, " ") && !strings.HasPrefix(tc.want, "Error: Inv") || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAllowAndDeny(t *testing.T) {
	s := begin(t, stdio(), official(library()))
	got, err := s.Tools([]string{"add", "fail"}, []string{"fail"})
	if err != nil || len(got) != 1 || got[0].Name != "files__add" {
		t.Errorf("Tools(add, fail; not fail) = %v, %v", got, err)
	}
	_, err = s.Tools([]string{"add", "sub"}, nil)
	if _, ok := errors.AsType[*NotOfferedError](err); !ok {
		t.Fatalf("Tools(sub) = %v", err)
	}
	if want := "the Toolset files does not offer sub; it offers add, fail, mixed.parts; correct allow"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestEffects(t *testing.T) {
	cases := map[string]struct {
		toolset func(*task.Toolset)
		want    map[string]tool.Effect
	}{
		"once, whatever a server says": {func(*task.Toolset) {}, map[string]tool.Effect{"add": tool.Once, "fail": tool.Once}},
		"as the Toolset says": {
			func(ts *task.Toolset) { ts.ReadOnly, ts.Idempotent = []string{"fail"}, []string{"add"} },
			map[string]tool.Effect{"add": tool.Idempotent, "fail": tool.ReadOnly},
		},
		"as the server says, when it is believed": {
			func(ts *task.Toolset) { ts.TrustHints = true },
			map[string]tool.Effect{"add": tool.ReadOnly, "fail": tool.Once},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ts := stdio()
			tc.toolset(&ts)
			s := begin(t, ts, official(library()))
			for home, want := range tc.want {
				if got := named(t, s, home).EffectOf(nil); got != want {
					t.Errorf("%s is %s, want %s", home, got, want)
				}
			}
		})
	}
}

func TestWhereAProgramStarts(t *testing.T) {
	ts := stdio()
	ts.Stdio.InSandbox, ts.Stdio.Env = true, map[string]string{"A": "b"}
	inside := always(scripted(plain))
	ts.Stdio.Command = []string{"npx", "server"}
	s, err := Connect(t.Context(), Options{Toolset: ts, Sandbox: inside})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := sandbox.Command{ID: "mcp:files", Args: []string{"npx", "server"}, Env: map[string]string{"A": "b"}}
	if diff := cmp.Diff(want, *inside.last.Load()); diff != "" {
		t.Errorf("Start -want +got:\n%s", diff)
	}
}

// What a server asks is declined, and holds nothing up.
func TestWhatAServerAsks(t *testing.T) {
	answers := make(chan string, 10)
	asking := func(r request, say func(string)) bool {
		switch {
		case r.Method == "tools/call":
			say(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
			say(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[]}}`)
			say(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"password?","requestedSchema":{}}}`)
			say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
			say(answerTo(r, `{"content":[{"type":"text","text":"asked"}]}`))
		case r.Method == "" && r.ID != nil:
			answers <- string(r.ID)
		}
		return true
	}
	ts := stdio()
	ts.Stdio.InSandbox = true
	s := begin(t, ts, func(ctx context.Context, in io.Reader, out, errs io.Writer) int {
		var all strings.Builder
		tee := io.TeeReader(in, &all)
		code := scripted(asking)(ctx, tee, out, errs)
		answers <- all.String()
		return code
	})
	if got := use(t, s, "do", `{}`).Render(); got != "asked" {
		t.Errorf("the call says %q", got)
	}
	got := map[string]bool{}
	for range 4 {
		got[<-answers] = true
	}
	if diff := cmp.Diff(map[string]bool{`"r"`: true, `"s"`: true, `"e"`: true, `"p"`: true}, got); diff != "" {
		t.Errorf("answered -want +got:\n%s", diff)
	}
	s.Close()
	heard := <-answers
	has(t, heard, `{"roots":[{"uri":"file:///workspace","name":"workspace"}]}`, `{"action":"decline"}`, `this client does not do that`)
	for _, offered := range []string{`"sampling"`, `"elicitation"`} {
		if strings.Contains(heard, offered+":") {
			t.Errorf("the client says that it can do %s", offered)
		}
	}
}

func TestProgressIsShownAndKeepsACallAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := only("tools/call", func(r request, say func(string)) bool {
			var p struct {
				Meta struct {
					Token string `json:"progressToken"`
				} `json:"_meta"`
			}
			_ = json.Unmarshal(r.Params, &p)
			for range 30 { // half an hour
				time.Sleep(time.Minute)
				say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"` + p.Meta.Token + `","progress":1,"total":30,"message":"a\nminute"}}`)
			}
			say(answerTo(r, `{"content":[{"type":"text","text":"at last"}]}`))
			return true
		})
		s, err := Connect(t.Context(), Options{Toolset: stdio(), Sandbox: always(scripted(slow))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var shown []string
		result, err := named(t, s, "do").Call(t.Context(), tool.Call{Args: []byte(`{}`), Emit: func(text string) { shown = append(shown, text) }})
		if err != nil || result.Render() != "at last" {
			t.Errorf("Call() = %v, %v", result, err)
		}
		if len(shown) != 30 || shown[0] != "a minute (1/30)" {
			t.Errorf("shown: %q", shown)
		}
	})
}

func TestACallInWhichNothingHappensEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		canceled := make(chan string, 1)
		mute := func(r request, say func(string)) bool {
			switch r.Method {
			case "tools/call":
				say("") // and nothing else
			case "notifications/cancelled":
				canceled <- string(r.Params)
			}
			return true
		}
		ts := stdio()
		ts.TimeoutSeconds = 90
		s, err := Connect(t.Context(), Options{Toolset: ts, Sandbox: always(scripted(mute))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		began := time.Now()
		got := use(t, s, "do", `{}`).Render()
		has(t, got, "did not answer within 1m30s", "may have changed nevertheless")
		if took := time.Since(began); took != 90*time.Second {
			t.Errorf("it took %v", took)
		}
		has(t, <-canceled, `"requestId"`)
		synctest.Wait()
		if got := use(t, s, "do", `{}`).Render(); !strings.Contains(got, "did not answer") {
			t.Errorf("the next call says %s", got)
		}
		if n := s.Sandbox.(*fakeSandbox).started.Load(); n != 1 {
			t.Errorf("a server that still answers to a ping was started %d times", n)
		}
	})
}

func TestACallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Connect(t.Context(), Options{Toolset: stdio(), Sandbox: always(scripted(only("tools/call", func(_ request, say func(string)) bool {
			say("")
			return true
		})))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		why := errors.New("the run was stopped")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		_, err = named(t, s, "do").Call(ctx, tool.Call{Args: []byte(`{}`), Emit: func(string) {}})
		if !errors.Is(err, why) {
			t.Errorf("Call() = %v, want the cause of its context", err)
		}
	})
}

func TestAnOptionalServerThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := always(func(_ context.Context, _ io.Reader, _, errs io.Writer) int {
			_, _ = io.WriteString(errs, "cannot find module\n")
			return 1
		})
		_, err := Connect(t.Context(), Options{Toolset: stdio(), Sandbox: broken})
		if _, ok := errors.AsType[*UnavailableError](err); !ok {
			t.Fatalf("Connect() = %v", err)
		}
		has(t, err.Error(), "the MCP server (spec.stdio) is not available: it ended with exit code 1; its last words: cannot find module")
		if n := broken.started.Load(); n < 5 || n > 10 {
			t.Errorf("it was started %d times within %v", n, DefaultConnectTimeout)
		}
		ts := stdio()
		ts.Optional = true
		s, err := Connect(t.Context(), Options{Toolset: ts, Sandbox: broken})
		if err != nil {
			t.Fatalf("Connect() of an optional one = %v", err)
		}
		defer s.Close()
		tools, err := s.Tools([]string{"anything"}, nil)
		if len(tools) != 0 || err != nil {
			t.Errorf("Tools() = %v, %v", tools, err)
		}
		has(t, s.Note(), "The tools of files are not available in this run")
		has(t, s.Absent().Error(), "(spec.stdio)", "cannot find module")
	})
}

func TestAProgramThatIsNotThereIsNotTriedAgain(t *testing.T) {
	refusing := &fakeSandbox{next: func(int) (program, error) {
		return nil, &sandbox.RefusedError{Reason: sandbox.NoProgram, Subject: "server"}
	}}
	_, err := Connect(t.Context(), Options{Toolset: stdio(), Sandbox: refusing})
	var refused *sandbox.RefusedError
	if !errors.As(err, &refused) || refusing.started.Load() != 1 {
		t.Errorf("Connect() = %v after %d starts", err, refusing.started.Load())
	}
}

// The names and the schemas of a server make a registry whatever they are.
func TestEveryCatalogMakesARegistry(t *testing.T) {
	s := begin(t, stdio(), scripted(only("tools/list", func(r request, say func(string)) bool {
		say(answerTo(r, `{"tools":[null,{"name":""},{"name":"a"},{"name":"a"},{"name":"b.c","inputSchema":[1]},{"name":"b/c","inputSchema":{"type":"string"}},`+
			`{"name":"Read","inputSchema":{"$ref":"https://nowhere.example"}},{"name":"d","inputSchema":{"type":"object","properties":7}}]}`))
		return true
	})))
	tools, err := s.Tools(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toolbox.New(tools...); err != nil {
		t.Errorf("NewRegistry: %v", err)
	}
	want := []string{"files__Read", "files__a", "files__b_c_" + "", "files__d"}
	got := names(t, s)
	if len(got) != 5 || got[0] != want[0] || got[1] != want[1] || !strings.HasPrefix(got[2], "files__b_c_") || got[4] != want[3] {
		t.Errorf("names: %q", got)
	}
	for _, one := range tools {
		var shape struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(one.Input, &shape); err != nil || shape.Type != "object" || shape.Properties == nil {
			t.Errorf("the schema of %s is %s", one.Name, one.Input)
		}
	}
}
