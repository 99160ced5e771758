package workspace_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// outsideSecret is the content of a file that the workspace may not reach.
const outsideSecret = "root:x:0:0: what lies outside"

// A trap is what an attacker has prepared outside of the workspace: a server, a
// program, and a file to get at. None of them may come into play.
type trap struct {
	*httptest.Server
	program string // leaves a mark when it is run
	secret  string // a file outside of the workspace
	mark    string

	mu   sync.Mutex
	seen []string
}

func newTrap(t *testing.T) *trap {
	t.Helper()
	dir := t.TempDir()
	c := &trap{program: filepath.Join(dir, "program"), secret: filepath.Join(dir, "outside", "secret"), mark: filepath.Join(dir, "mark")}
	write(t, dir, map[string]string{"program*": "#!/bin/sh\ntouch " + c.mark + "\ncat\n", "outside/secret": outsideSecret})
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen = append(c.seen, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header))
	}))
	t.Cleanup(func() {
		c.Close()
		c.unsprung(t)
	})
	return c
}

func (c *trap) unsprung(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) > 0 {
		t.Errorf("the attacker's server was asked: %v", c.seen)
	}
	if _, err := os.Stat(c.mark); err == nil {
		t.Error("the attacker's program was run")
	}
}

// withhold asserts that the secret is in no object of the server.
func (s *server) withhold(t *testing.T) {
	t.Helper()
	if all := run(t, s.repo, "cat-file", "--batch-all-objects", "--batch"); strings.Contains(all, outsideSecret) {
		t.Error("the server has what lies outside of the workspace")
	}
}

// configs are what a hostile .git/config has, with %s for a program and %u for
// a server.
var configs = map[string]string{
	"core.fsmonitor":         "[core]\n\tfsmonitor = %s\n",
	"core.sshCommand":        "[core]\n\tsshCommand = %s\n[remote \"origin\"]\n\turl = ssh://git@host/repo.git\n",
	"core.hooksPath":         "[core]\n\thooksPath = hooks\n",
	"core.gitProxy":          "[core]\n\tgitProxy = %s\n",
	"core.editor":            "[core]\n\teditor = %s\n",
	"core.attributesFile":    "[core]\n\tattributesFile = /dev/null\n\texcludesFile = %s\n",
	"core.worktree":          "[core]\n\tworktree = /etc\n",
	"core.alternateRefs":     "[core]\n\talternateRefsCommand = %s\n",
	"filter.clean":           "[filter \"evil\"]\n\tclean = %s\n\tsmudge = %s\n\tprocess = %s\n\trequired = true\n",
	"diff.textconv":          "[diff \"evil\"]\n\ttextconv = %s\n\tcommand = %s\n",
	"merge.driver":           "[merge \"evil\"]\n\tdriver = %s\n",
	"url.insteadOf":          "[url \"%u/\"]\n\tinsteadOf = http://\n\tinsteadOf = https://\n",
	"url.pushInsteadOf":      "[url \"%u/\"]\n\tpushInsteadOf = http://\n",
	"remote.url":             "[remote \"origin\"]\n\turl = %u/repo.git\n",
	"remote.pushurl":         "[remote \"origin\"]\n\tpushurl = %u/repo.git\n",
	"remote.receivepack":     "[remote \"origin\"]\n\treceivepack = %s\n\tuploadpack = %s\n",
	"remote.proxy":           "[remote \"origin\"]\n\tproxy = %u\n[http]\n\tproxy = %u\n\tsslVerify = false\n",
	"credential.helper":      "[credential]\n\thelper = %s\n",
	"gpg.program":            "[gpg]\n\tprogram = %s\n[commit]\n\tgpgSign = true\n[push]\n\tgpgSign = true\n",
	"http.extraHeader":       "[http]\n\tfollowRedirects = true\n\textraHeader = X: y\n",
	"include.path":           "[include]\n\tpath = ../evil.config\n",
	"extensions":             "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n\tworktreeConfig = true\n",
	"submodule with program": "[submodule \"x\"]\n\turl = %u/x.git\n\tupdate = !%s\n",
	"no configuration":       "[[[",
}

// gitDir fills the .git of a workspace with everything that git would run.
func (c *trap) gitDir(t *testing.T, dir, config string) {
	t.Helper()
	config = strings.NewReplacer("%s", c.program, "%u", c.URL).Replace(config)
	files := map[string]string{
		".git/config": config, ".git/config.worktree": config, "evil.config": config,
		".gitattributes": "* filter=evil diff=evil merge=evil text\n", ".git/info/attributes": "* filter=evil\n",
		".gitmodules":                  "[submodule \"x\"]\n\tpath = sub\n\turl = " + c.URL + "/x.git\n",
		".git/objects/info/alternates": filepath.Dir(c.secret) + "\n", ".git/objects/info/http-alternates": c.URL + "\n",
		"sub/.git": "gitdir: " + filepath.Dir(c.secret) + "\n",
	}
	for _, hook := range []string{"pre-commit", "pre-push", "post-commit", "reference-transaction", "post-checkout", "prepare-commit-msg", "post-index-change", "fsmonitor-watchman"} {
		files[".git/hooks/"+hook+"*"], files["hooks/"+hook+"*"] = "#!/bin/sh\n"+c.program+"\n", "#!/bin/sh\n"+c.program+"\n"
	}
	write(t, dir, files)
}

