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
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
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

// repository is the name of the only repository.
const repository = "app.git"

// seed are the files of its first commit. The names end in .txt, so that they are not a module of this repository.
//
//go:embed all:seed
var seed embed.FS

// createRepository makes the repository, unless it is there. Its first commit is the same
// everywhere.
func createRepository(ctx context.Context, root string) error {
	bare := filepath.Join(root, repository)
	if _, err := os.Stat(bare); err == nil {
		return nil
	}
	work, err := os.MkdirTemp(root, "planting-")
	if err != nil {
		return fmt.Errorf("planting %s: %w", repository, err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // it is not served
	if err := writeSeed(work); err != nil {
		return fmt.Errorf("planting %s: %w", repository, err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"commit", "--quiet", "--message=Tell when the water is high"},
		{"clone", "--quiet", "--bare", ".", bare},
	} {
		if _, err := git(ctx, work, args...); err != nil {
			return fmt.Errorf("planting %s: %w", repository, err)
		}
	}
	return nil
}

// writeSeed writes the files of the first commit.
func writeSeed(dir string) error {
	return fs.WalkDir(seed, "seed", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := seed.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".txt")), data, 0o644)
	})
}

// git runs git without configuration, and with a fixed author and time.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Tide", "GIT_AUTHOR_EMAIL=tide@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=Tide", "GIT_COMMITTER_EMAIL=tide@example.com", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("running git %s: %w: %s", args[0], err, failed.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("running git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
