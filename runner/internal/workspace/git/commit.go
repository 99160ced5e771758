package git

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// maxMessage bounds the message of a commit, in bytes.
const maxMessage = 64 << 10

// Author is who a commit says it is of, and when.
type Author struct {
	Name, Email string
	When        time.Time
}

// line is the author as a commit has it.
func (a Author) line() string {
	clean := strings.NewReplacer("<", "", ">", "", "\n", " ", "\r", " ", "\x00", "")
	return fmt.Sprintf("%s <%s> %d +0000", strings.TrimSpace(clean.Replace(a.Name)), strings.TrimSpace(clean.Replace(a.Email)), a.When.Unix())
}

// A Commit is what one is made of. The same makes the same.
type Commit struct {
	Tree, Parent string
	Message      string
	Author       Author
}

// Commit writes a commit and returns its name.
func (s *Store) Commit(c Commit) (string, error) {
	message := strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(c.Message, "?"), "\x00", ""))
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	data := fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter %[3]s\n\n%[4]s\n", c.Tree, c.Parent, c.Author.line(), message)
	h, err := s.putBytes(plumbing.CommitObject, []byte(data))
	return h.String(), err
}

// Tree is the name of a commit's tree.
func (s *Store) Tree(commit string) (string, error) {
	h, err := s.treeOf(commit)
	return h.String(), err
}

// Changes counts the files that two trees differ in.
func (s *Store) Changes(from, to string) (int, error) {
	d := &diff{store: s, seen: map[plumbing.Hash]bool{}}
	err := d.trees(plumbing.NewHash(from), plumbing.NewHash(to))
	return d.files, err
}

// A diff is what one tree has that another has not.
type diff struct {
	store *Store
	// objects are those to send to who has the first tree, each once.
	objects []plumbing.Hash
	seen    map[plumbing.Hash]bool
	// files are how many were made, changed or deleted.
	files int
}

// trees compares; a zero hash is a directory that is not there.
func (d *diff) trees(from, to plumbing.Hash) error {
	if from == to {
		return nil
	}
	before, err := d.store.tree(from)
	if err != nil {
		return err
	}
	after, err := d.store.tree(to)
	if err != nil {
		return err
	}
	d.send(to)
	old, now := byName(before), byName(after)
	for _, e := range after {
		if err := d.entry(old[e.name], e); err != nil {
			return err
		}
	}
	for _, e := range before {
		if _, still := now[e.name]; still {
			continue
		}
		if err := d.entry(e, entry{}); err != nil {
			return err
		}
	}
	return nil
}

// entry compares one name; an empty entry is one that is not there.
func (d *diff) entry(old, now entry) error {
	if old.mode == now.mode && old.hash == now.hash {
		return nil
	}
	if old.leaf() || now.leaf() {
		d.files++
	}
	if now.leaf() && now.mode != filemode.Submodule && now.hash != old.hash {
		d.send(now.hash)
	}
	return d.trees(old.subtree(), now.subtree())
}

func (e entry) leaf() bool { return e.mode != filemode.Empty && e.mode != filemode.Dir }

// subtree is the tree of a directory; zero for anything else.
func (e entry) subtree() plumbing.Hash {
	if e.mode == filemode.Dir {
		return e.hash
	}
	return plumbing.ZeroHash
}

func (d *diff) send(h plumbing.Hash) {
	if !h.IsZero() && !d.seen[h] {
		d.seen[h] = true
		d.objects = append(d.objects, h)
	}
}
