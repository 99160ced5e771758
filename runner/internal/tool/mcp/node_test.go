package mcp

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// on starts real programs, as they are on this machine.
func on(t *testing.T, dir string, args ...string) *fakeSandbox {
	t.Helper()
	return always(func(ctx context.Context, in io.Reader, out, errs io.Writer) int {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, in, out, errs, time.Second
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode()
	})
}

func TestServerFilesystem(t *testing.T) {
	main := filepath.Join(modules(t), "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	ts := task.Toolset{Name: "fs", Stdio: &task.StdioServer{Command: []string{"x"}}, TrustHints: true}
	s, err := Connect(t.Context(), Options{Toolset: ts, Sandbox: on(t, dir, "node", main, dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	has(t, strings.Join(names(t, s), " "), "fs__list_directory", "fs__read_text_file", "fs__write_file")
	has(t, use(t, s, "list_directory", `{"path":"`+dir+`"}`).Render(), "[FILE] a.txt")
	has(t, use(t, s, "read_text_file", `{"path":"`+dir+`/a.txt"}`).Render(), "hello")
	has(t, use(t, s, "read_text_file", `{"path":"/etc/passwd"}`).Render(), "Error: ", "Access denied")
	if got := named(t, s, "read_text_file").Effect; got != tool.ReadOnly {
		t.Errorf("reading is %s", got)
	}
}

// everything uses the server that has some of everything.
func everything(t *testing.T, s *Server) {
	t.Helper()
	has(t, use(t, s, "echo", `{"message":"hello"}`).Render(), "hello")
	has(t, use(t, s, "get-sum", `{"a":2,"b":3}`).Render(), "5")
	has(t, use(t, s, "get-tiny-image", `{}`).Render(), "[image image/png, ")
	has(t, use(t, s, "get-structured-content", `{"location":"Chicago"}`).Render(), "temperature")
	has(t, use(t, s, listResources, `{}`).Render(), "demo://")
	has(t, use(t, s, listPrompts, `{}`).Render(), "prompt")
	var shown []string
	result, err := named(t, s, "trigger-long-running-operation").Call(t.Context(), tool.Call{
		Args: []byte(`{"duration":2,"steps":2}`), Emit: func(text string) { shown = append(shown, text) },
	})
	if err != nil || len(shown) == 0 {
		t.Errorf("a long call: %v, %v, shown %q", result, err, shown)
	}
	has(t, result.Render(), "completed")
}

func TestServerEverything(t *testing.T) {
	main := filepath.Join(modules(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	ts := task.Toolset{Name: "all", Stdio: &task.StdioServer{Command: []string{"x"}, InSandbox: true}, Resources: true, Prompts: true}
	s, err := Connect(t.Context(), Options{Toolset: ts, Sandbox: on(t, t.TempDir(), "node", main, "stdio")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	everything(t, s)
}

// printPort makes a program of Node print the port of each server that it starts,
// because a program that is asked for port 0 may print just that.
const printPort = `
	import net from "node:net"
	const listen = net.Server.prototype.listen
	net.Server.prototype.listen = function (...args) {
		this.once("listening", () => console.error("listens on", this.address().port))
		return listen.apply(this, args)
	}`

// startOverHTTP starts the server that has some of everything on a free port and
// returns its address.
func startOverHTTP(t *testing.T) (addr string, stop func()) {
	t.Helper()
	main := filepath.Join(modules(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "node", "--import", "data:text/javascript,"+url.PathEscape(printPort), main, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT=0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	drained := make(chan struct{})
	stop = sync.OnceFunc(func() { cancel(); <-drained; _ = cmd.Wait() })
	var log strings.Builder
	for addr == "" && lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if port, ok := strings.CutPrefix(lines.Text(), "listens on "); ok {
			addr = net.JoinHostPort("127.0.0.1", port)
		}
	}
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, stderr) // a full pipe would block the server
	}()
	if addr == "" {
		stop()
		t.Fatalf("the server did not listen:\n%s", log.String())
	}
	t.Cleanup(stop)
	return addr, stop
}

func TestServerEverythingOverHTTP(t *testing.T) {
	addr, stop := startOverHTTP(t)
	var current atomic.Value
	current.Store(addr)
	var d net.Dialer
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, current.Load().(string))
	}}}
	ts := task.Toolset{Name: "all", HTTP: &task.HTTPServer{URL: "http://server.test/mcp"}, Resources: true, Prompts: true}
	s, err := Connect(t.Context(), Options{Toolset: ts, Client: client, Log: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	everything(t, s)
	stop()
	client.CloseIdleConnections() // a call over a connection that just broke is not repeated: it may have been received
	addr, _ = startOverHTTP(t)    // it knows nothing of the session
	current.Store(addr)
	has(t, use(t, s, "echo", `{"message":"again"}`).Render(), "again")
}
