package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/deckhand-dev/deckhand/internal/shared/skill"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

// Bounds of the folder of a skill.
const (
	maxSkillFiles = 1000
	maxSkillBytes = 16 << 20
)

// stagedSkills is where skills are put together, in the directory of the skills.
const stagedSkills = ".deckhand-fetch"

// A SkillSource is where a skill comes from: Git, or Dir.
type SkillSource struct {
	Name string
	// Dir is a mounted ConfigMap, and From its name for messages.
	Dir, From string
	// Git is a repository at a commit, and Path the folder in it; empty: the root.
	Git  *Git
	Path string
}

func (s SkillSource) String() string {
	if s.Git == nil {
		return s.From
	}
	return strings.TrimSuffix(s.Git.URL+" at "+s.Git.Revision[:min(len(s.Git.Revision), shortCommit)]+", folder "+s.Path, ", folder ")
}

// shortCommit is how much of a commit messages show.
const shortCommit = 12

// FetchSkills puts each skill into a folder of dir with its name, once. A folder that is no skill, or one too large, is a
// *RefusedError.
func FetchSkills(ctx context.Context, dir string, sources []SkillSource) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the directory of the skills: %w", err)
	}
	defer root.Close()
	f := &skillFetch{dir: dir, root: root, clones: map[string]string{}}
	for _, s := range sources {
		if _, err := root.Lstat(s.Name); err == nil {
			continue // whole, because it was renamed at the end
		}
		if err := f.fetch(ctx, s); err != nil {
			return err
		}
	}
	return f.clear()
}

// A skillFetch fetches skills. A repository is cloned once.
type skillFetch struct {
	dir  string
	root *os.Root
	// clones are directories in stagedSkills, by repository and commit.
	clones map[string]string
}

// clear removes stagedSkills with its content.
func (f *skillFetch) clear() error {
	if err := removeTree(f.root, stagedSkills); err != nil {
		return fmt.Errorf("removing the repositories of the skills: %w", err)
	}
	return nil
}

func (f *skillFetch) fetch(ctx context.Context, s SkillSource) error {
	staged := path.Join(stagedSkills, "skill")
	err := removeTree(f.root, staged)
	if len(f.clones) == 0 { // also what an earlier try left
		err = errors.Join(err, f.clear(), git.MakeDir(f.root, stagedSkills))
	}
	if err := errors.Join(err, git.MakeDir(f.root, staged)); err != nil {
		return fmt.Errorf("writing the skill %s: %w", s.Name, err)
	}
	to, err := f.root.OpenRoot(staged)
	if err != nil {
		return fmt.Errorf("writing the skill %s: %w", s.Name, err)
	}
	defer to.Close()
	w := &skillWriter{to: to}
	if s.Git != nil {
		err = f.writeCommit(ctx, s, w)
	} else {
		err = w.mounted(ctx, s.Dir)
	}
	if err == nil {
		err = checkSkill(to, s.Name)
	}
	if err != nil {
		return s.describe(err)
	}
	return f.root.Rename(staged, s.Name)
}

// describe adds to an error which skill it is about.
func (s SkillSource) describe(err error) error {
	if refused, is := errors.AsType[*RefusedError](err); is {
		return &RefusedError{Message: fmt.Sprintf("The skill %s (%s) cannot be used: %s.", s.Name, s, strings.TrimSuffix(refused.Message, "."))}
	}
	return fmt.Errorf("fetching the skill %s (%s): %w", s.Name, s, err)
}

// checkSkill checks the SKILL.md of a folder.
func checkSkill(folder *os.Root, name string) error {
	file, err := folder.Open(skill.File)
	if errors.Is(err, fs.ErrNotExist) {
		return git.Refused("it has no %s", skill.File)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, skill.MaxFile+1))
	if err != nil {
		return err
	}
	if _, err := skill.Parse(name, text); err != nil {
		return git.Refused("%v", err)
	}
	return nil
}

// writeCommit writes the folder of a commit.
func (f *skillFetch) writeCommit(ctx context.Context, s SkillSource, w *skillWriter) error {
	clone, err := f.clone(ctx, *s.Git)
	if err != nil {
		return err
	}
	store, err := git.Open(clone)
	if err != nil {
		return err
	}
	defer store.Close()
	return store.WriteFolder(ctx, s.Git.Revision, s.Path, skill.File, w)
}

// clone returns the directory with a clone of a repository at a commit.
func (f *skillFetch) clone(ctx context.Context, g Git) (string, error) {
	key := g.URL + "@" + g.Revision + "@" + g.Credentials
	if at, done := f.clones[key]; done {
		return at, nil
	}
	remote, err := g.remote()
	if err != nil {
		return "", err
	}
	at := filepath.Join(f.dir, stagedSkills, fmt.Sprintf("%d.git", len(f.clones)))
	head, err := remote.Clone(ctx, at, git.Want{Revision: g.Revision, Depth: g.Depth})
	if err != nil {
		return "", err
	}
	if head.Commit != g.Revision {
		return "", git.Refused("the repository has the commit %s in place of %s", head.Commit, g.Revision)
	}
	f.clones[key] = at
	return at, nil
}

// A skillWriter writes the folder of a skill, read-only and within its bounds.
type skillWriter struct {
	to    *os.Root
	files int
	bytes int64
}

func (w *skillWriter) count() error {
	if w.files++; w.files > maxSkillFiles {
		return git.Refused("it has more than %d files and folders", maxSkillFiles)
	}
	return nil
}

// Folder implements [git.FolderWriter].
func (w *skillWriter) Folder(name string) error {
	return errors.Join(w.count(), git.MakeDir(w.to, name))
}

// File implements [git.FolderWriter].
func (w *skillWriter) File(name string, perm fs.FileMode, from io.Reader) error {
	if err := w.count(); err != nil {
		return err
	}
	const readable, executable = 0o444, 0o111
	left := &io.LimitedReader{R: from, N: maxSkillBytes - w.bytes + 1}
	if err := git.WriteFile(w.to, name, left, readable|perm&executable); err != nil {
		return err
	}
	if w.bytes = maxSkillBytes + 1 - left.N; left.N == 0 {
		return git.Refused("its files have more than %d MiB", maxSkillBytes>>20)
	}
	return nil
}

// mounted writes the files of a ConfigMap, which the kubelet mounts as links to directories with names of two dots.
func (w *skillWriter) mounted(ctx context.Context, dir string) error {
	from, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer from.Close()
	if version, err := from.OpenRoot("..data"); err == nil { // all files of it, should the ConfigMap change meanwhile
		defer version.Close()
		from = version
	}
	entries, err := fs.ReadDir(from.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if err := errors.Join(ctx.Err(), w.copyFile(from, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (w *skillWriter) copyFile(from *os.Root, name string) error {
	file, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = git.Refused("%q is no file", name)
	}
	if err != nil {
		return err
	}
	return w.File(name, info.Mode(), file)
}
