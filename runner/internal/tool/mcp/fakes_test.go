package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A program is what a sandbox starts: it ends with an exit code.
type program func(ctx context.Context, in io.Reader, out, errs io.Writer) int

// A fakeSandbox starts functions as programs.
type fakeSandbox struct {
	// next is the program of the n-th start, from 0.
	next    func(n int) (program, error)
	started atomic.Int32
	last    atomic.Pointer[sandbox.Command]
}

// always starts the same.
func always(p program) *fakeSandbox {
	return &fakeSandbox{next: func(int) (program, error) { return p, nil }}
}

func (f *fakeSandbox) Start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	f.last.Store(&c)
	run, err := f.next(int(f.started.Add(1)) - 1)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &fakeProcess{cancel: cancel, output: make(chan sandbox.Chunk), done: make(chan struct{}), gone: ctx.Done()}
	in, stdin := io.Pipe()
	p.stdin = stdin
	context.AfterFunc(ctx, func() { _ = in.Close(); _ = stdin.Close() })
	go func() {
		code := run(ctx, in, &stream{p, sandbox.Stdout}, &stream{p, sandbox.Stderr})
		_ = in.Close()
		p.exit = sandbox.Exit{Code: code, Cause: sandbox.Exited}
		p.end()
		close(p.done)
		cancel()
	}()
	return p, nil
}

func (*fakeSandbox) Describe(context.Context) (sandbox.Description, error) {
	return sandbox.Description{}, nil
}

type fakeProcess struct {
	cancel context.CancelFunc
	stdin  io.WriteCloser
	output chan sandbox.Chunk
	done   chan struct{}
	gone   <-chan struct{}
	exit   sandbox.Exit

	mu    sync.Mutex
	ended bool // output is closed
}

func (p *fakeProcess) Stdin() io.WriteCloser { return p.stdin }

func (p *fakeProcess) Output() <-chan sandbox.Chunk { return p.output }

// end closes the output; what was not written by then is lost.
func (p *fakeProcess) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.output)
	p.ended = true
}

// say writes one chunk of output; it returns whether that was possible.
func (p *fakeProcess) say(c sandbox.Chunk) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	select {
	case p.output <- c:
		return true
	case <-p.gone:
		return false
	}
}

func (p *fakeProcess) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return sandbox.Exit{}, ctx.Err()
	}
}

func (p *fakeProcess) Kill() error { p.cancel(); return nil }

// A stream is one that a program writes to.
type stream struct {
	p    *fakeProcess
	kind sandbox.Stream
}

func (s *stream) Write(b []byte) (int, error) {
	const chunk = 32 << 10
	for at := 0; at < len(b); at += chunk {
		data := append([]byte(nil), b[at:min(at+chunk, len(b))]...)
		if !s.p.say(sandbox.Chunk{Stream: s.kind, Data: data}) {
			return at, io.ErrClosedPipe
		}
	}
	return len(b), nil
}

// official serves with the server of the official library.
func official(server *sdk.Server) program {
	return func(ctx context.Context, in io.Reader, out, _ io.Writer) int {
		_ = server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: writeCloser{out}})
		return 0
	}
}

type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }

// A request is what a scripted server was asked.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// A reply writes what a scripted server answers. It returns false to end it.
type reply func(r request, say func(line string)) bool

// answerTo is a result.
func answerTo(r request, result string) string {
	return `{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + result + `}`
}

const hello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`

// scripted serves by a function, after which come the usual answers.
func scripted(special reply) program {
	return func(_ context.Context, in io.Reader, out, _ io.Writer) int {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<20)
		say := func(line string) { _, _ = io.WriteString(out, line+"\n") }
		for lines.Scan() {
			var r request
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				continue
			}
			said := false
			if !special(r, func(line string) { said = true; say(line) }) {
				return 3
			}
			if said || r.ID == nil {
				continue
			}
			switch r.Method {
			case "initialize":
				say(answerTo(r, hello))
			case "tools/list":
				say(answerTo(r, `{"tools":[{"name":"do","inputSchema":{"type":"object"}}]}`))
			case "tools/call":
				say(answerTo(r, `{"content":[{"type":"text","text":"done"}]}`))
			case "ping":
				say(answerTo(r, `{}`))
			default:
				say(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"error":{"code":-32601,"message":"no such method"}}`)
			}
		}
		return 0
	}
}

// plain answers as usual.
func plain(request, func(string)) bool { return true }

// only says something special to one method.
func only(method string, special reply) reply {
	return func(r request, say func(string)) bool {
		if r.Method != method {
			return true
		}
		return special(r, say)
	}
}

// stdio is a Toolset that is a program.
func stdio() task.Toolset {
	return task.Toolset{Name: "files", Stdio: &task.StdioServer{Command: []string{"server"}}}
}

// begin connects to a program.
func begin(t *testing.T, ts task.Toolset, p program) *Server {
	t.Helper()
	s, err := Connect(t.Context(), Options{Toolset: ts, Sandbox: always(p)})
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// use calls a tool by the name that the server gives it.
func use(t *testing.T, s *Server, home, args string) tool.Result {
	t.Helper()
	result, err := named(t, s, home).Call(t.Context(), tool.Call{Args: json.RawMessage(args), Emit: func(string) {}})
	if err != nil {
		t.Fatalf("calling %s: %v", home, err)
	}
	return result
}

// named is the tool that the server gives a name.
func named(t *testing.T, s *Server, home string) tool.Tool {
	t.Helper()
	tools, err := s.Tools([]string{home}, nil)
	if err != nil || len(tools) != 1 {
		t.Fatalf("Tools(%s) = %v, %v", home, tools, err)
	}
	return tools[0]
}

// names are those of all tools, in their order.
func names(t *testing.T, s *Server) []string {
	t.Helper()
	tools, err := s.Tools(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, one := range tools {
		all = append(all, one.Name)
	}
	return all
}

// has says whether each of the parts is in a text.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%.2000s", part, text)
		}
	}
}
