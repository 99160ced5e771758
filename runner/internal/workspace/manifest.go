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
	// Newest and Cut are in the last line, which has no Path. Without it the stored
	// manifest is incomplete.
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
