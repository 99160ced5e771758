// Command modelserver plays a script in the place of model providers, over the
// wires of chat completions (POST …/chat/completions) and of Messages (POST
// …/messages), and serves pages in the place of whatever else an agent reaches.
//
//	modelserver --listen :8080 --script /etc/modelserver/script.json --pages /etc/modelserver/pages.json
//
// Without --script the script is read from the environment, MODELSERVER_SCRIPT,
// and without --pages the pages from MODELSERVER_PAGES. The format of a script is
// modeltest.Script, docs of its fields are there; a model may have variants. That
// of pages is an object of Page by pattern of net/http.ServeMux, such as
// "POST hooks/veto" or "/reports/1".
//
// At /mcp is an MCP server of a harbor's berths, for whoever shows the script's key
// as a bearer token.
//
// GET /journal is what it was asked, oldest first; see Entry. POST /count?id=x
// counts an effect, at once even when &delayMS=500 holds the answer back, and
// GET /counts is how often each was counted.
//
// The first line that it prints is its address, so that --listen 127.0.0.1:0 chooses a free port.
//
// With --ask http://host/v1 it serves nothing: it asks a model there once, prints the answer and
// exits, as a pod does that a Run is compared with.
//
// It is a collector of OpenTelemetry, too: GET /traces?attributes=gen_ai.agent.name
// prints the spans that it was sent as trees, with the values of some attributes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/internal/testing/otlptest"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// Variables with the script and the pages, for a server without files.
const (
	envScript = "MODELSERVER_SCRIPT"
	envPages  = "MODELSERVER_PAGES"
)

// grace is how long answers may take to end after SIGTERM.
const grace = 2 * time.Second

func main() {
	listen := flag.String("listen", ":8080", "the address to listen on")
	script := flag.String("script", "", "the file of the script; empty: the variable "+envScript)
	pages := flag.String("pages", "", "the file of the pages; empty: the variable "+envPages)
	endpoint := flag.String("ask", "", "an endpoint whose model is asked once, in place of serving")
	flag.Parse()
	if err := run(*listen, *script, *pages, *endpoint); err != nil {
		fmt.Fprintln(os.Stderr, "modelserver:", err)
		os.Exit(1)
	}
}

// run prints its address and serves until SIGTERM, or asks once.
func run(listen, scriptPath, pagesPath, endpoint string) error {
	if endpoint != "" {
		return ask(context.Background(), endpoint)
	}
	handler, err := load(scriptPath, pagesPath)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // an idle fault never ends by itself
		}
	})
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// load reads the script and the pages.
func load(scriptPath, pagesPath string) (http.Handler, error) {
	data, err := source(scriptPath, envScript)
	if err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	script, err := modeltest.Parse(data)
	if err != nil {
		return nil, err
	}
	if data, err = source(pagesPath, envPages); err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	pages, err := parsePages(data)
	if err != nil {
		return nil, err
	}
	chat := variantsOf(slices.Collect(maps.Keys(script.Models))).choose(modeltest.NewServer(script))
	return newHandler(chat, newMCP(script.Key), pages), nil
}

// source returns the content of a file, or without a path the value of an environment variable.
func source(path, variable string) ([]byte, error) {
	if path == "" {
		return []byte(os.Getenv(variable)), nil
	}
	return os.ReadFile(path)
}

// newHandler returns the handler of the server: pages first, then an MCP server, and two APIs of models over one
// script.
func newHandler(chat, tools http.Handler, pages *http.ServeMux) http.Handler {
	asked, effects, collector := &journal{entries: []Entry{}}, &counter{counts: map[string]int{}}, &otlptest.Collector{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /healthz":
			fmt.Fprintln(w, "ok")
			return
		case "GET /journal":
			asked.ServeHTTP(w, r)
			return
		case "POST /count":
			effects.add(w, r)
			return
		case "GET /counts":
			effects.list(w, r)
			return
		case "POST /v1/traces", "POST /v1/metrics":
			collector.ServeHTTP(w, r)
			return
		case "GET /traces":
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, collector.Tree(r.URL.Query()["attributes"]...)) //nolint:gosec // plain text, for tests
			return
		}
		asked.record(r)
		if page, pattern := pages.Handler(r); pattern != "" {
			page.ServeHTTP(w, r)
			return
		}
		if r.URL.Path == "/mcp" {
			tools.ServeHTTP(w, r)
			return
		}
		normalizeKey(r)
		if strings.HasSuffix(r.URL.Path, "/messages") && r.Method == http.MethodPost {
			messages(w, r, chat)
			return
		}
		chat.ServeHTTP(w, r)
	})
}

// normalizeKey copies the API key from the header of the provider to the header that scripts read.
func normalizeKey(r *http.Request) {
	for _, name := range []string{"Api-Key", "X-Api-Key"} {
		if key := r.Header.Get(name); key != "" && r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
	}
}

// errRefused means that a model server did not answer.
var errRefused = errors.New("the model server refused the request")

// ask asks a model at an endpoint once, and prints the answer as the server wrote it.
func ask(ctx context.Context, endpoint string) error {
	body := strings.NewReader(`{"model":"trivial","messages":[{"role":"user","content":"Say it."}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/chat/completions", body)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: HTTP %s", errRefused, res.Status)
	}
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}