func TestTheModelsRepositoryIsNeverReadOrRun(t *testing.T) {
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			c := newTrap(t)
			s, p := fetched(t)
			c.gitDir(t, p.dir, config)
			write(t, p.dir, map[string]string{"work": "done"})
			got, err := p.publish(t)
			must(t, err)
			if text := run(t, s.repo, "show", got.Commit+":work"); text != "done" {
				t.Errorf("published %q", text)
			}
			s.withhold(t)
		})
	}
}

// What is configured for a person or a machine is not for us: the HOME of a
// sandbox is the model's as well.
func TestNoConfigurationOfTheSurroundingsIsRead(t *testing.T) {
	c := newTrap(t)
	s := serve(t, seed)
	home := t.TempDir()
	evil := strings.NewReplacer("%s", c.program, "%u", c.URL).Replace(configs["url.insteadOf"] + configs["credential.helper"] + configs["remote.proxy"] + configs["gpg.program"])
	write(t, home, map[string]string{".gitconfig": evil, "git/config": evil, "evil": evil, ".netrc": "default login x password y\n", ".gitignore_global": "*\n"})
	for key, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": home + "/evil", "GIT_CONFIG_SYSTEM": home + "/evil", "GIT_CONFIG": home + "/evil",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url." + c.URL + "/.insteadOf", "GIT_CONFIG_VALUE_0": "http://",
		"GIT_SSH_COMMAND": c.program, "GIT_ASKPASS": c.program, "GIT_PROXY_COMMAND": c.program, "GIT_EXTERNAL_DIFF": c.program,
		"GIT_DIR": home, "GIT_WORK_TREE": home, "GIT_OBJECT_DIRECTORY": home, "GIT_ALTERNATE_OBJECT_DIRECTORIES": home, "GIT_AUTHOR_NAME": "Mallory",
	} {
		t.Setenv(key, value)
	}
	p := newPlace(t, s.git())
	p.fetch(t)
	write(t, p.dir, map[string]string{"work": "done"})
	got, err := p.publish(t)
	must(t, err)
	if author := run(t, s.repo, "log", "-1", "--format=%an", got.Commit); author != "Deckhand" {
		t.Errorf("the commit is of %q", author)
	}
}

func TestEveryDotGitIsLeftOut(t *testing.T) {
	cases := map[string]func(*testing.T, *trap, string){
		"a directory": func(t *testing.T, _ *trap, dir string) { write(t, dir, map[string]string{"a/.git/config": "x"}) },
		"a link to a directory outside": func(t *testing.T, c *trap, dir string) {
			write(t, dir, map[string]string{"a/.git": "-> " + filepath.Dir(c.secret)})
		},
		"a link to a file outside":  func(t *testing.T, c *trap, dir string) { write(t, dir, map[string]string{".git": "-> " + c.secret}) },
		"a link into the workspace": func(t *testing.T, _ *trap, dir string) { write(t, dir, map[string]string{".git": "-> src"}) },
		"a file that leads elsewhere": func(t *testing.T, c *trap, dir string) {
			write(t, dir, map[string]string{".git": "gitdir: " + filepath.Dir(c.secret)})
		},
		"a pipe": func(t *testing.T, _ *trap, dir string) { must(t, syscall.Mkfifo(filepath.Join(dir, ".git"), 0o600)) },
		"in capitals": func(t *testing.T, _ *trap, dir string) {
			write(t, dir, map[string]string{".GIT/config": "x", "a/.Git": "x"})
		},
		"as Windows reads it": func(t *testing.T, _ *trap, dir string) {
			write(t, dir, map[string]string{"git~1/config": "x", ".git. /config": "x", ".git::$INDEX_ALLOCATION": "x"})
		},
		"as macOS reads it": func(t *testing.T, _ *trap, dir string) {
			write(t, dir, map[string]string{".g\u200cit/config": "x", "\ufeff.git": "x"})
		},
		"a repository inside": func(t *testing.T, _ *trap, dir string) {
			run(t, dir, "init", "-q", "inside")
			write(t, dir, map[string]string{"inside/README": "x"})
		},
		"a bare repository at the top": func(t *testing.T, _ *trap, dir string) {
			write(t, dir, map[string]string{"HEAD": "ref: refs/heads/main", "objects/x": "", "refs/x": "", "config": "[core]\nbare = true"})
		},
	}
	for name, arrange := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTrap(t)
			s, p := fetched(t)
			must(t, os.RemoveAll(filepath.Join(p.dir, ".git")))
			arrange(t, c, p.dir)
			write(t, p.dir, map[string]string{"work": "done"})
			got, err := p.publish(t)
			must(t, err)
			for line := range strings.Lines(s.listing(t, got.Commit)) {
				if lower := strings.ToLower(line); strings.Contains(lower, ".git/") || strings.Contains(lower, "git~1") || strings.HasSuffix(strings.TrimSpace(lower), ".git") {
					t.Errorf("published %s", line)
				}
			}
			s.withhold(t)
			run(t, s.repo, "fsck", "--strict")
		})
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	cases := map[string]struct {
		method string
		to     func(c *trap, s *server) string
		says   string
	}{
		"of the refs to another host":    {http.MethodGet, func(c *trap, _ *server) string { return c.URL + "/repo.git" }, "redirects to http://127.0.0.1"},
		"of the refs to the same host":   {http.MethodGet, func(_ *trap, s *server) string { return s.URL + "/repo2.git" }, "/repo2.git, and no redirect is followed"},
		"of the request to another host": {http.MethodPost, func(c *trap, _ *server) string { return c.URL + "/repo.git" }, "redirects to http://127.0.0.1"},
		"with a password in it": {http.MethodGet, func(c *trap, _ *server) string {
			return strings.Replace(c.URL, "http://", "http://ann:"+token+"@", 1)
		}, "redirects to http://127.0.0.1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTrap(t)
			s, p := fetched(t)
			s.wrapper = func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method != tc.method {
						next.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Location", tc.to(c, s)+strings.TrimPrefix(r.URL.String(), "/repo.git"))
					w.WriteHeader(http.StatusTemporaryRedirect)
				})
			}
			write(t, p.dir, map[string]string{"work": "done"})
			_, err := p.publish(t)
			wantRefused(t, err, tc.says)
			wantRefused(t, workspace.Fetch(t.Context(), newPlace(t, s.git()).options()), tc.says)
		})
	}
}

