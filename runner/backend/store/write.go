package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/text"
)

// Write implements [backend.Backend].
func (s *Store) Write(ctx context.Context, name string, data []byte, when backend.Version) (backend.Written, error) {
	written := backend.Written{Bytes: len(data), Version: text.Version(data)}
	err := s.change(ctx, name, func(old *Value) ([]byte, error) {
		written.Created = old == nil
		return data, mayWrite(old, data, when)
	})
	if err != nil && !errors.Is(err, errSame) {
		return backend.Written{}, failed("write", name, err)
	}
	return written, nil
}

// errSame says that a file has the content that it should have.
var errSame = errors.New("is the same already")

// mayWrite holds a write to the version to which it applies.
func mayWrite(old *Value, data []byte, when backend.Version) error {
	switch {
	case old == nil && when != backend.Any && when != backend.Absent:
		return backend.ErrChanged
	case old == nil:
		return nil
	case bytes.Equal(old.Data, data):
		return errSame
	case when == backend.Absent:
		return backend.ErrExists
	case when != backend.Any && when != text.Version(old.Data):
		return backend.ErrChanged
	}
	return nil
}

// Edit implements [backend.Backend].
func (s *Store) Edit(ctx context.Context, name string, e backend.Edit) (backend.Edited, error) {
	var edited backend.Edited
	err := s.change(ctx, name, func(old *Value) (out []byte, err error) {
		if old == nil {
			return nil, backend.ErrNotFound
		}
		if e.When != backend.Any && e.When != text.Version(old.Data) {
			return nil, backend.ErrChanged
		}
		out, edited, err = text.Replace(old.Data, e)
		return out, err
	})
	if err != nil {
		return backend.Edited{}, failed("edit", name, err)
	}
	return edited, nil
}

// change sets a file to what fresh makes of it, again if somebody was faster.
func (s *Store) change(ctx context.Context, name string, fresh func(old *Value) ([]byte, error)) error {
	key, err := clean(name)
	if err != nil {
		return err
	}
	defer s.lock(key)()
	for range tries {
		err = s.try(ctx, key, fresh)
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return err
}

func (s *Store) try(ctx context.Context, key string, fresh func(old *Value) ([]byte, error)) error {
	var old *Value
	var when Revision
	v, err := s.get(ctx, key)
	switch {
	case err == nil:
		old, when = &v, v.Revision
	case !errors.Is(err, backend.ErrNotFound):
		return err
	}
	data, err := fresh(old)
	if err != nil {
		return err
	}
	if size := int64(len(data)); size > s.file {
		return &backend.TooLargeError{Size: size, Limit: s.file}
	}
	_, err = s.kv.Put(ctx, key, data, when)
	return err
}
