// Package memlimit bounds how much memory the contents of files take at once.
//
// Most code reads files as streams, through small buffers. Code that has to hold
// more, such as an edit or a line without end, acquires that much of one limit
// first, and waits while others hold it. Then the memory of the process does not
// depend on how many tool calls run in parallel.
package memlimit

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Size is how many bytes [Contents] lets callers hold at once: a quarter of the
// memory that the container of a runner has by default.
const Size = 64 << 20

// Contents limits the contents of files that all backends of the process hold.
var Contents = New(Size)

// Stores limits the contents of open files that are read whole from a store. It is separate from Contents, because
// processing an open file acquires from Contents, and a caller that holds bytes of a limit must not wait for more of
// the same limit.
var Stores = New(Size / 4)

// A Limiter bounds how many bytes its callers hold at once.
type Limiter struct {
	size      int64
	semaphore *semaphore.Weighted
}

// New makes a Limiter of size bytes.
func New(size int64) *Limiter {
	return &Limiter{size: size, semaphore: semaphore.NewWeighted(size)}
}

// Acquire waits until the caller may hold n bytes, or until ctx ends. A caller
// that wants more than the limit gets all of it. Release gives the bytes back; it
// is called once.
//
// A caller that holds bytes must not acquire more: two that do could wait for
// each other forever.
func (l *Limiter) Acquire(ctx context.Context, n int64) (release func(), err error) {
	n = min(max(n, 0), l.size)
	if err := l.semaphore.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { l.semaphore.Release(n) }, nil
}
