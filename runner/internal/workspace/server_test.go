package workspace_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// token is what must never be seen but by the server it is for.
const token = "canary-token-0123456789"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs the git of the machine, which knows no configuration but a
// repository's, and returns what it prints.
func run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@acme.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@acme.com",
		"GIT_AUTHOR_DATE=1767225600 +0000", "GIT_COMMITTER_DATE=1767225600 +0000", "GIT_TERMINAL_PROMPT=0",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// write makes files below a directory. A name that ends in "*" is executable; a
// content of "-> x" is a link to x.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		perm := os.FileMode(0o644)
		if rest, ok := strings.CutSuffix(name, "*"); ok {
			name, perm = rest, 0o755
		}
		at := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			must(t, os.Symlink(target, at))
			continue
		}
		must(t, os.WriteFile(at, []byte(content), perm))
		must(t, os.Chmod(at, perm))
	}
}

// A server serves one bare repository by git's own http-backend, to whoever has
// the token.
type server struct {
	*httptest.Server
	repo    string // the bare repository
	work    string // a clone of it, to arrange things in
	secret  string // a directory as of a mounted Secret
	wrapper func(http.Handler) http.Handler

	mu     sync.Mutex
	asked  []string
	pushed int
}

// seed is what the repository has at first.
var seed = map[string]string{
	"README.md":      "hello\n",
	"run.sh*":        "#!/bin/sh\necho hi\n",
	"src/main.go":    "package main\n",
	"src/link":       "-> main.go",
	"out":            "-> /etc/passwd",
	".gitignore":     "*.log\n/build/\nnode_modules\n",
	"kept.log":       "tracked although ignored\n",
	"build/kept":     "tracked in a directory that is ignored\n",
	"old/gone.txt":   "to be deleted\n",
	"crlf.txt":       "a\r\nb\r\n",
	"empty":          "",
	"sp ace/ü.txt":   "names\n",
	".gitattributes": "*.md text eol=crlf filter=evil\n",
}

func serve(t testing.TB, files map[string]string) *server {
	t.Helper()
	base := t.TempDir()
	s := &server{repo: filepath.Join(base, "repo.git"), work: filepath.Join(base, "work"), secret: filepath.Join(base, "secret")}
	run(t, base, "init", "-q", "--bare", "-b", "main", "repo.git")
	run(t, s.repo, "config", "http.receivepack", "true")
	run(t, s.repo, "config", "receive.fsckObjects", "true")
	run(t, s.repo, "config", "receive.denyNonFastForwards", "true")
	run(t, base, "init", "-q", "-b", "main", "work")
	write(t, s.work, map[string]string{".git/info/attributes": "* -text -filter\n"}) // bytes as they are
	s.commit(t, files)
	write(t, s.secret, map[string]string{"username": "ann", "password": token + "\n"})

	backend := &cgi.Handler{
		Stderr: io.Discard,
		Path:   strings.TrimSpace(run(t, base, "--exec-path")) + "/git-http-backend",
		Env:    []string{"GIT_PROJECT_ROOT=" + base, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=ann", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent"},
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // CGI wants to know the length
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		s.note(r)
		handler := http.Handler(backend)
		if _, password, _ := r.BasicAuth(); password != token {
			handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				w.WriteHeader(http.StatusUnauthorized)
			})
		}
		if s.wrapper != nil {
			handler = s.wrapper(handler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) note(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.String())
	if strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		s.pushed++
	}
}

// commit pushes files to the repository, and returns the commit.
func (s *server) commit(t testing.TB, files map[string]string) string {
	t.Helper()
	write(t, s.work, files)
	run(t, s.work, "-c", "core.autocrlf=false", "add", "-A", "-f", ".")
	run(t, s.work, "commit", "-q", "--allow-empty", "-m", "change")
	run(t, s.work, "push", "-q", s.repo, "HEAD:refs/heads/main")
	return run(t, s.work, "rev-parse", "HEAD")
}

// git is how to reach the server.
func (s *server) git() *workspace.Git {
	return &workspace.Git{URL: s.URL + "/repo.git", Credentials: s.secret}
}

// A place is a workspace with its state.
type place struct {
	dir, state string
	origin     string // of those that share the workspace
	git        *workspace.Git
	logged     []string
}

func newPlace(t testing.TB, git *workspace.Git) *place {
	t.Helper()
	base := t.TempDir()
	p := &place{dir: filepath.Join(base, "workspace"), state: filepath.Join(base, "state"), git: git}
	must(t, os.Mkdir(p.dir, 0o775))
	return p
}

func (p *place) options(files ...workspace.Files) workspace.Options {
	return workspace.Options{Workspace: p.dir, State: p.state, Origin: p.origin, Git: p.git, Files: files, Log: func(s string) { p.logged = append(p.logged, s) }}
}

func (p *place) fetch(t testing.TB) {
	t.Helper()
	must(t, workspace.Fetch(t.Context(), p.options()))
}

// fetched is a workspace of a new server.
func fetched(t testing.TB) (*server, *place) {
	t.Helper()
	s := serve(t, seed)
	p := newPlace(t, s.git())
	p.fetch(t)
	return s, p
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const branch = "deckhand/fix-1"

func (p *place) publish(t testing.TB, change ...func(*workspace.PublishOptions)) (workspace.Published, error) {
	t.Helper()
	return p.publishWithin(t.Context(), t, change...)
}

func (p *place) publishWithin(ctx context.Context, t testing.TB, change ...func(*workspace.PublishOptions)) (workspace.Published, error) {
	t.Helper()
	root, err := os.OpenRoot(p.dir)
	must(t, err)
	defer root.Close()
	o := workspace.PublishOptions{
		Workspace: root, State: p.state, Origin: p.origin, Git: p.git, Branch: branch, Message: "Fix the bug",
		Author: workspace.Author{Name: "Deckhand", Email: "deckhand@acme.com", When: noon},
	}
	for _, c := range change {
		c(&o)
	}
	return workspace.Publish(ctx, o)
}

// listing is a commit on the server: mode and name of every file.
func (s *server) listing(t testing.TB, rev string) string {
	t.Helper()
	return run(t, s.repo, "-c", "core.quotePath=false", "ls-tree", "-r", "--format=%(objectmode) %(path)", rev)
}

// wantRefused asserts that an error is for a person, says these words, and holds
// no credential.
func wantRefused(t testing.TB, err error, says ...string) {
	t.Helper()
	refused, ok := err.(*workspace.RefusedError) //nolint:errorlint // it must not be wrapped: its message is shown as it is
	if !ok {
		t.Fatalf("got error %v, want a RefusedError", err)
	}
	for _, s := range says {
		if !strings.Contains(refused.Message, s) {
			t.Errorf("message %q does not say %q", refused.Message, s)
		}
	}
	clean(t, refused.Message)
}

func clean(t testing.TB, text string) {
	t.Helper()
	if strings.Contains(text, token) || strings.Contains(text, "Y2FuYXJ5") {
		t.Errorf("the credential is in %q", text)
	}
}

func unhex(t testing.TB, s string) string {
	t.Helper()
	data, err := hex.DecodeString(s)
	must(t, err)
	return string(data)
}
