package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// dotGit creates the repository of the workspace for its commands. Its objects are copies,
// and the runner never reads it again.
func (c *checkout) dotGit(ctx context.Context, h Head, url string) error {
	for _, dir := range []string{"", "objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/tags", "info"} {
		if err := MakeDir(c.root, c.at(dir)); err != nil {
			return err
		}
	}
	for name, text := range texts(h, url) {
		if err := WriteFile(c.root, c.at(name), strings.NewReader(text), 0o664); err != nil {
			return err
		}
	}
	if err := c.copyObjects(ctx); err != nil {
		return err
	}
	return c.writeIndex()
}

func (c *checkout) at(name string) string { return path.Join(c.under, ".git", name) }

// texts returns the small files of the repository.
func texts(h Head, url string) map[string]string {
	refs, head := "# pack-refs with: peeled fully-peeled sorted \n", h.Commit+"\n"
	config := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n" +
		"[user]\n\tname = " + clientName + "\n\temail = " + clientName + "@localhost\n" +
		"[remote \"origin\"]\n\turl = " + quoted(url) + "\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
	if h.Branch != "" {
		head = "ref: " + headsPrefix + h.Branch + "\n"
		refs += h.Commit + " " + headsPrefix + h.Branch + "\n" + h.Commit + " refs/remotes/origin/" + h.Branch + "\n"
		config += "[branch " + quoted(h.Branch) + "]\n\tremote = origin\n\tmerge = " + quoted(headsPrefix+h.Branch) + "\n"
	}
	if h.Tag != "" {
		refs += h.Tagged + " " + tagsPrefix + h.Tag + "\n"
		if h.Tagged != h.Commit {
			refs += "^" + h.Commit + "\n"
		}
	}
	return map[string]string{"HEAD": head, "packed-refs": refs, "config": config}
}

// quoted returns a quoted value or section name of git's configuration.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// copyObjects copies the packs, and where the history is cut.
func (c *checkout) copyObjects(ctx context.Context) error {
	packs, err := os.ReadDir(c.store.dir + "/objects/pack")
	if err != nil {
		return err
	}
	names := []string{"shallow"}
	for _, e := range packs {
		names = append(names, "objects/pack/"+e.Name())
	}
	for _, name := range names {
		if err := errors.Join(ctx.Err(), c.copy(name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checkout) copy(name string) error {
	f, err := os.Open(c.store.dir + "/" + name)
	if errors.Is(err, os.ErrNotExist) { // the history is whole
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := c.take(info.Size()); err != nil {
		return err
	}
	return WriteFile(c.root, c.at(name), f, 0o664)
}

// indexEntry is what an entry of the index has beside its path, with the NULs behind it, in bytes.
const indexEntry = 62 + 8

func (c *checkout) writeIndex() error {
	if err := c.take(int64(c.paths + indexEntry*len(c.index.Entries))); err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(index.NewEncoder(w).Encode(&c.index)) }()
	err := WriteFile(c.root, c.at("index"), r, 0o664)
	if err := errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	return nil
}
