package config

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A fakeServers is a sandbox that starts MCP servers without tools, which want to be used
// as their program's second argument says.
type fakeServers struct{ sandbox.Sandbox }

func (fakeServers) Start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	in, stdin := io.Pipe()
	p := &fakeServer{stdin: stdin, output: make(chan sandbox.Chunk)}
	context.AfterFunc(ctx, func() { _ = in.Close() })
	go p.serve(in, c.Args[1])
	return p, nil
}

type fakeServer struct {
	sandbox.Process
	stdin  io.WriteCloser
	output chan sandbox.Chunk
}

func (f *fakeServer) serve(in io.Reader, instructions string) {
	defer close(f.output)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil || request.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"no such method"}`
		if request.Method == "initialize" {
			answer = fmt.Sprintf(`"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"instructions":%q}`, instructions)
		}
		f.output <- sandbox.Chunk{Stream: sandbox.Stdout, Data: []byte(`{"jsonrpc":"2.0","id":` + string(request.ID) + `,` + answer + "}\n")}
	}
}

func (f *fakeServer) Stdin() io.WriteCloser        { return f.stdin }
func (f *fakeServer) Output() <-chan sandbox.Chunk { return f.output }
func (f *fakeServer) Kill() error                  { return f.stdin.Close() }
func (*fakeServer) Wait(context.Context) (sandbox.Exit, error) {
	return sandbox.Exit{}, nil
}

func TestAgentsReadTheInstructionsOfTheirServers(t *testing.T) {
	sets := map[string]string{"b": "Use b.", "a": "Use a.", "silent": ""}
	for i := range 6 {
		sets[fmt.Sprintf("long%d", i)] = strings.Repeat("x", 4<<10)
	}
	b := &builder{Parts: Parts{Sandbox: fakeServers{}}}
	for name, said := range sets {
		b.Snapshot.Toolsets = append(b.Snapshot.Toolsets, task.Toolset{Name: name, Stdio: &task.StdioServer{Command: []string{"server", said}, InSandbox: true}})
	}
	b.Snapshot.Toolsets = append(b.Snapshot.Toolsets, task.Toolset{Name: "http", Requests: &task.Requests{}})
	h, err := b.openSandboxTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	uses := func(names ...string) task.Agent {
		agent := task.Agent{Tools: []task.Tool{{Builtin: task.BuiltinFiles}}}
		for _, n := range names {
			agent.Tools = append(agent.Tools, task.Tool{Toolset: n})
		}
		return agent
	}
	shown := regexp.MustCompile(`toolset="(.*)"`)
	for name, tc := range map[string]struct {
		agent task.Agent
		want  []string
	}{
		"of no server":                         {uses(), nil},
		"of a server that says nothing":        {uses("silent", "http"), nil},
		"in the order of the names, each once": {uses("b", "a", "b"), []string{"a", "b"}},
		"as far as there is room":              {uses("long0", "long1", "long2", "long3", "long4", "long5"), []string{"long0", "long1", "long2", "long3"}},
	} {
		text := h.instructions(tc.agent)
		var got []string
		for _, of := range shown.FindAllStringSubmatch(text, -1) {
			got = append(got, of[1])
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || len(text) > maxInstructions+512 {
			t.Errorf("%s: %d bytes, -want +got:\n%s", name, len(text), diff)
		}
	}
}
