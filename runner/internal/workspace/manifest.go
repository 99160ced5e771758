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
	"time"
)

// maxEntries bounds a Manifest.
const maxEntries = 100_000

// A Manifest is which files a workspace had, and when each was written.
type Manifest struct {
	files map[string]stamp
	// newest is the latest time of any of them.
	newest time.Time
	// cut is true where there were more than a Manifest holds: of a file that it
	// does not know only the time then tells whether it is new.
	cut bool
}

// A stamp is what changes when a file is written.
type stamp struct {
	size    int64
	written time.Time
}

// A line is one file, as the state directory keeps it.
type line struct {
	Path    []byte    `json:"path,omitempty"` // names need not be text
	Size    int64     `json:"size,omitempty"`
	Written time.Time `json:"written,omitzero"`
	// Newest and Cut are on the last line, which has no Path and without which the
	// file is not whole.
	Newest time.Time `json:"newest,omitzero"`
	Cut    bool      `json:"cut,omitempty"`
}

// Begin returns which files the workspace had when the Run began: as recorded in
// the state directory, or, the first time, as they are now.
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

// has says whether a file is as it was.
func (m Manifest) has(name string, info fs.FileInfo) bool {
	was, known := m.files[name]
	if !known {
		return m.cut && !info.ModTime().After(m.newest)
	}
	return was.size == info.Size() && was.written.Equal(info.ModTime())
}

// save writes the manifest under another name first, so that half of one is
// never read.
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
