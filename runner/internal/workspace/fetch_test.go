package workspace_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

func TestFetchMakesAnOrdinaryClone(t *testing.T) {
	s, p := fetched(t)
	if got := run(t, p.dir, "status", "--porcelain"); got != "" {
		t.Errorf("git status says %q, want a clean tree", got)
	}
	run(t, p.dir, "fsck", "--strict")
	if got := run(t, p.dir, "rev-parse", "--abbrev-ref", "HEAD", "origin/main"); got != "main\norigin/main" {
		t.Errorf("branches %q", got)
	}
	if got, want := run(t, p.dir, "rev-parse", "HEAD"), run(t, s.repo, "rev-parse", "main"); got != want {
		t.Errorf("commit %s, want %s", got, want)
	}
	if got := run(t, p.dir, "config", "remote.origin.url"); got != s.URL+"/repo.git" {
		t.Errorf("origin is %q", got)
	}
	for name, want := range seed {
		name, _ = strings.CutSuffix(name, "*")
		if target, ok := strings.CutPrefix(want, "-> "); ok {
			got, err := os.Readlink(filepath.Join(p.dir, name))
			if err != nil || got != target {
				t.Errorf("link %s leads to %q (error %v), want %q", name, got, err, target)
			}
			continue
		}
		got, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q (error %v), want %q", name, got, err, want)
		}
	}
	run(t, p.dir, "commit", "-q", "--allow-empty", "-m", "the model's own") // it has a history to build on
}

func TestFetchedFilesAreTheGroupsToo(t *testing.T) {
	_, p := fetched(t)
	err := filepath.WalkDir(p.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == p.dir || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode()&0o020 == 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return err
	})
	must(t, err)
	if info, err := os.Stat(filepath.Join(p.dir, "run.sh")); err != nil || info.Mode().Perm() != 0o775 {
		t.Errorf("run.sh: %v, %v", info.Mode(), err)
	}
}

func TestNothingOfTheCredentialIsLeft(t *testing.T) {
	_, p := fetched(t)
	for _, dir := range []string{p.dir, p.state} {
		must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(name)
			clean(t, string(data))
			return err
		}))
	}
	clean(t, strings.Join(p.logged, "\n"))
}

func TestRevisions(t *testing.T) {
	s := serve(t, seed)
	first := run(t, s.repo, "rev-parse", "main")
	second := s.commit(t, map[string]string{"README.md": "second\n"})
	inner := s.commit(t, map[string]string{"README.md": "inner\n"})
	third := s.commit(t, map[string]string{"README.md": "third\n"})
	run(t, s.repo, "branch", "feature/x", second)
	run(t, s.repo, "tag", "light", first)
	run(t, s.repo, "tag", "-a", "-m", "a tag", "v1.0", second)
	run(t, s.repo, "tag", "feature/x", first) // the branch goes first
	side := run(t, s.repo, "commit-tree", "-p", first, "-m", "on no branch", first+"^{tree}")
	run(t, s.repo, "update-ref", "refs/pull/1/head", side)
	cases := map[string]struct {
		revision string
		depth    int
		commit   string
		branch   string
		history  string // how many commits
	}{
		"none is the default branch":             {"", 0, third, "main", "4"},
		"a branch":                               {"feature/x", 0, second, "feature/x", "2"},
		"a branch by its whole name":             {"refs/heads/feature/x", 0, second, "feature/x", "2"},
		"a tag":                                  {"light", 0, first, "HEAD", "1"},
		"a tag with a message":                   {"v1.0", 0, second, "HEAD", "2"},
		"a commit":                               {second, 0, second, "HEAD", "2"},
		"a commit in capitals":                   {strings.ToUpper(second), 0, second, "HEAD", "2"},
		"the beginning of a commit":              {second[:7], 0, second, "HEAD", "2"},
		"the beginning, of odd length":           {second[:11], 0, second, "HEAD", "2"},
		"a ref that is neither":                  {"refs/pull/1/head", 0, side, "HEAD", "2"},
		"one commit of the default branch":       {"", 1, third, "main", "1"},
		"two commits of it":                      {"", 2, third, "main", "2"},
		"one commit of a tag":                    {"v1.0", 1, second, "HEAD", "1"},
		"one commit that is a tip":               {third, 1, third, "HEAD", "1"},
		"a depth that the server has no way for": {inner, 1, inner, "HEAD", "3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := s.git()
			g.Revision, g.Depth = tc.revision, tc.depth
			p := newPlace(t, g)
			p.fetch(t)
			got := run(t, p.dir, "rev-parse", "HEAD") + " " + run(t, p.dir, "rev-parse", "--abbrev-ref", "HEAD") + " " + run(t, p.dir, "rev-list", "--count", "HEAD")
			if want := tc.commit + " " + tc.branch + " " + tc.history; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if got := run(t, p.dir, "status", "--porcelain"); got != "" {
				t.Errorf("git status says %q", got)
			}
			run(t, p.dir, "fsck")
		})
	}
}

