package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// skillText is the SKILL.md of a skill.
func skillText(name string) string {
	return "---\nname: " + name + "\ndescription: Does it.\n---\nDo it.\n"
}

// filesOf returns the regular files below a directory, with their modes.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		name, _ := filepath.Rel(dir, at)
		out = append(out, fmt.Sprintf("%s %v", name, info.Mode()))
		return err
	}))
	return strings.Join(out, "\n")
}

func mountedSkill(t *testing.T, name string, more map[string]string) workspace.SkillSource {
	t.Helper()
	all := map[string]string{"SKILL.md": skillText(name)}
	maps.Copy(all, more)
	return workspace.SkillSource{Name: name, From: "ConfigMap " + name, Dir: configMap(t, all)}
}

func TestSkillsOfConfigMapsAreCopiedOnce(t *testing.T) {
	dir := t.TempDir()
	a := mountedSkill(t, "a", map[string]string{"table.bin": "\x00\xff", "run.sh*": "#!/bin/sh\n"})
	b := mountedSkill(t, "b", nil)
	must(t, workspace.FetchSkills(t.Context(), dir, []workspace.SkillSource{a, b}))
	want := "a/SKILL.md -r--r--r--\na/run.sh -r-xr-xr-x\na/table.bin -r--r--r--\nb/SKILL.md -r--r--r--"
	if got := filesOf(t, dir); got != want {
		t.Errorf("the files are\n%s\nwant\n%s", got, want)
	}
	a.Dir = configMap(t, map[string]string{"SKILL.md": "changed since"})
	must(t, workspace.FetchSkills(t.Context(), dir, []workspace.SkillSource{a, b}))
	if got := filesOf(t, dir); got != want {
		t.Errorf("once more: the files are\n%s", got)
	}
}

func TestSkillsOfARepository(t *testing.T) {
	s := serve(t, map[string]string{
		"skills/a/SKILL.md": skillText("a"), "skills/a/scripts/run.sh*": "#!/bin/sh\n", "skills/b/SKILL.md": skillText("b"),
		"skills/lfs/SKILL.md": skillText("lfs"), "skills/lfs/x.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 1\n",
		"other": "text", "link": "-> /etc/passwd", "skills/linked/SKILL.md": skillText("linked"), "skills/linked/l": "-> SKILL.md",
	})
	access, commit := s.git(), run(t, s.work, "rev-parse", "HEAD")
	of := func(name, path string) workspace.SkillSource {
		return workspace.SkillSource{Name: name, Path: path, Git: &workspace.Git{URL: access.URL, Revision: commit, Depth: 1, Credentials: access.Credentials}}
	}
	s.commit(t, map[string]string{"skills/a/SKILL.md": "changed since"})
	dir := t.TempDir()
	must(t, workspace.FetchSkills(t.Context(), dir, []workspace.SkillSource{of("a", "skills/a"), of("b", "skills/b")}))
	if got, want := filesOf(t, dir), "a/SKILL.md -r--r--r--\na/scripts/run.sh -r-xr-xr-x\nb/SKILL.md -r--r--r--"; got != want {
		t.Errorf("the files are\n%s\nwant\n%s", got, want)
	}
	for _, tc := range []struct{ name, path, want string }{
		{"a", "skills/none", "folder skills/none) cannot be used: the repository has no folder skills/none at this commit"},
		{"a", "other", "the repository has no folder"},
		{"a", "link", "the repository has no folder"},
		{"a", "skills/b", `SKILL.md:2: the name is "b", and the folder is "a"`},
		{"a", "", "it has no SKILL.md"},
		{"lfs", "skills/lfs", `"x.bin" is a file of Git LFS`},
		{"linked", "skills/linked", `"l" is neither a file nor a folder`},
	} {
		err := workspace.FetchSkills(t.Context(), t.TempDir(), []workspace.SkillSource{of(tc.name, tc.path)})
		if _, is := errors.AsType[*workspace.RefusedError](err); !is || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s of %q: %v, want %q", tc.name, tc.path, err, tc.want)
		}
	}
	branch := of("a", "skills/a")
	run(t, s.work, "push", "-q", s.repo, "HEAD:refs/heads/"+commit) // a branch with the name of the commit
	if err := workspace.FetchSkills(t.Context(), t.TempDir(), []workspace.SkillSource{branch}); err == nil || !strings.Contains(err.Error(), "in place of "+commit) {
		t.Errorf("a branch with the name of the commit: %v", err)
	}
}

