package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/deckhand-dev/deckhand/runner/internal/attachment"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Show returns an image or a document for the model. The path is canonical. It returns false for
// any other file.
func (t *Toolset) Show(ctx context.Context, path string) (tool.File, bool, error) {
	at, err := t.view.resolve(path)
	if err != nil {
		return tool.File{}, false, err
	}
	return t.show(ctx, at)
}

func (t *Toolset) show(ctx context.Context, at string) (tool.File, bool, error) {
	f, err := t.backend.Open(ctx, at)
	if err != nil {
		return tool.File{}, false, err
	}
	defer f.Close()
	head := make([]byte, attachment.HeadBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return tool.File{}, false, fmt.Errorf("reading the file: %w", err)
	}
	if !attachment.IsFile(head[:n]) {
		return tool.File{}, false, nil
	}
	name := t.view.label(at)
	if err := attachment.CheckSize(f.Size); err != nil {
		return tool.File{}, true, &notShownError{name: name, err: err}
	}
	release, err := memlimit.Contents.Acquire(ctx, attachment.MaxBytes)
	if err != nil {
		return tool.File{}, true, err
	}
	defer release()
	rest, err := io.ReadAll(io.LimitReader(f, attachment.MaxBytes)) // it may have grown: then the store refuses it
	if err != nil {
		return tool.File{}, true, fmt.Errorf("reading the file: %w", err)
	}
	return tool.File{Name: name, Data: append(head[:n], rest...)}, true, nil
}

// shownText is the text beside a file, for models that take none as well.
func shownText(f tool.File) string { return fmt.Sprintf("%s has %d bytes", f.Name, len(f.Data)) }

// A notShownError means that an image or a document is not shown.
type notShownError struct {
	name string
	err  error
}

func (e *notShownError) Error() string { return e.name + " is not shown: " + e.err.Error() }

func (e *notShownError) Unwrap() error { return e.err }