func TestACommitThatIsOnNoBranch(t *testing.T) {
	s := serve(t, seed)
	first := run(t, s.repo, "rev-parse", "main")
	hidden := run(t, s.repo, "commit-tree", "-p", first, "-m", "hidden", first+"^{tree}")
	run(t, s.repo, "config", "uploadpack.allowAnySHA1InWant", "true")
	g := s.git()
	g.Revision, g.Depth = hidden, 1
	p := newPlace(t, g)
	p.fetch(t)
	if got := run(t, p.dir, "rev-list", "HEAD"); got != hidden {
		t.Errorf("history %s, want %s alone", got, hidden)
	}
	g.Revision = strings.Repeat("a", 40)
	wantRefused(t, workspace.Fetch(t.Context(), newPlace(t, g).options()), "The git server refuses", "not our ref")
}

func TestFetchIsRefused(t *testing.T) {
	s := serve(t, seed)
	blob := run(t, s.repo, "rev-parse", "main:README.md")
	run(t, s.repo, "tag", "thing", blob)
	cases := map[string]struct {
		change func(*testing.T, *workspace.Git)
		says   string
	}{
		"a branch that is not there":                  {func(_ *testing.T, g *workspace.Git) { g.Revision = "nope" }, `no branch, tag or commit "nope". Its branches are: main.`},
		"a commit that is not there":                  {func(_ *testing.T, g *workspace.Git) { g.Revision = strings.Repeat("a", 40) }, "no commit aaaa"},
		"the beginning of a commit that is not there": {func(_ *testing.T, g *workspace.Git) { g.Revision = "aaaaa" }, `"aaaaa"`},
		"a tag of a file":                             {func(_ *testing.T, g *workspace.Git) { g.Revision = "thing" }, "is a blob, not a commit"},
		"no credentials":                              {func(_ *testing.T, g *workspace.Git) { g.Credentials = "" }, "asks for credentials"},
		"a wrong token": {func(t *testing.T, g *workspace.Git) {
			g.Credentials = t.TempDir()
			write(t, g.Credentials, map[string]string{"password": "wrong-wrong"})
		}, "does not accept the credentials"},
		"a Secret without a password":    {func(t *testing.T, g *workspace.Git) { g.Credentials = t.TempDir() }, `has no key "password"`},
		"a repository that is not there": {func(_ *testing.T, g *workspace.Git) { g.URL += "x" }, "no repository at"},
		"a page that is no repository":   {func(_ *testing.T, g *workspace.Git) { g.URL = strings.Replace(g.URL, "/repo.git", "/page", 1) }, "is no git server"},
		"file://":                        {func(_ *testing.T, g *workspace.Git) { g.URL = "file://" + s.repo }, `begins with "file", which is not allowed: use https://`},
		"git://":                         {func(_ *testing.T, g *workspace.Git) { g.URL = "git://host/repo" }, `begins with "git"`},
		"a helper of git":                {func(_ *testing.T, g *workspace.Git) { g.URL = "ext::sh -c date" }, "a space"},
		"a path":                         {func(_ *testing.T, g *workspace.Git) { g.URL = s.repo }, "names no scheme"},
		"a password in the URL":          {func(_ *testing.T, g *workspace.Git) { g.URL = "https://ann:" + token + "@host/repo" }, "has a password in it"},
		"ssh without a Secret":           {func(_ *testing.T, g *workspace.Git) { g.URL, g.Credentials = "git@host:repo", "" }, "ssh-privatekey"},
		"an ssh path that is an option":  {func(_ *testing.T, g *workspace.Git) { g.URL = "git@host:--upload-pack=date" }, "is an option"},
		"a CA bundle that is none":       {func(_ *testing.T, g *workspace.Git) { g.CABundle = []byte("x") }, "CA bundle"},
	}
	s.wrapper = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/page") {
				_, _ = w.Write([]byte("<html>"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := s.git()
			tc.change(t, g)
			p := newPlace(t, g)
			wantRefused(t, workspace.Fetch(t.Context(), p.options()), tc.says)
			clean(t, strings.Join(p.logged, "\n"))
		})
	}
}

