package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A serverFixture is a server and what a client of it needs.
type serverFixture struct {
	t   *testing.T
	url string
}

func newServerFixture(t *testing.T) serverFixture {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	if err := createRepository(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	handler, err := newHandler(root, "", authorizer{user: "dev", password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return serverFixture{t, server.URL}
}

// as is the address of a path for a user.
func (s serverFixture) as(password, path string) string {
	s.t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword("dev", password), path
	return u.String()
}

func (s serverFixture) git(dir string, args ...string) string {
	s.t.Helper()
	out, err := git(s.t.Context(), dir, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// clone is a fresh copy of the repository.
func (s serverFixture) clone() string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "app")
	s.git(s.t.TempDir(), "clone", "--quiet", s.as("secret", "/app.git"), dir)
	return dir
}

func (s serverFixture) log() Log {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/log", http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var log Log
	if err := json.NewDecoder(resp.Body).Decode(&log); err != nil {
		s.t.Fatal(err)
	}
	return log
}

// passwordHash is what the log shows of a password.
func passwordHash(password string) string {
	header := "Basic " + base64.StdEncoding.EncodeToString([]byte("dev:"+password))
	return fmt.Sprintf("%x", sha256.Sum256([]byte(header)))
}

// What is pushed is there, and written down with who pushed it.
func TestPush(t *testing.T) {
	s := newServerFixture(t)
	dir := s.clone()
	first := s.git(dir, "rev-parse", "HEAD")
	s.git(dir, "checkout", "--quiet", "-b", "deckhand/fix")
	large := filepath.Join(dir, "large") // such that git sends it in chunks
	if err := os.WriteFile(large, randomBytes(3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s.git(dir, "add", "--all")
	s.git(dir, "commit", "--quiet", "--message=Fix it")
	s.git(dir, "push", "--quiet", "origin", "deckhand/fix")
	second := s.git(dir, "rev-parse", "HEAD")
	s.git(dir, "push", "--quiet", "origin", ":deckhand/fix")
	want := []Push{
		{Repository: "app.git", Ref: "refs/heads/deckhand/fix", New: second},
		{Repository: "app.git", Ref: "refs/heads/deckhand/fix", Old: second},
	}
	log := s.log()
	if diff := cmp.Diff(want, log.Pushes); diff != "" {
		t.Errorf("pushes -want +got:\n%s", diff)
	}
	if len(log.Authorizations) != 1 || log.Authorizations[0].SHA256 != passwordHash("secret") || !log.Authorizations[0].Accepted {
		t.Errorf("authorizations are %+v", log.Authorizations)
	}
	if again := s.clone(); s.git(again, "rev-parse", "HEAD") != first {
		t.Error("main moved")
	}
}

// randomBytes are bytes that do not compress.
func randomBytes(n int) []byte {
	var data []byte
	for i := 0; len(data) < n; i++ {
		passwordHash := sha256.Sum256(fmt.Append(nil, i))
		data = append(data, passwordHash[:]...)
	}
	return data
}

// Whoever has no password gets nothing, and is written down.
func TestRefused(t *testing.T) {
	s := newServerFixture(t)
	for _, address := range []string{s.url + "/app.git", s.as("guess", "/app.git")} {
		if _, err := git(t.Context(), t.TempDir(), "clone", "--quiet", address, "app"); err == nil {
			t.Errorf("%s was cloned", address)
		}
	}
	log := s.log()
	if log.Refused < 2 {
		t.Errorf("%d requests were refused", log.Refused)
	}
	if len(log.Authorizations) != 1 || log.Authorizations[0].SHA256 != passwordHash("guess") || log.Authorizations[0].Accepted {
		t.Errorf("authorizations are %+v", log.Authorizations)
	}
}

// What moved is found again by those who follow.
func TestMoved(t *testing.T) {
	s := newServerFixture(t)
	s.git(t.TempDir(), "clone", "--quiet", s.as("secret", "/moved/app.git"), "app")
	if log := s.log(); log.Moved == 0 {
		t.Error("nobody was sent elsewhere")
	}
}

func TestPathsThatAreNone(t *testing.T) {
	s := newServerFixture(t)
	for _, path := range []string{"/none.git/info/refs?service=git-upload-pack", "/app.git/../../etc/passwd", "/"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("dev", "secret")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", path, resp.Status)
		}
	}
}

// The first commit is the same everywhere, fails its test, and is easily mended.
func TestSeed(t *testing.T) {
	s := newServerFixture(t)
	dir := s.clone()
	if got, want := s.git(dir, "rev-parse", "HEAD"), firstCommit; got != want {
		t.Errorf("the first commit is %s, want %s", got, want)
	}
	if out, err := test(t, dir); err == nil || !strings.Contains(out, "Next(14, 5) = -9, want 3") {
		t.Errorf("its test ends with %v:\n%s", err, out)
	}
	file := filepath.Join(dir, "tide.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mended := strings.Replace(string(source), "return (high - hour) % 12", "return ((high-hour)%12 + 12) % 12", 1)
	if err := os.WriteFile(file, []byte(mended), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := test(t, dir); err != nil {
		t.Errorf("mended, its test ends with %v:\n%s", err, out)
	}
}

// firstCommit is what main is.
const firstCommit = "edddb773a07403f0f3d3d3961e949c1b93c294f1"

func test(t *testing.T, dir string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestInstall(t *testing.T) {
	target := filepath.Join(t.TempDir(), "gitserver")
	if err := install(target); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode()&0o111 != 0o111 || info.Size() == 0 {
		t.Errorf("it is %v, %v", info, err)
	}
}

func TestNoPasswordNoServer(t *testing.T) {
	t.Setenv("GIT_USER", "dev")
	t.Setenv("GIT_PASSWORD", "")
	if err := run(t.Context(), "127.0.0.1:0", t.TempDir()); err == nil || !strings.Contains(err.Error(), "GIT_PASSWORD") {
		t.Errorf("error is %v", err)
	}
}
