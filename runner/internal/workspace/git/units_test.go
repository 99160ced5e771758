package git

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/google/go-cmp/cmp"
)

func TestAListOfPathsHasARoom(t *testing.T) {
	for name, tc := range map[string]struct {
		names []string
		count int
		room  int
		want  string
	}{
		"all of them":             {[]string{"ab", "cd"}, 2, 6, "ab, cd"},
		"just all of them":        {[]string{"ab", "cd"}, 2, 4, "ab, cd"},
		"as many as fit":          {[]string{"ab", "cd"}, 2, 3, "ab and 1 more"},
		"those that are not kept": {[]string{"ab"}, 9, 6, "ab and 8 more"},
		"one that just fits":      {[]string{"abcd"}, 1, 4, "abcd"},
		"one that does not":       {[]string{"abcdefgh"}, 1, 4, "…efgh"},
		"one that is cut within":  {[]string{"aéé"}, 1, 3, "…é"},
		"one with a comma":        {[]string{"a,b", "c"}, 2, 20, `"a,b", c`},
		"one with a space":        {[]string{"a b"}, 1, 20, `"a b"`},
		"none":                    {nil, 0, 20, ""},
	} {
		if got := (Paths{Names: tc.names, Count: tc.count}).List(tc.room); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	var all Paths
	for range maxPaths + 1 {
		all = all.With("a\nb")
	}
	if len(all.Names) != 20 || all.Count != 21 || strings.Contains(all.Names[0], "\n") {
		t.Errorf("kept are %d of %d, the first is %q", len(all.Names), all.Count, all.Names[0])
	}
}

// What stands in the message of a commit is no header of it.
func TestHeadersOfACommit(t *testing.T) {
	const commit = "tree abc\nparent d e\nodd\n\ntree x\nobject evil\n"
	for name, want := range map[string]string{"tree": "abc", "parent": "d e", "odd": "", "object": "", "": ""} {
		if got := field([]byte(commit), name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestNamesOfAttributes(t *testing.T) {
	for name, want := range map[string]bool{
		"filter": true, "a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, "a-b": true, "a_b": true, "a.b": true, ".a": true,
		"": false, "-a": false, "a b": false, "a/b": false, "a:b": false, "a@b": false, "a[b": false, "a`b": false, "a{b": false, "é": false,
	} {
		if got := isAttributeName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

// The agent's commands have another user in the same group, whatever the umask of the runner is.
func TestFilesOfAWorkspaceAreTheGroups(t *testing.T) {
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	root := openRoot(t)
	if err := os.Chmod(root.Name(), fs.ModeSetgid|0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(MakeDir(root, "dir"), WriteFile(root, "file", strings.NewReader("x"), 0o664), WriteFile(root, "program", strings.NewReader("x"), 0o775)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"dir": fs.ModeDir | fs.ModeSetgid | 0o775, "file": 0o664, "program": 0o775} {
		info, err := root.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has the mode %s, want %s", name, info.Mode(), want)
		}
	}
	if err := MakeDir(root, "dir"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory that is there: %v", err)
	}
}

func openRoot(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestModesOfFiles(t *testing.T) {
	root := openRoot(t)
	at := func(name string) string { return filepath.Join(root.Name(), name) }
	if err := errors.Join(
		os.WriteFile(at("file"), nil, 0o644), os.WriteFile(at("program"), nil, 0o755), os.WriteFile(at("others"), nil, 0o645),
		os.Symlink("file", at("link")), syscall.Mkfifo(at("pipe"), 0o644), os.Chmod(at("others"), 0o645),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]filemode.FileMode{
		"file": filemode.Regular, "program": filemode.Executable, "others": filemode.Regular, "link": filemode.Symlink, "pipe": filemode.Empty,
	} {
		info, err := root.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := modeOf(info, entry{}); got != want {
			t.Errorf("%s: %o, want %o", name, got, want)
		}
		had := want
		if want == filemode.Regular {
			had = filemode.Deprecated
		}
		if got := modeOf(info, entry{mode: filemode.Deprecated}); got != had {
			t.Errorf("%s, which was of a deprecated mode: %o, want %o", name, got, had)
		}
	}
}

// A workspace from which everything was deleted is an empty tree, and the repository has it.
func TestAnEmptyWorkspaceIsATree(t *testing.T) {
	h := newHostile(t)
	commit := h.put(plumbing.CommitObject, "tree "+h.directory("", h.has("a", filemode.Regular, "x")).hash.String()+"\n\nx\n")
	tree, err := h.Snapshot(t.Context(), openRoot(t), Basis{Commit: commit.String()}, Limits{Bytes: 1 << 20, Files: 10})
	if err != nil || tree != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
		t.Fatalf("%s, %v", tree, err)
	}
	if entries, err := h.tree(plumbing.NewHash(tree)); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Files are compared with those of the commit that they come from: without it there is nothing to publish.
func TestASnapshotNeedsItsCommit(t *testing.T) {
	h := newHostile(t)
	absent := strings.Repeat("1", 40)
	if tree, err := h.Snapshot(t.Context(), openRoot(t), Basis{Commit: absent}, Limits{Bytes: 1 << 20, Files: 10}); err == nil {
		t.Errorf("a tree %s without its commit", tree)
	}
}

// What is no hexadecimal number is no commit.
func TestAnAbbreviatedCommitIsHexadecimal(t *testing.T) {
	if found, err := newHostile(t).abbreviated("zzzz"); err == nil || !strings.Contains(err.Error(), "reading the commit zzzz") {
		t.Errorf("%s, %v", found, err)
	}
}

func TestBoundsOfASnapshot(t *testing.T) {
	h := newHostile(t)
	commit := h.put(plumbing.CommitObject, "tree "+h.directory("").hash.String()+"\n\nx\n")
	for name, tc := range map[string]struct {
		limits Limits
		want   string // in the error
	}{
		"just enough":    {Limits{Bytes: 20, Files: 2}, ""},
		"too many bytes": {Limits{Bytes: 19, Files: 2}, "19"},
		"too many files": {Limits{Bytes: 20, Files: 1}, "more than 1 files to publish"},
	} {
		root := openRoot(t)
		for _, file := range []string{"a", "b"} {
			if err := WriteFile(root, file, strings.NewReader(file+"123456789"), 0o664); err != nil {
				t.Fatal(err)
			}
		}
		_, err := h.Snapshot(t.Context(), root, Basis{Commit: commit.String()}, tc.limits)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the operator mounted decides which credentials are used, and what is missing is named.
func TestCredentialsOfASecret(t *testing.T) {
	const https, ssh = "https://bob@git.example/x.git", "ssh://git.example/x.git"
	for name, tc := range map[string]struct {
		url   string
		files map[string]string
		want  string // the user and password
		err   string
	}{
		"a name and a token":            {https, map[string]string{keyUsername: "ann\n", keyPassword: "token\r\n"}, "ann:token", ""},
		"a token":                       {https, map[string]string{keyPassword: "token"}, "bob:token", ""},
		"a token for a URL with no one": {"https://git.example/x.git", map[string]string{keyPassword: "token"}, "git:token", ""},
		"a name":                        {https, map[string]string{keyUsername: "ann"}, "", `no key "password"`},
		"a name with a colon":           {https, map[string]string{keyUsername: "a:b", keyPassword: "token"}, "", "or its username a colon"},
		"a password of two lines":       {https, map[string]string{keyPassword: "a\nb"}, "", "has a line break"},
		"a password that is no one":     {https, map[string]string{keyPassword: strings.Repeat("x", maxCredential+1)}, "", "larger than 1048576 bytes"},
		"the longest password":          {https, map[string]string{keyPassword: strings.Repeat("x", maxCredential)}, "bob:" + strings.Repeat("x", maxCredential), ""},
		"no key for ssh":                {ssh, map[string]string{keyKnownHosts: "h"}, "", `no key "ssh-privatekey"`},
		"no hosts for ssh":              {ssh, map[string]string{keyPrivateKey: "k", keyKnownHosts: " \n"}, "", `no key "known_hosts", so the server cannot be verified: add to it what "ssh-keyscan git.example" prints`},
		"ssh":                           {ssh, map[string]string{keyPrivateKey: "k", keyKnownHosts: "h"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := credentialsOf(t, tc.url, secret(t, tc.files))
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%v, want %q", err, tc.err)
			}
			sent := ""
			if tc.want != "" {
				sent = "Basic " + base64.StdEncoding.EncodeToString([]byte(tc.want))
			}
			if got := c.basic(); got != sent {
				t.Errorf("it sends %.80q, want %.80q", got, sent)
			}
		})
	}
	if c, err := credentialsOf(t, https, ""); err != nil || c.basic() != "" {
		t.Errorf("without a Secret: %v", err)
	}
	if _, err := credentialsOf(t, ssh, ""); err == nil || !strings.Contains(err.Error(), "is reached by ssh, which needs a Secret") {
		t.Errorf("ssh without a Secret: %v", err)
	}
}

// secret returns the directory of a mounted Secret.
func secret(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for key, value := range files {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func credentialsOf(t *testing.T, url, dir string) (credentials, error) {
	t.Helper()
	at, err := parseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return readCredentials(dir, at)
}

// A key that cannot be read is an error, and not a missing one.
func TestAKeyThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "key"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir, key string
		fails    bool
	}{
		"a directory in place of the key":    {dir, "key", true},
		"a file in place of the Secret":      {filepath.Join(dir, "file"), "key", true},
		"a key that is not there":            {dir, "missing", false},
		"a Secret that is not there":         {filepath.Join(dir, "missing"), "key", false},
		"a key that is outside of the mount": {dir, "../../etc/passwd", true},
	} {
		if data, err := readKey(tc.dir, tc.key); (err != nil) != tc.fails || len(data) > 0 {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

func TestSmallFilesOfTheRepository(t *testing.T) {
	const commit, tag = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	head := "# pack-refs with: peeled fully-peeled sorted \n"
	for name, tc := range map[string]struct {
		h          Head
		head, refs string
	}{
		"a branch":         {Head{Commit: commit, Branch: "b"}, "ref: refs/heads/b\n", head + commit + " refs/heads/b\n" + commit + " refs/remotes/origin/b\n"},
		"a commit":         {Head{Commit: commit}, commit + "\n", head},
		"a tag":            {Head{Commit: commit, Tag: "v1", Tagged: commit}, commit + "\n", head + commit + " refs/tags/v1\n"},
		"an annotated tag": {Head{Commit: commit, Tag: "v1", Tagged: tag}, commit + "\n", head + tag + " refs/tags/v1\n^" + commit + "\n"},
	} {
		files := texts(tc.h, `https://git.example/"x\.git`)
		if diff := cmp.Diff([]string{tc.head, tc.refs}, []string{files["HEAD"], files["packed-refs"]}); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if !strings.Contains(files["config"], `url = "https://git.example/\"x\\.git"`) || strings.Contains(files["config"], `[branch "b"]`) != (tc.h.Branch != "") {
			t.Errorf("%s: the configuration is\n%s", name, files["config"])
		}
	}
}

// A commit whose packs cannot be listed is not checked out as one without history.
func TestARepositoryWithoutPacksIsAnError(t *testing.T) {
	h := newHostile(t)
	if err := os.RemoveAll(filepath.Join(h.dir, "objects", "pack")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.checkOut(h.has("a", filemode.Regular, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("checkOut() = %v", err)
	}
}
