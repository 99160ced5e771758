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
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

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
