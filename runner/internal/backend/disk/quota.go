package disk

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// A Quota is how much the files of a backend take at most.
type Quota struct {
	Bytes int64
	Files int
}

// OpenWithin is Open for a directory that must not grow over a quota, because
// it shares its disk with something else. What is there already counts. The
// quota knows of changes through the backend alone: it is for a directory that
// no other process writes to.
func OpenWithin(dir string, q Quota) (*Disk, error) {
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	d.quota = &quota{most: q}
	if err := filepath.WalkDir(dir, d.quota.count); err != nil {
		_ = d.Close() // the first error is the one to tell
		return nil, fmt.Errorf("counting the files of a backend: %w", err)
	}
	return d, nil
}

// A quota counts what there is.
type quota struct {
	most Quota

	mu   sync.Mutex
	used Quota
}

// count adds a file that is there already.
func (q *quota) count(_ string, e fs.DirEntry, err error) error {
	if err != nil || !e.Type().IsRegular() {
		return err
	}
	info, err := e.Info()
	if err == nil {
		q.add(Quota{Bytes: info.Size(), Files: 1})
	}
	return err
}

// spend places a content if there is room for it. The room is taken before and
// given back where placing fails, so that two who come at once do not both take
// the last of it.
func (q *quota) spend(c content, place func() error) error {
	if q == nil {
		return place()
	}
	more := Quota{Bytes: int64(len(c.data)), Files: 1}
	if c.old != nil {
		more = Quota{Bytes: more.Bytes - c.old.size}
	}
	if !q.take(more) {
		return fmt.Errorf("%w: all files together may have %d bytes and be %d", backend.ErrNoSpace, q.most.Bytes, q.most.Files)
	}
	err := place()
	if err != nil {
		q.add(Quota{Bytes: -more.Bytes, Files: -more.Files})
	}
	return err
}

// take adds to what is used if that stays within the quota.
func (q *quota) take(more Quota) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if more.Bytes > 0 && q.used.Bytes+more.Bytes > q.most.Bytes || more.Files > 0 && q.used.Files+more.Files > q.most.Files {
		return false
	}
	q.used.Bytes += more.Bytes
	q.used.Files += more.Files
	return true
}

func (q *quota) add(more Quota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used.Bytes += more.Bytes
	q.used.Files += more.Files
}
