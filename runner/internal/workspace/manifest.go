package workspace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

// maxEntries bounds a Manifest.
const maxEntries = 100_000

// A Manifest lists the files of a workspace with their size and modification time.
type Manifest struct {
	files map[string]stamp
	// newest is the latest modification time.
	newest time.Time
	// cut is true if there were more than maxEntries files. Then a file that is not
	// listed counts as new only if it is newer than newest.
	cut bool
}

// A stamp is the size and the modification time of a file.
type stamp struct {
	size    int64
	written time.Time
}

// A line is one file in the stored manifest.
type line struct {
	Path    []byte    `json:"path,omitempty"` // names need not be text
	Size    int64     `json:"size,omitempty"`
	Written time.Time `json:"written,omitzero"`
	// Newest and Cut are in the last line, which has no Path. A stored manifest without that line is incomplete.
	Newest time.Time `json:"newest,omitzero"`
	Cut    bool      `json:"cut,omitempty"`
}

// Begin returns the files of the workspace at the start of the Run: the recorded
// manifest or, at the first call, the current files, which it records.
func Begin(ctx context.Context, root *os.Root, state string) (Manifest, error) {
	m, err := loadManifest(in(state, manifestFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	if m, err = listFiles(ctx, root); err != nil {
		return m, err
	}
	if err := os.MkdirAll(in(state, ""), 0o700); err != nil {
		return m, fmt.Errorf("making the state directory: %w", err)
	}
	return m, m.save(in(state, manifestFile))
}

func listFiles(ctx context.Context, root *os.Root) (Manifest, error) {
	m := Manifest{files: map[string]stamp{}}
	whole, err := eachFile(ctx, root, func(name string, info fs.FileInfo) {
		if info.ModTime().After(m.newest) {
			m.newest = info.ModTime()
		}
		if len(m.files) >= maxEntries {
			m.cut = true
			return
		}
		m.files[name] = stamp{size: info.Size(), written: info.ModTime()}
	})
	m.cut = m.cut || !whole
	if err != nil {
		return m, fmt.Errorf("listing the workspace: %w", err)
	}
	return m, nil
}

// has reports whether a file is unchanged.
func (m Manifest) has(name string, info fs.FileInfo) bool {
	was, known := m.files[name]
	if !known {
		return m.cut && !info.ModTime().After(m.newest)
	}
	return was.size == info.Size() && was.written.Equal(info.ModTime())
}

// save writes the manifest atomically.
func (m Manifest) save(name string) error {
	f, err := os.Create(name + ".tmp")
	if err != nil {
		return fmt.Errorf("recording the files of the workspace: %w", err)
	}
	w := bufio.NewWriter(f)
	lines := json.NewEncoder(w)
	for at, was := range m.files {
		err = errors.Join(err, lines.Encode(line{Path: []byte(at), Size: was.size, Written: was.written}))
	}
	err = errors.Join(err, lines.Encode(line{Newest: m.newest, Cut: m.cut}), w.Flush(), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(name+".tmp", name)
	}
	if err != nil {
		return fmt.Errorf("recording the files of the workspace: %w", err)
	}
	return nil
}

func loadManifest(name string) (Manifest, error) {
	m := Manifest{files: map[string]stamp{}}
	f, err := os.Open(name)
	if err != nil {
		return m, fmt.Errorf("reading the recorded files of the workspace: %w", err)
	}
	defer f.Close()
	lines := json.NewDecoder(bufio.NewReader(f))
	for {
		var l line
		if err := lines.Decode(&l); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the last line is missing
			}
			return m, fmt.Errorf("reading the recorded files of the workspace: %w", err)
		}
		if len(l.Path) == 0 {
			m.newest, m.cut = l.Newest, l.Cut
			return m, nil
		}
		m.files[string(l.Path)] = stamp{size: l.Size, written: l.Written}
	}
}

// The recorded stages of a Fetch.
const (
	stageStaged = "Staged" // files are staged and being moved into place
	stageDone   = "Done"
)

// A fetched is the record of Fetch in the state directory.
type fetched struct {
	Version int    `json:"version"`
	Stage   string `json:"stage"`
	// URL and Head are empty if there is no repository.
	URL      string       `json:"url,omitempty"`
	Revision string       `json:"revision,omitempty"` // as requested
	Head     git.Head     `json:"head,omitzero"`
	Placed   []git.Placed `json:"placed,omitempty"`
	// Missing is what was not fetched; records of earlier versions lack it.
	Missing git.Missing `json:"missing,omitzero"`
}

// A joined records that a Run has copied its files to a shared workspace.
type joined struct {
	Version int `json:"version"`
}

// A published is the record of Publish in the state directory.
type published struct {
	Version int `json:"version"`
	// Commits are the commits that this Run, or a Run that it continues, has pushed or was about to push, oldest first.
	Commits []string `json:"commits"`
	// Branch is their branch; records of earlier versions lack it.
	Branch string `json:"branch,omitempty"`
	// Continues is the name of the Run whose branch it was before; empty: it is of this Run.
	Continues string `json:"continues,omitempty"`
}

// maxCommits bounds published.Commits.
const maxCommits = 100

// load reads a file of the state directory, if it exists.
func load(state, name string, into any) error {
	data, err := os.ReadFile(in(state, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s of the state directory: %w", name, err)
	}
	return nil
}

// save writes a file of the state directory atomically and durably, after it has
// flushed everything that was written before.
func save(state, name string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = errors.Join(flush(in(state, "")), replace(in(state, name), data))
	}
	if err != nil {
		return fmt.Errorf("writing %s of the state directory: %w", name, err)
	}
	return nil
}

func replace(name string, data []byte) error {
	f, err := os.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// lockPoll is the interval between attempts to lock.
const lockPoll = 250 * time.Millisecond

// lock locks a file against other processes, for example of other Runs on the same
// volume. It calls waiting once if it has to wait. The kernel releases the lock when
// the process ends.
func lock(ctx context.Context, name string, waiting func()) (release func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the workspace: %w", err)
	}
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for waited := false; ; waited = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // which releases the lock
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("locking the workspace: %w", err), f.Close())
		case !waited:
			waiting()
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
}
