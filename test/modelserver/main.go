// Command modelserver plays a script over the wire of chat completions, in the
// place of a model provider.
//
//	modelserver --listen :8080 --script /etc/modelserver/script.json
//
// Without --script the script is read from the environment, MODELSERVER_SCRIPT.
// The format is modeltest.Script; docs of its fields are there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// envScript holds the script where no file is named.
const envScript = "MODELSERVER_SCRIPT"

// grace is how long open answers may go on after SIGTERM.
const grace = 2 * time.Second

func main() {
	listen := flag.String("listen", ":8080", "the address to listen on")
	script := flag.String("script", "", "the file of the script; empty: the variable "+envScript)
	flag.Parse()
	if err := run(*listen, *script); err != nil {
		fmt.Fprintln(os.Stderr, "modelserver:", err)
		os.Exit(1)
	}
}

// run serves until SIGTERM.
func run(listen, path string) error {
	data := []byte(os.Getenv(envScript))
	if path != "" {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("reading the script: %w", err)
		}
	}
	script, err := modeltest.Parse(data)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := &http.Server{Addr: listen, Handler: modeltest.NewServer(script), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // an idle fault never ends by itself
		}
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
