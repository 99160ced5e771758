package cli

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// An extractor writes the files of an archive to a local file or directory. The archive comes
// from a workspace that a model may have written: nothing is written outside local, links are
// not created, and files that exist are not replaced unless the user says so.
type extractor struct {
	out   io.Writer
	local string // - for out
	name  string // of the file or directory in the workspace
	force bool

	progress func(copied)
	copied   copied
	// links are the symbolic links that were left out.
	links []string
	// controls are files that were left out because their names contain control characters or other characters that a
	// terminal does not show.
	controls []string
}

// copied is how much was copied.
type copied struct{ files, bytes int64 }

func (c copied) String() string {
	return terminal.Plural(c.files, "file") + ", " + size(c.bytes)
}

// size is a number of bytes in the largest unit that keeps it above 1.
func size(n int64) string {
	for _, unit := range []struct {
		name string
		of   int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.of {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.of), unit.name)
		}
	}
	return resource.NewQuantity(n, resource.DecimalSI).String() + " bytes"
}

// extract reads an archive to its end. Its first entry is the file or directory that the user
// named.
func (e *extractor) extract(r io.Reader) error {
	archive := tar.NewReader(r)
	first, err := archive.Next()
	if err != nil {
		return archiveError(err)
	}
	switch {
	case first.Typeflag == tar.TypeDir && e.local == "-":
		return exit.Usagef("%s is a directory: name a local directory instead of -", e.name)
	case first.Typeflag == tar.TypeDir:
		err = e.extractDirectory(archive)
	case e.local == "-":
		_, err = io.CopyN(e.out, archive, first.Size)
	default:
		err = e.extractFile(archive, first)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return err
}

func archiveError(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading the files: %w. The rest is missing: try again", err)
}

// localError returns what to do about an error of the local file system.
func localError(err error) error {
	return fmt.Errorf("writing the files: %w. Name an existing directory that you may write to", err)
}

// extractFile writes a file to local, or into it if that is a directory.
func (e *extractor) extractFile(archive *tar.Reader, header *tar.Header) error {
	dir, name := filepath.Split(e.local)
	if info, err := os.Stat(e.local); err == nil && info.IsDir() {
		dir, name = e.local, e.name
	}
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return localError(err)
	}
	defer root.Close()
	return e.write(root, name, header, archive)
}

// extractDirectory writes the content of a directory into local.
func (e *extractor) extractDirectory(archive *tar.Reader) error {
	if err := os.MkdirAll(e.local, 0o755); err != nil {
		return localError(err)
	}
	root, err := os.OpenRoot(e.local)
	if err != nil {
		return localError(err)
	}
	defer root.Close()
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return archiveError(err)
		}
		if err := e.add(root, header, archive); err != nil {
			return err
		}
	}
}

// add writes an entry of an archive below root.
func (e *extractor) add(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(header.Name)
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("the archive has a file outside of the directory, %q: nothing more is copied", header.Name)
	}
	if !isPlain(name) {
		e.controls = append(e.controls, name)
		return nil
	}
	switch header.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, 0o755); err != nil {
			return localError(err)
		}
	case tar.TypeReg:
		return e.write(root, name, header, content)
	case tar.TypeSymlink, tar.TypeLink:
		e.links = append(e.links, name+" -> "+header.Linkname)
	}
	return nil
}

// isPlain reports whether a terminal shows a name exactly. Emoji count as plain.
func isPlain(name string) bool {
	name = strings.NewReplacer("\ufe0e", "", "\ufe0f", "").Replace(name)
	return !strings.ContainsAny(name, "\n\t") && untrusted.Text(name) == name
}

// write writes a file completely or not at all: with force it replaces an existing file, otherwise there must be none.
// Of the mode it keeps only whether the file is executable.
func (e *extractor) write(root *os.Root, name string, header *tar.Header, content io.Reader) error {
	if header.Size > maxFile {
		return fmt.Errorf("%s has %s, most of which may be holes; at most %s in one file are copied: nothing more is copied. Name the files that you want", untrusted.Line(name, 400), size(header.Size), size(maxFile))
	}
	var mode fs.FileMode = 0o644
	if header.Mode&0o100 != 0 {
		mode = 0o755
	}
	as := name
	if e.force {
		as = path.Join(path.Dir(name), ".deckhand-"+rand.String(10))
	}
	f, err := root.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: choose another name, or replace it with --force", filepath.Join(root.Name(), name))
	}
	if err != nil {
		return localError(err)
	}
	file := &sparseFile{file: f}
	_, err = io.Copy(counter{file, e}, content)
	err = errors.Join(err, file.close())
	if err == nil && as != name {
		err = root.Rename(as, name)
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", name, errors.Join(err, root.Remove(as)))
	}
	e.copied.files++
	return nil
}

// A counter counts its input, and shows the count.
type counter struct {
	to io.Writer
	e  *extractor
}

func (c counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.e.copied.bytes += int64(n)
	c.e.progress(c.e.copied)
	return n, err
}

// maxFile bounds the size of one copied file: with holes it can have 8 EiB on a volume of 1 GiB, and all of that would
// be sent.
const maxFile = 64 << 30

// holeSize is the minimum size of a hole: the block size of most file systems.
const holeSize = 4096

var zeros [holeSize]byte

// A sparseFile is written from its beginning. Blocks of zeros become holes, which take no space on the disk.
type sparseFile struct {
	file *os.File
	size int64
}

// Write implements [io.Writer].
func (s *sparseFile) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n := min(holeSize-int(s.size%holeSize), len(p)-written)
		part := p[written : written+n]
		if !bytes.Equal(part, zeros[:n]) {
			if _, err := s.file.WriteAt(part, s.size); err != nil {
				return written, err //nolint:wrapcheck // the caller names the file
			}
		}
		s.size += int64(n)
		written += n
	}
	return written, nil
}

// close ends the file, which may end with a hole.
func (s *sparseFile) close() error {
	return errors.Join(s.file.Truncate(s.size), s.file.Close())
}
