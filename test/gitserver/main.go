// Command gitserver is a git server for tests: smart HTTP with a user and a
// password, and one small repository, app.git, whose branch main is a Go module
// with a test that fails.
//
//	GIT_USER=dev GIT_PASSWORD=… gitserver --listen :8080 --root /srv
//
// It checks credentials and calls `git http-backend`, so it needs a git. Its own image has none: `gitserver --install
// FILE` copies the program to where a container of an image with git can start it.
//
// GET /log returns a Log. A path below /moved/ is answered with a redirect to the same path below GIT_MOVED_TO, for
// clients that must not follow one.
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
)

// grace is how long answers may take to end after SIGTERM.
const grace = 2 * time.Second

func main() {
	listen := flag.String("listen", ":8080", "the address to listen on")
	root := flag.String("root", "/srv", "the `folder` of repositories")
	target := flag.String("install", "", "copy this program to a `file`, and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	work := func() error { return run(ctx, *listen, *root) }
	if *target != "" {
		work = func() error { return install(*target) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "gitserver:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, listen, root string) error {
	authorizer := authorizer{user: os.Getenv("GIT_USER"), password: os.Getenv("GIT_PASSWORD")}
	if authorizer.user == "" || authorizer.password == "" {
		return errors.New("set GIT_USER and GIT_PASSWORD: a server without them would show nothing")
	}
	if err := createRepository(ctx, root); err != nil {
		return err
	}
	handler, err := newHandler(root, os.Getenv("GIT_MOVED_TO"), authorizer)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		_ = server.Shutdown(ctx) // what is still open ends with the program
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// install copies this program to target.
func install(target string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	if err := os.WriteFile(target, data, 0o755); err != nil { //nolint:gosec // where to is the question
		return fmt.Errorf("installing this program: %w", err)
	}
	return nil
}
