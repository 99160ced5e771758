package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi" //nolint:gosec // Go 1.6 is long ago
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// maxBody is how much a client may send at once.
const maxBody = 64 << 20

// An authorizer accepts the requests of one user.
type authorizer struct {
	user     string
	password string
}

// opens reports whether a request has the right user and password.
func (a authorizer) opens(r *http.Request) bool {
	user, password, _ := r.BasicAuth()
	right := subtle.ConstantTimeCompare([]byte(user), []byte(a.user)) & subtle.ConstantTimeCompare([]byte(password), []byte(a.password))
	return right == 1
}

// A server serves git to authorized requests.
type server struct {
	authorizer authorizer
	root       string
	record     *record
	git        http.Handler
	one        sync.Mutex // push at a time, so that it is known whose it was
}

// newHandler returns a handler for the repositories of a folder and for the Log.
func newHandler(root, movedTo string, d authorizer) (http.Handler, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("finding git: %w", err)
	}
	s := &server{authorizer: d, root: root, record: newRecord(), git: &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: root,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root, "REMOTE_USER=" + d.user},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /log", s.record)
	mux.HandleFunc("/moved/", func(w http.ResponseWriter, r *http.Request) {
		s.record.saw(r.Header.Get("Authorization"), false)
		s.record.moved()
		http.Redirect(w, r, movedTo+strings.TrimPrefix(r.URL.RequestURI(), "/moved"), http.StatusTemporaryRedirect) //nolint:gosec // to lead away is the purpose
	})
	mux.HandleFunc("/{repository}/", s.serve)
	return mux, nil
}

// serve passes an authorized request to git.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	open := s.authorizer.opens(r)
	s.record.saw(r.Header.Get("Authorization"), open)
	if !open {
		s.record.refused()
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "wrong user or password", http.StatusUnauthorized)
		return
	}
	// CGI wants to know how long a body is before it comes.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	r.Header.Del("Authorization") // git has no use for it
	if !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		s.git.ServeHTTP(w, r)
		return
	}
	s.one.Lock()
	defer s.one.Unlock()
	name := r.PathValue("repository")
	before := s.refs(r.Context(), name)
	s.git.ServeHTTP(w, r)
	s.record.pushed(name, before, s.refs(context.WithoutCancel(r.Context()), name)) // also when the client went away
}

// refs returns the references of a repository. A repository that does not exist has none.
func (s *server) refs(ctx context.Context, name string) map[string]string {
	refs := map[string]string{}
	out, err := git(ctx, filepath.Join(s.root, filepath.Base(name)), "for-each-ref", "--format=%(refname) %(objectname)")
	if err != nil {
		return refs
	}
	for line := range strings.Lines(out) {
		ref, passwordHash, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[ref] = passwordHash
	}
	return refs
}
