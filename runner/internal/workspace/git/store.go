package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	// maxInMemory is the size from which an object is read piece by piece, in bytes.
	maxInMemory = 1 << 20
	// maxCache bounds the objects that are kept in memory.
	maxCache = 16 * cache.MiByte
	// maxTree bounds a tree or a commit, which are read whole, in bytes.
	maxTree = 64 << 20
	// maxPeel is how many tags of tags are followed.
	maxPeel = 10
)

// A Store is a bare repository. Its configuration is not read.
type Store struct {
	dir     string
	storage *filesystem.Storage
}

// create creates an empty bare repository.
func create(dir string) error {
	for _, sub := range []string{"objects/pack", "objects/info", "refs/heads"} {
		if err := os.MkdirAll(dir+"/"+sub, 0o700); err != nil {
			return fmt.Errorf("making the repository: %w", err)
		}
	}
	files := map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"}
	for name, text := range files {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("making the repository: %w", err)
		}
	}
	return nil
}

// Open opens the bare repository in a directory, which only trusted processes may write to.
func Open(dir string) (*Store, error) {
	if _, err := os.Stat(dir + "/objects"); err != nil {
		return nil, fmt.Errorf("opening the repository: %w", err)
	}
	options := filesystem.Options{KeepDescriptors: true, LargeObjectThreshold: maxInMemory}
	storage := filesystem.NewStorageWithOptions(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(maxCache), options)
	return &Store{dir: dir, storage: storage}, nil
}

// Close closes the files.
func (s *Store) Close() error {
	if err := s.storage.Close(); err != nil {
		return fmt.Errorf("closing the repository: %w", err)
	}
	return nil
}

// readAll returns an object of at most maxTree bytes.
func (s *Store) readAll(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	r, size, err := s.object(kind, h)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > maxTree {
		return nil, Refused("The repository has a %s of %d bytes (%s); that is no repository to work with.", kind, size, h)
	}
	return io.ReadAll(r)
}

// object opens an object to be read.
func (s *Store) object(kind plumbing.ObjectType, h plumbing.Hash) (io.ReadCloser, int64, error) {
	o, err := s.storage.EncodedObject(kind, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, 0, Refused("The repository has no %s %s, which its commit names: see what \"git fsck\" says of it.", kind, h)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	r, err := o.Reader()
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	return r, o.Size(), nil
}

// peel follows tags to the commit that is tagged.
func (s *Store) peel(h plumbing.Hash) (plumbing.Hash, error) {
	for range maxPeel {
		o, err := s.storage.EncodedObject(plumbing.AnyObject, h)
		if err != nil {
			return h, fmt.Errorf("reading %s: %w", h, err)
		}
		switch o.Type() {
		case plumbing.CommitObject:
			return h, nil
		case plumbing.TagObject:
			data, err := s.readAll(plumbing.TagObject, h)
			if err != nil {
				return h, err
			}
			h = plumbing.NewHash(field(data, "object"))
		default:
			return h, Refused("The revision is a %s, not a commit: name a branch, a tag of a commit or a commit.", o.Type())
		}
	}
	return h, Refused("The revision is a tag of a tag of a tag, too often: name the commit.")
}

// field returns a header of a commit or tag; empty if it does not exist.
func field(data []byte, name string) string {
	scan := bufio.NewScanner(bytes.NewReader(data))
	for scan.Scan() && scan.Text() != "" {
		if key, value, _ := strings.Cut(scan.Text(), " "); key == name {
			return value
		}
	}
	return ""
}

// abbreviated finds the one commit or tag whose name begins like this.
func (s *Store) abbreviated(name string) (plumbing.Hash, error) {
	if len(name) == 40 {
		h := plumbing.NewHash(name)
		if s.storage.HasEncodedObject(h) != nil {
			return h, Refused("The repository has no commit %s in any of its branches and tags.", name)
		}
		return h, nil
	}
	prefix, err := hex.DecodeString(name[:len(name)&^1])
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading the commit %s: %w", name, err)
	}
	hashes, err := s.storage.HashesWithPrefix(prefix)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("looking for the commit %s: %w", name, err)
	}
	var found []plumbing.Hash
	for _, h := range hashes {
		if strings.HasPrefix(h.String(), name) && s.isCommit(h) {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return plumbing.ZeroHash, Refused("The repository has no branch, tag or commit %q: use an existing one.", name)
	case 1:
		return found[0], nil
	default:
		return plumbing.ZeroHash, Refused("The repository has %d commits that begin with %q: write more of the name.", len(found), name)
	}
}

func (s *Store) isCommit(h plumbing.Hash) bool {
	o, err := s.storage.EncodedObject(plumbing.AnyObject, h)
	return err == nil && (o.Type() == plumbing.CommitObject || o.Type() == plumbing.TagObject)
}

// volumeFull turns the error of a full disk into a RefusedError.
func volumeFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return Refused("The volume is full (%s): give the workspace a larger one, or clone less of the history.", printable(err.Error()))
	}
	return err
}

// temporaryPrefix begins the names of objects that are being written.
const temporaryPrefix = "tmp_obj_"

// put streams an object of a known size into the store and returns its name. An existing
// object is replaced, because a power failure may have left it incomplete.
func (s *Store) put(kind plumbing.ObjectType, size int64, from io.Reader) (plumbing.Hash, error) {
	f, err := os.CreateTemp(s.dir+"/objects", temporaryPrefix)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing an object: %w", err)
	}
	w := objfile.NewWriter(f)
	err = w.WriteHeader(kind, size)
	if err == nil {
		_, err = io.CopyN(w, from, size)
	}
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		return plumbing.ZeroHash, errors.Join(err, os.Remove(f.Name()))
	}
	h := w.Hash()
	dir := filepath.Join(s.dir, "objects", h.String()[:2])
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return plumbing.ZeroHash, fmt.Errorf("writing an object: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, h.String()[2:])); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing an object: %w", err)
	}
	return h, nil
}

func (s *Store) putBytes(kind plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	h, err := s.put(kind, int64(len(data)), bytes.NewReader(data))
	return h, volumeFull(err)
}

// removeTemporary removes objects that an earlier process did not finish.
func (s *Store) removeTemporary() error {
	left, err := filepath.Glob(s.dir + "/objects/" + temporaryPrefix + "*")
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// maxMessage bounds the message of a commit, in bytes.
const maxMessage = 64 << 10

// Author is the author and the time of a commit.
type Author struct {
	Name, Email string
	When        time.Time
}

// line returns the author in the form for a commit.
func (a Author) line() string {
	clean := strings.NewReplacer("<", "", ">", "", "\n", " ", "\r", " ", "\x00", "")
	return fmt.Sprintf("%s <%s> %d +0000", strings.TrimSpace(clean.Replace(a.Name)), strings.TrimSpace(clean.Replace(a.Email)), a.When.Unix())
}

// A Commit has the fields of a commit. Equal fields make the same commit.
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

// Tree returns the name of a commit's tree.
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

// A diff is the difference between two trees.
type diff struct {
	store *Store
	// objects are the objects that a receiver with the first tree lacks, each once.
	objects []plumbing.Hash
	seen    map[plumbing.Hash]bool
	// files counts the created, changed and deleted files.
	files int
}

// trees compares two trees; the zero hash is a missing directory.
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

// entry compares one name; an empty entry does not exist.
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

// subtree returns the tree of a directory; zero for anything else.
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

// indexEntry is the size of an entry of the index without its path, with the NULs after it, in bytes.
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