// A fault that a later request cannot get over ends the attempts at once; another one is
// tried again.
func TestWhichFaultsOfAServerArePermanent(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "the cause", code) }
	}
	refs := func(lines string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000"+lines)
		}
	}
	for name, tc := range map[string]struct {
		answer    http.HandlerFunc
		permanent bool
		says      string
	}{
		"an error in place of the refs":         {refs("001aERR access denied, ann"), true, "The git server refuses: access denied, ann."},
		"another error in place of the refs":    {refs("0018ERR project archived"), true, "The git server refuses: project archived."},
		"refs that are cut":                     {refs("003f"), false, "reading the refs"},
		"a request that the server cannot read": {status(http.StatusBadRequest), true, "400 Bad Request the cause"},
		"a method that it does not allow":       {status(http.StatusMethodNotAllowed), true, "405"},
		"a proxy that asks for credentials":     {status(http.StatusProxyAuthRequired), true, "407"},
		"a repository that it may not show":     {status(http.StatusUnavailableForLegalReasons), true, "451"},
		"a service that it does not have":       {status(http.StatusNotImplemented), true, "501"},
		"a request that took too long":          {status(http.StatusRequestTimeout), false, "408"},
		"a repository that is locked":           {status(http.StatusLocked), false, "423"},
		"too many requests":                     {status(http.StatusTooManyRequests), false, "429"},
		"an error of the server":                {status(http.StatusInternalServerError), false, "500"},
		"a gateway without its server":          {status(http.StatusBadGateway), false, "502"},
		"a server that is not available":        {status(http.StatusServiceUnavailable), false, "503"},
		"a server that ends the connection":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "reaching"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			err := workspace.Fetch(t.Context(), newPlace(t, &workspace.Git{URL: server.URL + "/x.git"}).options())
			permanentIs(t, err, tc.permanent, tc.says)
		})
	}
}

// A server and TLS that do not fit each other never will.
func TestWhichFaultsOfTLSArePermanent(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	asks := httptest.NewUnstartedServer(http.NotFoundHandler())
	asks.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	asks.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	asks.StartTLS()
	defer asks.Close()
	speaks := func(first string) string {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 1))
				_, _ = io.WriteString(conn, first)
				conn.Close()
			}
		}()
		return "https://" + listener.Addr().String()
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: asks.Certificate().Raw})
	for name, tc := range map[string]struct {
		url       string
		permanent bool
		says      string
	}{
		"a server without TLS":                 {strings.Replace(plain.URL, "http:", "https:", 1), true, "without TLS"},
		"a server of another protocol":         {speaks("SSH-2.0-x\r\nsome more\r\n"), true, "cannot be reached by TLS"},
		"a server that asks for a certificate": {asks.URL, true, "cannot be reached by TLS"},
		"an alert that no name is known":       {speaks("\x15\x03\x03\x00\x02\x02\x70"), true, "unrecognized name"},
		"an alert of an internal error":        {speaks("\x15\x03\x03\x00\x02\x02\x50"), false, "internal error"},
		"a server that ends the handshake":     {speaks(""), false, "reaching"},
	} {
		t.Run(name, func(t *testing.T) {
			err := workspace.Fetch(t.Context(), newPlace(t, &workspace.Git{URL: tc.url + "/x.git", CABundle: ca}).options())
			permanentIs(t, err, tc.permanent, tc.says)
		})
	}
}

// permanentIs checks whether an error is a RefusedError, which is not tried again.
func permanentIs(t *testing.T, err error, permanent bool, says string) {
	t.Helper()
	_, refused := errors.AsType[*workspace.RefusedError](err)
	if err == nil || refused != permanent || !strings.Contains(err.Error(), says) {
		t.Errorf("permanent %v: %v, want %v and %q", refused, err, permanent, says)
	}
}

func TestAnEmptyRepositoryIsRefused(t *testing.T) {
	s := serve(t, seed)
	run(t, s.repo, "update-ref", "-d", "refs/heads/main")
	wantRefused(t, workspace.Fetch(t.Context(), newPlace(t, s.git()).options()), "is empty: push a first commit")
}

func TestALaterAttemptOverwritesNothing(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"README.md": "the model's work"})
	must(t, os.RemoveAll(filepath.Join(p.dir, ".git")))
	s.commit(t, map[string]string{"README.md": "news"})
	before := len(s.asked)
	p.fetch(t)
	if got, _ := os.ReadFile(filepath.Join(p.dir, "README.md")); string(got) != "the model's work" {
		t.Errorf("README.md is %q", got)
	}
	if len(s.asked) != before {
		t.Errorf("the server was asked: %v", s.asked[before:])
	}
}

