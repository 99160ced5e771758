package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi" //nolint:gosec // Go 1.6 is long ago
	"os/exec"
	"path/filepath"
	"slices"
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

// maxEntries bounds each list of a Log.
const maxEntries = 1000

// A Log is the requests that the server has answered.
type Log struct {
	// Pushes are the references that changed, oldest first.
	Pushes []Push `json:"pushes"`
	// Authorizations are the different Authorization headers of all requests, oldest first,
	// also of requests that did not need one.
	Authorizations []Authorization `json:"authorizations"`
	// Refused is how many requests were answered 401.
	Refused int `json:"refused"`
	// Moved is how many requests were answered with a redirect.
	Moved int `json:"moved"`
}

// A Push is a reference that changed. Old or New is empty when there was none.
type Push struct {
	Repository string `json:"repository"`
	Ref        string `json:"ref"`
	Old        string `json:"old"`
	New        string `json:"new"`
}

// An Authorization is an Authorization header by its hash: its value is stored nowhere.
type Authorization struct {
	SHA256   string `json:"sha256"`
	Accepted bool   `json:"accepted"`
	Requests int    `json:"requests"`
}

// A record keeps a Log.
type record struct {
	mu  sync.Mutex
	log Log
}

func newRecord() *record {
	return &record{log: Log{Pushes: []Push{}, Authorizations: []Authorization{}}}
}

// saw counts an Authorization header; an empty one is not counted.
func (r *record) saw(header string, accepted bool) {
	if header == "" {
		return
	}
	passwordHash := fmt.Sprintf("%x", sha256.Sum256([]byte(header)))
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.log.Authorizations, func(a Authorization) bool { return a.SHA256 == passwordHash })
	if at < 0 && len(r.log.Authorizations) == maxEntries {
		return
	}
	if at < 0 {
		at = len(r.log.Authorizations)
		r.log.Authorizations = append(r.log.Authorizations, Authorization{SHA256: passwordHash, Accepted: accepted})
	}
	r.log.Authorizations[at].Requests++
}

func (r *record) refused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Refused++
}

func (r *record) moved() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Moved++
}

// pushed compares the references of a repository before and after.
func (r *record) pushed(name string, before, after map[string]string) {
	var pushes []Push
	for ref, passwordHash := range after {
		if before[ref] != passwordHash {
			pushes = append(pushes, Push{Repository: name, Ref: ref, Old: before[ref], New: passwordHash})
		}
	}
	for ref, passwordHash := range before {
		if after[ref] == "" {
			pushes = append(pushes, Push{Repository: name, Ref: ref, Old: passwordHash})
		}
	}
	slices.SortFunc(pushes, func(a, b Push) int { return cmp.Compare(a.Ref, b.Ref) })
	r.mu.Lock()
	defer r.mu.Unlock()
	free := maxEntries - len(r.log.Pushes)
	r.log.Pushes = append(r.log.Pushes, pushes[:min(free, len(pushes))]...)
}

// ServeHTTP answers with the Log.
func (r *record) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(r.log) // the client went away
}
