package disk

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/text"
)

// Read implements [backend.Backend].
func (d *Disk) Read(ctx context.Context, name string, w backend.Window) (backend.Page, error) {
	page, err := d.read(ctx, name, w)
	if err != nil {
		return backend.Page{}, d.failed("read", name, err)
	}
	return page, nil
}

func (d *Disk) read(ctx context.Context, name string, w backend.Window) (backend.Page, error) {
	name, err := clean(name)
	if err != nil {
		return backend.Page{}, err
	}
	f, info, err := d.open(name)
	if err != nil {
		return backend.Page{}, err
	}
	defer f.Close()
	if err := within(info, backend.MaxRead); err != nil {
		return backend.Page{}, err
	}
	release, err := memlimit.Contents.Acquire(ctx, text.PageMemory)
	if err != nil {
		return backend.Page{}, err
	}
	defer release()
	return text.Page(bounded(ctx, f, backend.MaxRead), w)
}