// A server that sends the credential back has it told to nobody.
func TestACredentialThatIsSentBackIsHidden(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"work": "done"})
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusFound} {
		s.wrapper = func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, password, _ := r.BasicAuth()
				w.Header().Set("Location", "http://host/"+url.PathEscape(password))
				w.WriteHeader(code)
				fmt.Fprint(w, r.Header.Get("Authorization"), " ", password)
			})
		}
		_, err := p.publish(t)
		if err == nil || !strings.Contains(err.Error(), "‹secret:git/password›") {
			t.Errorf("got error %v, want one that names the secret", err)
		}
		clean(t, fmt.Sprintf("%v %+v %#v", err, err, err))
	}
}

func TestWhatIsNoFileIsPassedOver(t *testing.T) {
	c := newTrap(t)
	s, p := fetched(t)
	must(t, syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600))
	must(t, os.Remove(filepath.Join(p.dir, "README.md")))
	must(t, syscall.Mkfifo(filepath.Join(p.dir, "README.md"), 0o600))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(p.dir, "socket"))
	must(t, err)
	defer listener.Close()
	write(t, p.dir, map[string]string{
		"dir": "-> " + filepath.Dir(c.secret), "file": "-> " + c.secret, "proc": "-> /proc/self/environ", "loop": "-> loop", "up": "-> ..",
	})
	got, err := p.publish(t)
	must(t, err)
	want := "D\tREADME.md\nA\tdir\nA\tfile\nA\tloop\nA\tproc\nA\tup"
	if diff := run(t, s.repo, "diff", "--name-status", "main", got.Commit); diff != want {
		t.Errorf("published\n%s\nwant\n%s", diff, want)
	}
	s.withhold(t)
}

func TestAnUnreadableFileIsReported(t *testing.T) {
	obeyFileModes(t)
	_, p := fetched(t)
	write(t, p.dir, map[string]string{"locked": "x"})
	must(t, os.Chmod(filepath.Join(p.dir, "locked"), 0))
	_, err := p.publish(t)
	wantRefused(t, err, `"/locked" cannot be read`)
}

// obeyFileModes has root obey the modes of files as well, on the thread of this test, which
// ends with it.
func obeyFileModes(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header, caps := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	must(t, unix.Capget(&header, &caps[0]))
	caps[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	must(t, unix.Capset(&header, &caps[0]))
}

func TestDirectoriesThatAreTooDeepAreRefused(t *testing.T) {
	_, p := fetched(t)
	must(t, os.MkdirAll(filepath.Join(p.dir, strings.Repeat("d/", 300)), 0o755))
	_, err := p.publish(t)
	wantRefused(t, err, "more than 200 deep")
}

func TestAHugeSparseFileIsNotRead(t *testing.T) {
	_, p := fetched(t)
	write(t, p.dir, map[string]string{"sparse": ""})
	must(t, os.Truncate(filepath.Join(p.dir, "sparse"), 1<<40))
	_, err := p.publish(t)
	wantRefused(t, err, "more than 536870912 bytes together", "sparse")
}