func TestFoldersThatAreNoSkills(t *testing.T) {
	many := map[string]string{"SKILL.md": skillText("a")}
	for i := range 1001 {
		many[fmt.Sprintf("f%d", i)] = ""
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no SKILL.md":        {map[string]string{"skill.md": skillText("a")}, "The skill a (ConfigMap a) cannot be used: it has no SKILL.md"},
		"bad frontmatter":    {map[string]string{"SKILL.md": "---\nname: a\ndescription: b: c\n---\n"}, "(ConfigMap a) cannot be used: SKILL.md:3: the frontmatter is no YAML"},
		"a large SKILL.md":   {map[string]string{"SKILL.md": skillText("a") + strings.Repeat("a", 64<<10)}, "SKILL.md: it has 65537 bytes, and at most 65536"},
		"too many files":     {many, "it has more than 1000 files and folders"},
		"too many bytes":     {map[string]string{"SKILL.md": skillText("a"), "x": strings.Repeat("x", 9<<20), "y": strings.Repeat("y", 9<<20)}, "its files have more than 16 MiB"},
		"a SKILL.md to read": {map[string]string{"SKILL.md/a": ""}, `"SKILL.md" is no file`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := workspace.FetchSkills(t.Context(), dir, []workspace.SkillSource{{Name: "a", From: "ConfigMap a", Dir: configMap(t, tc.files)}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			if _, err := os.Lstat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is there: %v", err)
			}
		})
	}
}

// A pipe is not waited for, and a link leads nowhere outside of the folder.
func TestWhatIsNoFileIsNoPartOfASkill(t *testing.T) {
	pipe, linked := t.TempDir(), t.TempDir()
	write(t, pipe, map[string]string{"SKILL.md": skillText("a")})
	must(t, syscall.Mkfifo(filepath.Join(pipe, "pipe"), 0o600))
	write(t, linked, map[string]string{"SKILL.md": skillText("a"), "out": "-> /etc/passwd"})
	for name, dir := range map[string]string{"a pipe": pipe, "a link": linked} {
		to := t.TempDir()
		err := workspace.FetchSkills(t.Context(), to, []workspace.SkillSource{{Name: "a", From: "ConfigMap a", Dir: dir}})
		if err == nil || strings.Contains(filesOf(t, to), "a/") {
			t.Errorf("%s: %v, files\n%s", name, err, filesOf(t, to))
		}
	}
}

// A ConfigMap that changes while it is copied gives files of one version.
func TestASkillHasFilesOfOneVersion(t *testing.T) {
	source := mountedSkill(t, "a", map[string]string{"b": "old"})
	write(t, filepath.Join(source.Dir, "..2026_02_02"), map[string]string{"SKILL.md": skillText("a"), "b": "new"})
	swap := changing{t.Context(), func() {
		must(t, os.Symlink("..2026_02_02", filepath.Join(source.Dir, "..next")))
		must(t, os.Rename(filepath.Join(source.Dir, "..next"), filepath.Join(source.Dir, "..data")))
	}, new(int)}
	dir := t.TempDir()
	must(t, workspace.FetchSkills(swap, dir, []workspace.SkillSource{source}))
	if got, err := os.ReadFile(filepath.Join(dir, "a", "b")); err != nil || string(got) != "old" {
		t.Errorf("b is %q, %v", got, err)
	}
}

// A changing context calls a function when it is asked the second time: after the first file.
type changing struct {
	context.Context
	swap  func()
	asked *int
}

func (s changing) Err() error {
	if *s.asked++; *s.asked == 2 {
		s.swap()
	}
	return nil
}

// A fetch that was ended leaves no half of a skill, and the next one begins again.
func TestAFetchOfSkillsThatWasEnded(t *testing.T) {
	dir := t.TempDir()
	sources := []workspace.SkillSource{mountedSkill(t, "a", nil), mountedSkill(t, "b", map[string]string{"x": "x"})}
	for after := range 20 {
		left := after
		err := workspace.FetchSkills(cut{t.Context(), &left}, dir, sources)
		for _, name := range []string{"a", "b"} {
			if _, missing := os.Lstat(filepath.Join(dir, name)); missing == nil {
				if _, err := os.Lstat(filepath.Join(dir, name, "SKILL.md")); err != nil {
					t.Errorf("ended after %d checks: %s is half there: %v", after, name, err)
				}
			}
		}
		if err == nil {
			return
		}
	}
	t.Error("it never ended")
}
