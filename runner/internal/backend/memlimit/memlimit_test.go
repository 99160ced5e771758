package memlimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/quick"

	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
)

// Whatever callers ask for, they never hold more than the limit together, and
// each of them gets its turn.
func TestCallersNeverHoldMoreThanTheLimit(t *testing.T) {
	property := func(size uint16, wants []uint32, seed uint64) bool {
		limit := int64(size) + 1
		l := memlimit.New(limit)
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(wants), func(i, j int) { wants[i], wants[j] = wants[j], wants[i] })
		var held atomic.Int64
		var exceeded atomic.Bool
		var all sync.WaitGroup
		for _, n := range wants {
			all.Go(func() {
				want := int64(n) % (2 * limit) // half of them ask for more than there is
				release, err := l.Acquire(t.Context(), want)
				if err != nil {
					exceeded.Store(true)
					return
				}
				if held.Add(min(want, limit)) > limit {
					exceeded.Store(true)
				}
				held.Add(-min(want, limit))
				release()
			})
		}
		all.Wait()
		return !exceeded.Load()
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestACallerThatIsCancelledStopsWaiting(t *testing.T) {
	l := memlimit.New(10)
	release, err := l.Acquire(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Acquire(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	release()
	if again, err := l.Acquire(t.Context(), 10); err != nil {
		t.Errorf("what was given back is not there: %v", err)
	} else {
		again()
	}
}
