package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/deckhand-dev/deckhand/runner/internal/attachment"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Canonical returns the arguments of a Read of a path, as a policy sees them.
func (t *Toolset) Canonical(ctx context.Context, path string) (json.RawMessage, error) {
	args, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return nil, fmt.Errorf("encoding a path: %w", err)
	}
	canonical, refused := t.canonicalPath(ctx, args)
	if refused != nil {
		return nil, errors.New(refused.Message)
	}
	return canonical, nil
}

// ShowArgs returns the image or the document that canonical arguments of Read name.
func (t *Toolset) ShowArgs(ctx context.Context, args json.RawMessage) (tool.File, error) {
	var in readIn
	if err := json.Unmarshal(args, &in); err != nil {
		return tool.File{}, fmt.Errorf("decoding a path: %w", err)
	}
	at, err := t.view.resolve(in.Path)
	if err != nil {
		return tool.File{}, err
	}
	file, err := t.show(ctx, at)
	notShown, isRefused := errors.AsType[*notShownError](err)
	switch {
	case isRefused:
		return file, notShown.err
	case err != nil:
		if failed, err := t.view.failed(in.Path, err); err == nil {
			return file, errors.New(failed.Error.Message)
		}
		return file, err
	}
	return file, nil
}

// show returns an image or a document for the model. For any other file, the error is a notShownError with an
// [attachment.FormatError].
func (t *Toolset) show(ctx context.Context, at string) (tool.File, error) {
	f, err := t.backend.Open(ctx, at)
	if err != nil {
		return tool.File{}, err
	}
	defer f.Close()
	head := make([]byte, attachment.HeadBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return tool.File{}, fmt.Errorf("reading the file: %w", err)
	}
	name := t.view.label(at)
	if err := cmp.Or(attachment.CheckFormat(head[:n]), attachment.CheckSize(f.Size)); err != nil {
		return tool.File{}, &notShownError{name: name, err: err}
	}
	release, err := memlimit.Contents.Acquire(ctx, attachment.MaxBytes)
	if err != nil {
		return tool.File{}, err
	}
	defer release()
	rest, err := io.ReadAll(io.LimitReader(f, attachment.MaxBytes)) // it may have grown: then the store refuses it
	if err != nil {
		return tool.File{}, fmt.Errorf("reading the file: %w", err)
	}
	return tool.File{Name: name, Data: append(head[:n], rest...)}, nil
}

// shownText returns the text beside a file, for models that cannot read files.
func shownText(f tool.File) string { return fmt.Sprintf("%s has %d bytes", f.Name, len(f.Data)) }

// A notShownError means that an image or a document is not shown.
type notShownError struct {
	name string
	err  error
}

func (e *notShownError) Error() string { return e.name + " is not shown: " + e.err.Error() }

func (e *notShownError) Unwrap() error { return e.err }