func TestAHalfDoneFetchIsThrownAway(t *testing.T) {
	s := serve(t, seed)
	p := newPlace(t, s.git())
	broken := true
	s.wrapper = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken && r.Method == http.MethodPost {
				w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				_, _ = w.Write([]byte("0008NAK\n0013\x01PACK\x00\x00\x00\x02\x00\x00\x00"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	err := workspace.Fetch(t.Context(), p.options())
	if _, refused := errors.AsType[*workspace.RefusedError](err); err == nil || refused {
		t.Fatalf("got error %v, want one that may pass", err)
	}
	write(t, p.dir, map[string]string{".deckhand-fetch/README.md": "half", ".deckhand-fetch/left": "half"})
	broken = false
	p.fetch(t)
	if got := run(t, p.dir, "status", "--porcelain"); got != "" {
		t.Errorf("git status says %q", got)
	}
	if _, err := os.Lstat(filepath.Join(p.dir, ".deckhand-fetch")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was half done is left: %v", err)
	}
}

// What was staged when the process died is moved on, wherever it was cut off.
func TestAMoveThatWasCutOffGoesOn(t *testing.T) {
	s, p := fetched(t)
	record := filepath.Join(p.state, "workspace", "fetched.json")
	data, err := os.ReadFile(record)
	must(t, err)
	must(t, os.WriteFile(record, []byte(strings.Replace(string(data), `"Done"`, `"Staged"`, 1)), 0o600))
	must(t, os.Mkdir(filepath.Join(p.dir, ".deckhand-fetch"), 0o755))
	for _, name := range []string{".git", "src", "README.md"} {
		must(t, os.Rename(filepath.Join(p.dir, name), filepath.Join(p.dir, ".deckhand-fetch", name)))
	}
	before := len(s.asked)
	p.fetch(t)
	if got := run(t, p.dir, "status", "--porcelain"); got != "" || len(s.asked) != before {
		t.Errorf("git status says %q, the server was asked %v", got, s.asked[before:])
	}
}

func TestAWorkspaceWithOtherFilesIsNotTouched(t *testing.T) {
	s := serve(t, seed)
	p := newPlace(t, s.git())
	write(t, p.dir, map[string]string{"README.md": "somebody's"})
	wantRefused(t, workspace.Fetch(t.Context(), p.options()), `has "README.md" already`)
	if got, _ := os.ReadFile(filepath.Join(p.dir, "README.md")); string(got) != "somebody's" {
		t.Errorf("README.md is %q", got)
	}
}

func TestARepositoryWithASubmodule(t *testing.T) {
	s := serve(t, seed)
	run(t, s.work, "update-index", "--add", "--cacheinfo", "160000,"+run(t, s.repo, "rev-parse", "main")+",lib/sub")
	run(t, s.work, "commit", "-q", "-m", "submodule")
	run(t, s.work, "push", "-q", s.repo, "HEAD:refs/heads/main")
	p := newPlace(t, s.git())
	p.fetch(t)
	if !strings.Contains(strings.Join(p.logged, "\n"), "submodule lib/sub is not fetched") {
		t.Errorf("logged %q", p.logged)
	}
	write(t, p.dir, map[string]string{"lib/sub/inside": "x", "new": "y"})
	got, err := p.publish(t)
	must(t, err)
	if diff := run(t, s.repo, "diff", "--name-status", "main", got.Commit); diff != "A\tnew" {
		t.Errorf("published %q, want the new file alone", diff)
	}
}

func TestARepositoryWithANameThatGitForbids(t *testing.T) {
	s := serve(t, seed)
	inner := unhex(t, run(t, s.repo, "rev-parse", "main:src"))
	tree := filepath.Join(t.TempDir(), "tree")
	for _, name := range []string{".git", "..", ".GIT", "git~1"} {
		must(t, os.WriteFile(tree, []byte("40000 "+name+"\x00"+inner), 0o600))
		outer := run(t, s.repo, "hash-object", "-t", "tree", "-w", "--literally", tree)
		commit := run(t, s.repo, "commit-tree", "-m", "evil", outer)
		run(t, s.repo, "update-ref", "refs/heads/main", commit)
		wantRefused(t, workspace.Fetch(t.Context(), newPlace(t, s.git()).options()), "which git does not allow")
	}
}

func TestACertificateOfOnesOwnIsTrustedByItsBundle(t *testing.T) {
	s := serve(t, seed)
	secure := httptest.NewUnstartedServer(s.Config.Handler)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // the clients refuse the server, as they should
	secure.StartTLS()
	defer secure.Close()
	g := s.git()
	g.URL = secure.URL + "/repo.git"
	wantRefused(t, workspace.Fetch(t.Context(), newPlace(t, g).options()), "has a certificate that is not trusted", "name that as the CA bundle")
	g.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	p := newPlace(t, g)
	p.fetch(t)
	write(t, p.dir, map[string]string{"work": "done"})
	_, err := p.publish(t)
	must(t, err)
}
