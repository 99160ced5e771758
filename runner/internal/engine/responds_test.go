package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What watches a Run waits for each lock that is held for a moment only, and for
// none that is held while the journal is written.
func TestRespondsWaitsForItsLocks(t *testing.T) {
	var responds func()
	s := newStage(nil, says("ok"))
	s.Watch = func(f func()) { responds = f }
	s.run(t)
	if responds == nil {
		t.Fatal("nothing is given to watch")
	}
	r := newRun(Config{Now: time.Now})
	defer r.die()
	r.meter = meter.New(r.crew.clock, task.Limits{}, step.Meter{})
	var counting sync.Mutex // stands for the lock of the meter, which is held while something is counted
	for name, lock := range map[string]*sync.Mutex{"board": &r.board.mu, "crew": &r.crew.mu, "meter": &counting} {
		lock.Lock()
		counts := make(chan struct{})
		if lock == &counting {
			go r.meter.Add(func(*step.Meter) {
				close(counts)
				counting.Lock()
				defer counting.Unlock()
			})
			<-counts
		}
		var free atomic.Bool
		returned := make(chan bool)
		go func() {
			r.responds()
			returned <- free.Load()
		}()
		for range 100 {
			runtime.Gosched()
		}
		free.Store(true)
		lock.Unlock()
		if !<-returned {
			t.Errorf("it does not wait for the %s", name)
		}
	}
	r.state.View(func(*state.Run) {
		r.room.mu.Lock()
		r.responds()
	})
}
