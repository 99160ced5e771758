package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// configMap is a directory as the kubelet mounts a ConfigMap.
func configMap(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..2026_01_01"), files)
	must(t, os.Symlink("..2026_01_01", filepath.Join(dir, "..data")))
	entries, err := os.ReadDir(filepath.Join(dir, "..data"))
	must(t, err)
	for _, e := range entries {
		must(t, os.Symlink(filepath.Join("..data", e.Name()), filepath.Join(dir, e.Name())))
	}
	return dir
}

func TestFilesOfAConfigMapAreCopiedOnce(t *testing.T) {
	p := newPlace(t, nil)
	dir := configMap(t, map[string]string{"a.txt": "a", "deep/b.txt": "b", "run*": "#!/bin/sh\n"})
	other := configMap(t, map[string]string{"a.txt": "other"})
	o := p.options(workspace.Files{Dir: dir, Path: "docs/given"}, workspace.Files{Dir: other, Path: "."}, workspace.Files{Dir: other, Path: "docs/given/deep"})
	must(t, workspace.Fetch(t.Context(), o))
	for name, want := range map[string]string{"docs/given/a.txt": "a", "docs/given/deep/b.txt": "b", "docs/given/deep/a.txt": "other", "a.txt": "other", "docs/given/run": "#!/bin/sh\n"} {
		info, err := os.Lstat(filepath.Join(p.dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o664 != 0o664 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if got, _ := os.ReadFile(filepath.Join(p.dir, name)); string(got) != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if info, _ := os.Stat(filepath.Join(p.dir, "docs/given/run")); info.Mode().Perm() != 0o775 {
		t.Errorf("run has mode %v", info.Mode())
	}
	must(t, os.WriteFile(filepath.Join(p.dir, "a.txt"), []byte("the model's"), 0o600))
	must(t, workspace.Fetch(t.Context(), o))
	if got, _ := os.ReadFile(filepath.Join(p.dir, "a.txt")); string(got) != "the model's" {
		t.Errorf("a later attempt wrote %q", got)
	}
}

// The kubelet mounts binaryData as it mounts data: bytes that are no text stay as they are.
func TestBinaryFilesOfAConfigMapAreCopied(t *testing.T) {
	p := newPlace(t, nil)
	const image = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe\r\n\x00"
	dir := configMap(t, map[string]string{"chart.png": image})
	must(t, workspace.Fetch(t.Context(), p.options(workspace.Files{Dir: dir, Path: "docs"})))
	if got, err := os.ReadFile(filepath.Join(p.dir, "docs/chart.png")); err != nil || string(got) != image {
		t.Errorf("the file has %q, %v", got, err)
	}
}

func TestFilesThatMayNotBePlaced(t *testing.T) {
	s := serve(t, map[string]string{"README.md": "x", "dir/file": "x", "link": "-> dir", "out": "-> /tmp"})
	cases := map[string]struct {
		path, name, says string
	}{
		"above the workspace":           {"../x", "a", "must be a path below the workspace"},
		"above it by a detour":          {"a/../../x", "a", "must be a path below the workspace"},
		"an absolute path":              {"/etc", "a", "must be a path below the workspace"},
		"in the repository's own files": {".git/hooks", "pre-push", ".git is made by the fetch"},
		"in place of those":             {".", ".git", ".git is made by the fetch"},
		"through a link":                {"link", "a", "has something else of that name, or a link, in its way"},
		"through a link that leads out": {"out/deep", "a", "in its way"},
		"below a file":                  {"README.md", "a", "in its way"},
		"in place of a directory":       {".", "dir", "in its way"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, s.git())
			dir := configMap(t, map[string]string{tc.name: "mine"})
			wantRefused(t, workspace.Fetch(t.Context(), p.options(workspace.Files{Dir: dir, Path: tc.path})), tc.says)
		})
	}
}

func TestTooLargeFilesAreRefused(t *testing.T) {
	p := newPlace(t, nil)
	dir := configMap(t, map[string]string{"a": ""})
	must(t, os.Truncate(filepath.Join(dir, "..data", "a"), 9<<20))
	wantRefused(t, workspace.Fetch(t.Context(), p.options(workspace.Files{Dir: dir, Path: "x"})), "more than 8388608 bytes")
}

// What was placed is no work: it is published only where it was changed.
func TestPlacedFilesArePublishedOnlyWhenChanged(t *testing.T) {
	s := serve(t, seed)
	p := newPlace(t, s.git())
	dir := configMap(t, map[string]string{"README.md": "placed over it", "given": "placed", "changed": "placed"})
	must(t, workspace.Fetch(t.Context(), p.options(workspace.Files{Dir: dir, Path: "."})))
	if got, _ := os.ReadFile(filepath.Join(p.dir, "README.md")); string(got) != "placed over it" {
		t.Errorf("README.md is %q", got)
	}
	got, err := p.publish(t)
	must(t, err)
	if !got.Unchanged {
		t.Fatalf("published %+v", got)
	}
	write(t, p.dir, map[string]string{"changed": "by the model"})
	got, err = p.publish(t)
	must(t, err)
	if diff := run(t, s.repo, "diff", "--name-status", "main", got.Commit); diff != "A\tchanged" {
		t.Errorf("published %q", diff)
	}
}
